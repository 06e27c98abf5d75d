// Goal: what an approver states is either what the observer would report, or refused with what to
// change. Method: manifests and registrations by hand; expected forms worked out from the
// description of the document.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { absentField, type SnapshotOptions } from '../../../src/adapters/snapshot/index.ts';
import { admitLayout } from '../../../src/adapters/snapshot/layout.ts';
import { SnapshotSchema } from '../../../src/adapters/snapshot/normalise.ts';
import { normaliseManifest } from '../../../src/backend/normalise.ts';
import { EffectMatchError } from '../../../src/errors.ts';
import {
  any,
  between,
  draftManifest,
  generated,
  insert,
  read,
  remove,
  row,
  update,
} from '../../../src/protocol/draft.ts';
import type { ApprovedEffect } from '../../../src/protocol/effect.ts';
import { freshPath, hold, judge, open } from './store.ts';
import { toolModule } from './tool-module.ts';

const OPTIONS: SnapshotOptions = {
  file: 'unused.db',
  initial: {
    carts: [
      { id: 1, items: ['b', 'a'], seen: 0 },
      { id: 2, note: 'x' },
    ],
    stock: { apple: { n: 1 } },
  },
  collections: {
    carts: { path: '/carts', key: 'id', unordered: ['/items'], volatile: ['seen'] },
    stock: { path: '/stock', key: 'sku', map: true },
  },
  unordered: ['/tags'],
  tools: toolModule({}),
};
const layout = admitLayout(OPTIONS);
const ABSENT = { is: { $bytes: '' } };
const normalise = (...effects: ApprovedEffect[]) =>
  normaliseManifest(
    new SnapshotSchema(layout),
    draftManifest({ adapter: 'shop', task: 't', planRevision: 1, effects }),
  ).effects;

test('without declared fields those of the initial records are registered, and all others share one column', () => {
  assert.deepEqual(layout.registration.targets, [
    {
      name: 'carts',
      columns: ['id', 'items', 'note', 'seen', '*'],
      key: ['id'],
      volatile: ['seen'],
    },
    { name: 'stock', columns: ['sku', 'n', '*'], key: ['sku'], volatile: [] },
    { name: '/', columns: ['path', 'value'], key: ['path'], volatile: [] },
  ]);
});

test('a field that an inserted record does not state must be absent, and unordered lists get one order', () => {
  assert.deepEqual(normalise(insert('carts', { id: 3, items: ['z', 'b', 'z'] })), [
    {
      op: 'insert',
      target: 'carts',
      key: { id: { is: 3 } },
      after: { items: { is: ['b', 'z', 'z'] }, note: ABSENT, '*': { is: {} } },
      count: 1,
    },
  ]);
  assert.deepEqual(
    normalise(update('/', { path: '/tags' }, { value: [['q'], [2, 1]] }))[0]?.after,
    {
      value: { is: [1, 2] },
    },
  );
});

test('what a removed or changed record held may be left open', () => {
  const [removed, changed] = normalise(
    remove('carts', { id: 1 }),
    update('carts', { id: 2 }, { note: absentField }),
  );
  assert.deepEqual(removed?.before, {
    items: { any: true },
    note: { any: true },
    '*': { any: true },
  });
  assert.deepEqual([changed?.before, changed?.after], [{ note: { any: true } }, { note: ABSENT }]);
});

const REFUSED: readonly (readonly [string, ApprovedEffect])[] = [
  ['an unknown target', insert('nowhere', { id: 1 })],
  ['an unknown field', insert('carts', { id: 1, colour: 'red' })],
  ['a missing key', insert('carts', { items: [] })],
  ['a key of another type than an object has', insert('stock', { sku: 1, n: 1 })],
  ['a key that is no scalar', insert('carts', { id: [1] })],
  ['a changed key', update('carts', { id: 1 }, { id: [1, 2] })],
  ['nothing but volatile fields', update('carts', { id: 1 }, { seen: [0, 1] })],
  [
    'a change to the same multiset',
    update(
      'carts',
      { id: 1 },
      {
        items: [
          ['a', 'b'],
          ['b', 'a'],
        ],
      },
    ),
  ],
  ['an integer that JSON cannot hold', update('stock', { sku: 'apple' }, { n: [1, 2n ** 60n] })],
  ['bytes', insert('carts', { id: 1, note: new Uint8Array([1]) })],
  ['further fields that are no object', insert('carts', { id: 1, '*': 5 })],
  ['a place in a list', update('/', { path: '/carts/0' }, { value: [1, 2] })],
  ['a path that is no pointer', update('/', { path: 'carts' }, { value: [1, 2] })],
  ['a path that is not stated', update('/', { path: any() }, { value: [1, 2] })],
  ['an order that no list has', update('/', { path: '/stock~order' }, { value: [1, 2] })],
  ['a label without evidence', insert('stock', { sku: 'pear', n: generated('n') })],
  ['a count without records', { op: 'insert', target: 'carts', count: 2 }],
];

