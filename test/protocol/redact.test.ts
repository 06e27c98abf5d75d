// Goal: where values must not be stored, none is, and what is stored still has the shape people and
// schemas expect. Method: values that are all recognisable, a reversible stand-in for the digest,
// and fast-check for the bounds of a diff.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { canonical } from '../../src/protocol/canon.ts';
import type { CountedEffect, Diff } from '../../src/protocol/diff.ts';
import {
  any,
  between,
  generated,
  insert,
  matches,
  oneOf,
  read,
  remove,
  row,
  update,
} from '../../src/protocol/draft.ts';
import { approvedRecord } from '../../src/protocol/manifest.ts';
import { boundDiff, redactApproved, redactDiff } from '../../src/protocol/redact.ts';
import { renderDiff } from '../../src/protocol/render.ts';
import type { Value } from '../../src/protocol/value.ts';

const digestOf = (target: string, column: string, value: Value): string =>
  Buffer.from(canonical([target, column, value])).toString('hex');

const approved = approvedRecord.parse({
  version: 1,
  adapter: 'books',
  registration: { profile: 'net-state', values: 'digest', targets: [] },
  effects: [
    update(
      'invoice',
      { id: 'secret-1' },
      {
        status: ['secret-2', oneOf('secret-3', 'secret-4')],
        total: between('secret-5', 'secret-6'),
      },
    ),
    insert('invoice', {
      id: generated('n1'),
      note: 'secret-7',
      x: any(),
      y: matches('secret-14 [0-9]+'),
    }),
    remove('invoice', { id: 'secret-8' }, { note: { deep: ['secret-9'] } }),
  ],
  requires: [
    row('vendor', { id: 'secret-10' }, { name: 'secret-11' }),
    { target: 'vendor', key: { id: 'secret-12' }, row: null },
  ],
  watch: [read('vendor', { id: 'secret-13' }, ['name'])],
  settings: { 'app.actor': 'secret-15' },
  salt: '0'.repeat(32),
});

test('a redacted approval keeps its shape and none of its values', () => {
  const redacted = redactApproved(approved, digestOf);
  const text = approvedRecord.text(redacted);
  assert.doesNotMatch(text, /secret/);
  const asked = [...text.matchAll(/"\$digest":"([0-9a-f]+)"/g)].map(([, hex]) =>
    Buffer.from(hex ?? '', 'hex').toString(),
  );
  const found = asked.join('\n');
  for (let id = 1; id <= 13; id += 1) assert.match(found, new RegExp(`"secret-${id}"`));
  assert.ok(
    asked.includes('["invoice","status","secret-3"]'),
    'the digest covers target and column',
  );
  assert.equal(asked.length, 13);
  assert.deepEqual(redacted.effects[1]?.after, {
    id: { generated: 'n1' },
    note: { is: { $digest: digestOf('invoice', 'note', 'secret-7') } },
    x: { any: true },
    y: { matches: `digest ${digestOf('invoice', 'y', 'secret-14 [0-9]+')}` },
  });
  assert.deepEqual(redacted.requires[1]?.row, null);
  assert.deepEqual(redacted.watch[0]?.columns, ['name']);
  assert.deepEqual(redacted.settings, {
    'app.actor': `digest ${digestOf('settings', 'app.actor', 'secret-15')}`,
  });
});

const observed: CountedEffect = {
  op: 'update',
  target: 'invoice',
  key: { id: 'secret-1' },
  before: { status: 'secret-2' },
  after: { status: 'secret-3' },
  count: 2,
};

test('a redacted diff keeps its entries and none of its values, and still renders', () => {
  const [first, second] = approved.effects;
  assert.ok(first !== undefined && second !== undefined);
  const diff: Diff = {
    extra: [observed],
    missing: [second],
    altered: [{ approved: first, observed }],
    omitted: 3,
  };
  const redacted = redactDiff(diff, digestOf);
  assert.doesNotMatch(canonical(redacted), /secret/);
  assert.deepEqual(redacted.extra[0], {
    op: 'update',
    target: 'invoice',
    key: { id: { $digest: digestOf('invoice', 'id', 'secret-1') } },
    before: { status: { $digest: digestOf('invoice', 'status', 'secret-2') } },
    after: { status: { $digest: digestOf('invoice', 'status', 'secret-3') } },
    count: 2,
  });
  assert.equal(redacted.omitted, 3);
  assert.deepEqual(redacted.altered[0]?.approved.key, {
    id: { is: { $digest: digestOf('invoice', 'id', 'secret-1') } },
  });
  assert.match(renderDiff(redacted), /^extra {4}~ invoice id=<value kept as digest /m);
});

test('property: a bounded diff keeps at most that many entries, from the front, and counts every other one', () => {
  const size = fc.integer({ min: 0, max: 12 });
  fc.assert(
    fc.property(
      size,
      size,
      size,
      size,
      fc.integer({ min: 0, max: 40 }),
      (extras, missings, altereds, omitted, max) => {
        const numbered = (length: number): CountedEffect[] =>
          Array.from({ length }, (_, id) => ({
            op: 'insert',
            target: 't',
            key: { id },
            after: {},
            count: 1,
          }));
        const approvedEffects = Array.from({ length: missings }, (_, id) => insert('t', { id }));
        const change = update('t', { id: 1 }, { a: 1 });
        const diff: Diff = {
          extra: numbered(extras),
          missing: approvedEffects,
          altered: numbered(altereds).map((effect) => ({ approved: change, observed: effect })),
          omitted,
        };
        const bounded = boundDiff(diff, max);
        const kept = bounded.extra.length + bounded.missing.length + bounded.altered.length;
        assert.equal(kept, Math.min(max, extras + missings + altereds));
        assert.equal(kept + bounded.omitted, extras + missings + altereds + omitted);
        assert.deepEqual(bounded.extra, diff.extra.slice(0, bounded.extra.length));
        assert.deepEqual(bounded.missing, diff.missing.slice(0, bounded.missing.length));
        assert.deepEqual(bounded.altered, diff.altered.slice(0, bounded.altered.length));
        for (const [before, after] of [
          [extras, bounded.extra.length],
          [missings, bounded.missing.length],
          [altereds, bounded.altered.length],
        ] as const) {
          assert.ok(after >= Math.min(before, Math.floor(max / 3)), 'no kind is crowded out');
        }
      },
    ),
    { numRuns: 2_000 },
  );
});
