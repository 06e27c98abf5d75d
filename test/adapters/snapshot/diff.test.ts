// Goal: the observed effects are the whole difference of two states, no more and no less, whatever
// the states are. Method: random documents and edits; effects are applied by code of its own, and
// judged by the core's comparison.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { diffViews } from '../../../src/adapters/snapshot/diff.ts';
import { writeDocument } from '../../../src/adapters/snapshot/document.ts';
import { admitLayout, type DocumentLayout } from '../../../src/adapters/snapshot/layout.ts';
import { SnapshotSchema } from '../../../src/adapters/snapshot/normalise.ts';
import { viewDocument } from '../../../src/adapters/snapshot/view.ts';
import { normaliseManifest } from '../../../src/backend/normalise.ts';
import { approvedOutcome } from '../../../src/protocol/approve.ts';
import { canonical } from '../../../src/protocol/canon.ts';
import type { ApprovedEffect, ChangeRecord } from '../../../src/protocol/effect.ts';
import type { Manifest } from '../../../src/protocol/manifest.ts';
import { prepareApproved } from '../../../src/protocol/match.ts';
import { type Evidence, establish } from '../../../src/protocol/observation.ts';
import { classify, type Outcome } from '../../../src/protocol/outcome.ts';
import type { Row } from '../../../src/protocol/value.ts';
import { applyEffects, type Place } from './apply.ts';

const PLACES: Readonly<Record<string, Place>> = {
  orders: { path: ['orders'], map: false, key: ['id'], fields: ['a', 'items'] },
  lines: { path: ['shop', 'lines'], map: false, key: ['x', 'y'], fields: ['n'] },
  stock: { path: ['stock'], map: true, key: ['sku'], fields: ['a'] },
};

const layout = admitLayout({
  file: 'unused',
  tools: 'unused',
  collections: {
    orders: { path: '/orders', key: 'id', fields: ['a', 'items'] },
    lines: { path: '/shop/lines', key: ['x', 'y'], fields: ['n'] },
    stock: { path: '/stock', key: 'sku', map: true, fields: ['a'] },
  },
});

const names = fc.constantFrom(
  'a',
  'b',
  'n',
  'id',
  'sku',
  '$x',
  '$int',
  '$$',
  'constructor',
  'x/y',
  '~',
  '~order',
  '',
  '*',
);
const scalar = fc.oneof(
  fc.constant(null),
  fc.boolean(),
  fc.integer({ min: 0, max: 3 }),
  fc.constantFrom('', 'p', 'q'),
);
const { json } = fc.letrec((tie) => ({
  json: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    scalar,
    fc.array(tie('json'), { maxLength: 3 }),
    fc.dictionary(names, tie('json'), { maxKeys: 3, noNullPrototype: true }),
  ),
}));
const others = fc.dictionary(names, json, { maxKeys: 2, noNullPrototype: true });
const merged = (key: fc.Arbitrary<object>) =>
  fc.tuple(others, key).map(([rest, own]) => ({ ...rest, ...own }));
const orderKey = fc.oneof(fc.integer({ min: 0, max: 4 }), fc.constantFrom('0', '1'));
const order = merged(
  fc.record({ id: orderKey, items: fc.array(scalar, { maxLength: 3 }) }, { requiredKeys: ['id'] }),
);
const line = merged(
  fc.record(
    { x: fc.constantFrom(0, 1, '1'), y: fc.boolean(), n: scalar },
    { requiredKeys: ['x', 'y'] },
  ),
);
/**
 * Mostly regular collections, sometimes with strangers, doubles or something else in their place.
 */
const list = (entry: fc.Arbitrary<unknown>, selector: (entry: never) => unknown) =>
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.uniqueArray(entry, {
        maxLength: 5,
        selector: selector as (entry: unknown) => unknown,
      }),
    },
    { weight: 1, arbitrary: fc.array(fc.oneof(entry, json), { maxLength: 3 }) },
    { weight: 1, arbitrary: json },
  );
const document = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.record(
      {
        orders: list(order, ({ id }: { id: unknown }) => id),
        shop: fc.oneof(
          fc.record({
            lines: list(line, ({ x, y }: { x: unknown; y: unknown }) => `${typeof x}${x}${y}`),
            a: json,
          }),
          json,
        ),
        stock: fc.oneof(
          fc.dictionary(names, fc.oneof(others, json), { maxKeys: 4, noNullPrototype: true }),
          json,
        ),
        a: json,
      },
      { requiredKeys: [] },
    ),
  },
  { weight: 1, arbitrary: json },
);
/**
 * Two documents that share much: each part of the second is new or as in the first, in a new order
 * or not.
 */