test('what could never be observed is refused before anyone signs it', () => {
  for (const [what, effect] of REFUSED) {
    assert.throws(() => normalise(effect), { code: 'ERR_EM_MANIFEST_INVALID' }, what);
  }
  assert.equal(normalise(update('stock', { sku: 'apple' }, { n: [1, between(2, 3)] })).length, 1);
  assert.equal(
    normalise(
      update(
        '/',
        { path: '/carts~order' },
        {
          value: [
            [1, 2],
            [2, 1],
          ],
        },
      ),
    ).length,
    1,
  );
});

const UNUSABLE: readonly (readonly [string, Partial<SnapshotOptions>])[] = [
  ['a path that is no pointer', { collections: { carts: { path: 'carts', key: 'id' } } }],
  [
    'overlapping collections',
    { collections: { carts: { path: '/a', key: 'id' }, more: { path: '/a/b', key: 'id' } } },
  ],
  ['no key', { collections: { carts: { path: '/carts', key: [] } } }],
  [
    'a field named like the further ones',
    { collections: { carts: { path: '/carts', key: 'id', fields: ['*'] } } },
  ],
  [
    'a field that reads as a tag',
    { collections: { carts: { path: '/carts', key: 'id', fields: ['$int'] } } },
  ],
  ['a volatile key', { collections: { carts: { path: '/carts', key: 'id', volatile: ['id'] } } }],
  [
    'a generated field nobody knows',
    { collections: { carts: { path: '/carts', key: 'id', generated: ['uid'] } } },
  ],
  ['the name of everything else', { collections: { '/': { path: '/carts', key: 'id' } } }],
  [
    'a field beside the same name for keys',
    { collections: { s: { path: '/s', key: 'sku', map: true, fields: ['sku'] } } },
  ],
  ['an unordered list stated in the wrong place', { unordered: ['/carts/*/items'] }],
  ['neither fields nor an initial state', { initial: undefined }],
];

test('a registration that could not be compared is refused', () => {
  for (const [what, change] of UNUSABLE) {
    const options = { ...OPTIONS, ...change } as SnapshotOptions;
    const refused = (error: unknown) =>
      error instanceof EffectMatchError && error.code === 'ERR_EM_ADAPTER_REFUSED';
    assert.throws(() => admitLayout(options), refused, what);
  }
});

test('whoever compares in another way is another adapter', async () => {
  const file = freshPath();
  const one = await open({ ...OPTIONS, file });
  const other = await open({ ...OPTIONS, file, unordered: [] });
  assert.equal(one.identity.backend, other.identity.backend);
  assert.notEqual(one.identity.code, other.identity.code);
});

interface Shop {
  carts: { id: number; items?: string[]; seen?: number; note?: string; extra?: unknown }[];
}

test('volatile, absent and undeclared fields compare as they were registered', async () => {
  const adapter = await open({
    ...OPTIONS,
    file: freshPath(),
    tools: toolModule({
      edit({ carts: [first, second] }: Shop) {
        if (first === undefined || second === undefined) throw new Error('two carts were expected');
        first.items = ['a', 'c', 'b'];
        first.seen = 99;
        delete second.note;
        second.extra = { $int: '1' };
      },
    }),
  });
  const { stage } = await hold(adapter, 'edit', { calls: [{ tool: 'edit' }] });
  const outcome = await judge(adapter, await stage.observe(), [
    update(
      'carts',
      { id: 1 },
      {
        items: [
          ['a', 'b'],
          ['c', 'b', 'a'],
        ],
      },
    ),
    update('carts', { id: 2 }, { note: ['x', absentField], '*': [{}, { extra: { $int: '1' } }] }),
  ]);
  assert.equal(outcome.kind, 'EXACT', JSON.stringify(outcome));
});

test('state is read by key and by pointer, as the observer would report it', async () => {
  const adapter = await open({ ...OPTIONS, file: freshPath() });
  const readings = await adapter.read([
    read('carts', { id: 1 }),
    read('carts', { id: 2 }, ['note', 'items']),
    read('carts', { id: '1' }),
    read('stock', { sku: 'apple' }, ['n']),
    read('/', { path: '/carts' }, ['value']),
    read('/', { path: '/carts~order' }, ['value']),
    read('/', { path: '/nowhere' }),
  ]);
  assert.deepEqual(
    readings.map((reading) => reading.row),
    [
      { id: 1, items: ['a', 'b'], note: { $bytes: '' }, seen: 0, '*': {} },
      { note: 'x', items: { $bytes: '' } },
      null,
      { n: 1 },
      { value: [] },
      { value: [1, 2] },
      null,
    ],
  );
  const draft = { adapter: 'shop', task: 't', planRevision: 1, effects: [] };
  const manifest = draftManifest({
    ...draft,
    requires: [row('carts', { id: 1 }, { items: ['b', 'a'], note: absentField })],
  });
  assert.deepEqual((await adapter.normalise(manifest)).requires[0]?.row, {
    items: ['a', 'b'],
    note: { $bytes: '' },
  });
});