const pair = fc
  .tuple(document, document, fc.array(fc.boolean(), { minLength: 8, maxLength: 8 }))
  .map(([before, other, choice]) =>
    structuredClone([before, mix(before, other, choice, { at: 0 })] as const),
  );

function mix(
  before: unknown,
  other: unknown,
  choice: readonly boolean[],
  cursor: { at: number },
): unknown {
  cursor.at += 1;
  const pick = choice[cursor.at % choice.length] === true;
  if (Array.isArray(before) && Array.isArray(other))
    return pick ? [...before, ...other] : [...before].reverse();
  if (!isRecord(before) || !isRecord(other)) return pick ? before : other;
  const mixed: Record<string, unknown> = {};
  for (const name of new Set([...Object.keys(before), ...Object.keys(other)])) {
    const both = Object.hasOwn(before, name) && Object.hasOwn(other, name);
    cursor.at += 1;
    if (both) mixed[name] = mix(before[name], other[name], choice, cursor);
    else if (choice[cursor.at % choice.length]) mixed[name] = { ...before, ...other }[name];
  }
  return mixed;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function effectsBetween(
  before: unknown,
  after: unknown,
  by: DocumentLayout = layout,
): readonly ChangeRecord[] {
  return diffViews(
    by,
    viewDocument(by, JSON.parse(writeDocument(before))),
    viewDocument(by, JSON.parse(writeDocument(after))),
  );
}

const manifestOf = (records: readonly ChangeRecord[]): Manifest => ({
  ...{ version: 1, adapter: 'shop', task: 'task', planRevision: 1, requires: [], watch: [] },
  effects: records.map(({ op, target, key, before, after }): ApprovedEffect => {
    const cells = (row: Row) =>
      Object.fromEntries(Object.entries(row).map(([name, is]) => [name, { is }]));
    return {
      ...{ op, target, count: 1 },
      ...(key && { key: cells(key) }),
      ...(before && { before: cells(before) }),
      ...(after && { after: cells(after) }),
    };
  }),
});

/** The core's judgement about these records, against an approval of those. */
function judge(
  observed: readonly ChangeRecord[],
  manifest: Manifest,
  by: DocumentLayout = layout,
): Outcome {
  const evidence: Evidence = {
    ...{
      candidate: 'c',
      evidence: 'e',
      records: observed,
      channels: [],
      unattributed: 0,
      assigned: [],
    },
    window: { fromMs: 0, toMs: 0 },
  };
  const approved = approvedOutcome(manifest, by.registration, '0'.repeat(32));
  return classify(prepareApproved(approved), establish(evidence, by.registration, []), evidence);
}

/** The document with all of its lists in one fixed order. */
function sortAll(value: unknown): unknown {
  if (Array.isArray(value))
    return value.map(sortAll).sort((a, b) => (canonical(a) < canonical(b) ? -1 : 1));
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, sortAll(inner)]));
}

const RUNS = { numRuns: 800 };

test('property: the effects applied to the base give the candidate', () => {
  fc.assert(
    fc.property(pair, ([before, after]) => {
      assert.deepEqual(applyEffects(before, effectsBetween(before, after), PLACES), after);
    }),
    RUNS,
  );
});

test('property: there are no effects if and only if the two states are equal', () => {
  let equal = 0;
  fc.assert(
    fc.property(pair, fc.boolean(), ([before, other], same) => {
      const after = same ? structuredClone(before) : other;
      const alike = canonical(before) === canonical(after);
      if (alike) equal += 1;
      assert.equal(effectsBetween(before, after).length === 0, alike);
    }),
    RUNS,
  );
  assert.ok(equal > 100 && equal < RUNS.numRuns - 100, `${equal} equal pairs decide nothing`);
});

test('property: an approval of the effects survives normalising, and the core finds exactly them EXACT', () => {
  let different = 0;
  fc.assert(
    fc.property(pair, document, ([before, after], other) => {
      const records = effectsBetween(before, after);
      const manifest = normaliseManifest(new SnapshotSchema(layout), manifestOf(records));
      assert.equal(canonical(manifest), canonical(manifestOf(records)));
      assert.equal(judge(records, manifest).kind, 'EXACT');
      const elsewhere = effectsBetween(before, other);
      // The order among records that were appended together is not compared, so only a clear
      // difference counts.
      if (canonical(sortAll(other)) === canonical(sortAll(after))) return;
      different += 1;
      assert.equal(judge(elsewhere, manifest).kind, 'DIVERGED');
    }),
    RUNS,
  );
  assert.ok(different > RUNS.numRuns / 2);
});

const loose = admitLayout({
  file: 'unused',
  tools: 'unused',
  collections: {
    carts: {
      path: '/carts',
      key: 'id',
      fields: ['items', 'total'],
      unordered: ['/items', '/parcels/*/tags'],
      order: 'ignored',
    },
  },
  unordered: ['/tags', '/groups/*/members'],
});
const shuffled = (values: fc.Arbitrary<unknown[]>) =>
  values.chain((items) =>
    fc.tuple(fc.constant(items), fc.shuffledSubarray(items, { minLength: items.length })),
  );
const unorderedPlaces: readonly ((items: unknown[]) => unknown)[] = [
  (items) => ({ carts: [{ id: 1, items, total: 2 }] }),
  (items) => ({ carts: [{ id: 1, parcels: [{ tags: items }, { tags: [] }] }] }),
  (items) => ({ carts: [], tags: items }),
  (items) => ({ groups: { one: { members: items, n: 1 } } }),
];

test('property: the order of an unordered list is irrelevant, in an approval too, and every element counts', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...unorderedPlaces),
      shuffled(fc.array(json, { minLength: 1, maxLength: 6 })),
      fc.nat(),
      (put, [items, reordered], at) => {
        assert.deepEqual(effectsBetween(put(items), put(reordered), loose), []);
        const doubled = [...reordered, items[at % items.length]];
        const records = effectsBetween(put(items), put(doubled), loose);
        assert.equal(records.length, 1);
        assert.equal(effectsBetween(put(doubled), put(items.slice(1)), loose).length, 1);
        const turned = manifestOf(records).effects.map((effect) => ({
          ...effect,
          after: reverseLists(effect.after),
        }));
        const manifest = normaliseManifest(new SnapshotSchema(loose), {
          ...manifestOf([]),
          effects: turned as ApprovedEffect[],
        });
        assert.equal(judge(records, manifest, loose).kind, 'EXACT');
      },
    ),
    { numRuns: 500 },
  );
});

/**
 * Turns around the lists that were declared unordered: the outermost ones in these four documents.
 */
function reverseLists(value: unknown): unknown {
  if (Array.isArray(value))
    return value.length === 2 && isRecord(value[0]) && 'tags' in value[0]
      ? value.map(reverseLists)
      : [...value].reverse();
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, reverseLists(inner)]),
  );
}

test('the order of records is an effect of its own unless declared irrelevant; appending is not', () => {
  const orders = (...ids: number[]) => ({ orders: ids.map((id) => ({ id })) });
  const swap = effectsBetween(orders(1, 2), orders(2, 1));
  assert.deepEqual(swap, [
    {
      op: 'update',
      target: '/',
      key: { path: '/orders~order' },
      before: { value: [1, 2] },
      after: { value: [2, 1] },
    },
  ]);
  assert.deepEqual(
    effectsBetween(orders(1, 2, 3), orders(1, 3, 4)).map(({ op, key }) => [op, key]),
    [
      ['delete', { id: 2 }],
      ['insert', { id: 4 }],
    ],
  );
  assert.equal(
    effectsBetween(orders(1), orders(4, 1)).length,
    2,
    'a record put in front moves the others',
  );
  const carts = (...ids: number[]) => ({ carts: ids.map((id) => ({ id })) });
  assert.deepEqual(effectsBetween(carts(1, 2), carts(2, 1), loose), []);
});

test('two records with one key, or a stranger in the list, make it one value that is compared whole', () => {
  const before = { orders: [{ id: 1, a: 1 }] };
  const doubled = {
    orders: [
      { id: 1, a: 1 },
      { id: 1, a: 1 },
    ],
  };
  assert.deepEqual(effectsBetween(before, doubled), [
    {
      op: 'delete',
      target: 'orders',
      key: { id: 1 },
      before: { a: 1, items: { $bytes: '' }, '*': {} },
      after: null,
    },
    {
      op: 'update',
      target: '/',
      key: { path: '/orders' },
      before: { value: [] },
      after: { value: doubled.orders },
    },
  ]);
});

test('data that looks like a tag is data', () => {
  const [record] = effectsBetween({ a: 1 }, { a: { $bytes: '' } });
  assert.deepEqual(record?.after, { value: { $$bytes: '' } });
  const [field] = effectsBetween(
    { orders: [{ id: 1, a: 1 }] },
    { orders: [{ id: 1, a: { $bytes: '' } }] },
  );
  assert.deepEqual(field?.after, { a: { $$bytes: '' } });
});
