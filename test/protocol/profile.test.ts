// Goal: E is what the profile says about the records, and records that cannot be true are refused.
// Method: random writes to a small model state; the difference of the state before and after is the
// oracle for net-state, the list of writes itself for row-event. Named cases for images of every
// kind and for each refusal.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { canonical } from '../../src/protocol/canon.ts';
import type {
  CellRow,
  ChangeRecord,
  ChangeRecords,
  Effect,
  Profile,
} from '../../src/protocol/effect.ts';
import { exactEffects, matchWrites, prepareApproved } from '../../src/protocol/match.ts';
import { establish } from '../../src/protocol/observation.ts';
import { classify, observedLines } from '../../src/protocol/outcome.ts';
import { canonObserved, singleWrites } from '../../src/protocol/profile.ts';
import type { Registration, Target } from '../../src/protocol/registration.ts';
import type { Row, Value } from '../../src/protocol/value.ts';
import { multisetOf, without } from './multiset.ts';

const keyed: Target = { name: 't', columns: ['id', 'a', 'b'], key: ['id'], volatile: [] };
const loose: Target = { name: 'log', columns: ['a', 'b'], key: [], volatile: [] };
const under = (profile: Profile, targets: readonly Target[] = [keyed, loose]): Registration => ({
  profile,
  values: 'plain',
  targets,
});
const fold = (records: readonly ChangeRecord[], targets?: readonly Target[]) =>
  canonObserved(under('net-state', targets), records);
const list = (records: readonly ChangeRecord[], targets?: readonly Target[]) =>
  canonObserved(under('row-event', targets), records);

function assertSameBag(actual: readonly Effect[], expected: readonly Effect[]): void {
  const text = (effects: readonly Effect[]) => effects.map(canonical).sort();
  assert.deepEqual(text(actual), text(expected));
}

// The model: a table is a map from id to row, writes happen to it one by one and are recorded as
// they happen.

type Table = Map<number, { a: Value; b: Value }>;
interface Write {
  readonly what: 'insert' | 'update' | 'delete' | 'rekey';
  readonly id: number;
  readonly newId: number;
  readonly a: number;
  readonly b: number | undefined;
  /** Whole images with key, whole images without, or (for updates) changed columns only. */
  readonly images: 'whole' | 'keyless' | 'changed';
  readonly keyed: boolean;
}

const write: fc.Arbitrary<Write> = fc.record({
  what: fc.constantFrom('insert', 'update', 'update', 'delete', 'rekey'),
  id: fc.integer({ min: 0, max: 3 }),
  newId: fc.integer({ min: 0, max: 3 }),
  a: fc.integer({ min: 0, max: 2 }),
  b: fc.option(fc.integer({ min: 0, max: 1 }), { nil: undefined }),
  images: fc.constantFrom('whole', 'keyless', 'changed'),
  keyed: fc.boolean(),
});

function record(write: Write, table: Table): ChangeRecord | undefined {
  const { what, id, newId, a, b, images } = write;
  const old = table.get(id);
  const image = (key: number, row: Row): Row =>
    images === 'whole' || !write.keyed ? { id: key, ...row } : row;
  const key = images === 'whole' && !write.keyed ? null : { id };
  if (what === 'insert') {
    if (old !== undefined) return undefined;
    const row = { a, b: b ?? null };
    table.set(id, row);
    return { op: 'insert', target: 't', key, before: null, after: image(id, row) };
  }
  if (old === undefined) return undefined;
  if (what === 'delete') {
    table.delete(id);
    return { op: 'delete', target: 't', key, before: image(id, old), after: null };
  }
  const row = { a, b: b ?? old.b };
  if (what === 'rekey') {
    if (table.has(newId)) return undefined;
    table.delete(id);
    table.set(newId, row);
    return { op: 'update', target: 't', key, before: { id, ...old }, after: { id: newId, ...row } };
  }
  table.set(id, row);
  if (images !== 'changed')
    return { op: 'update', target: 't', key, before: image(id, old), after: image(id, row) };
  return {
    op: 'update',
    target: 't',
    key: { id },
    before: { a: old.a, ...(b !== undefined && { b: old.b }) },
    after: { a, ...(b !== undefined && { b }) },
  };
}

function differenceOf(before: Table, after: Table): readonly Effect[] {
  const effects: Effect[] = [];
  for (const id of new Set([...before.keys(), ...after.keys()])) {
    const [was, is] = [before.get(id), after.get(id)];
    const key = { id };
    if (was === undefined && is !== undefined)
      effects.push({ op: 'insert', target: 't', key, after: is });
    if (was !== undefined && is === undefined)
      effects.push({ op: 'delete', target: 't', key, before: was });
    if (was === undefined || is === undefined) continue;
    const changed = (['a', 'b'] as const).filter((column) => was[column] !== is[column]);
    const pick = (row: { a: Value; b: Value }): Row =>
      Object.fromEntries(changed.map((column) => [column, row[column]]));
    if (changed.length > 0)
      effects.push({ op: 'update', target: 't', key, before: pick(was), after: pick(is) });
  }
  return effects;
}

test('property: net-state is the difference between the state before and the state after', () => {
  const start = fc.uniqueArray(fc.integer({ min: 0, max: 3 }));
  let rewritten = 0;
  fc.assert(
    fc.property(start, fc.array(write, { maxLength: 20, size: 'max' }), (ids, writes) => {
      const table: Table = new Map(ids.map((id) => [id, { a: id % 2, b: null }]));
      const before = structuredClone(table);
      const records = writes.flatMap((one) => record(one, table) ?? []);
      assertSameBag(fold(records), differenceOf(before, table));
      if (records.length > 4) rewritten += 1;
    }),
    { numRuns: 3000 },
  );
  assert.ok(rewritten > 500, 'long sequences were common');
});

const cellsOf = (row: Row | undefined) =>
  row && Object.fromEntries(Object.entries(row).map(([column, is]) => [column, { is }]));

/** An approval of exactly these effects. */
function approving(effects: readonly Effect[]) {
  const approved = effects.map(({ op, target, key, before, after }) => ({
    ...{ op, target, count: 1 },
    ...(key && { key: cellsOf(key) as CellRow }),
    ...(before && { before: cellsOf(before) as CellRow }),
    ...(after && { after: cellsOf(after) as CellRow }),
  }));
  return prepareApproved({ registration: under('net-state'), effects: approved });
}

test('property: writes that match one by one are the difference, whatever else was approved', () => {
  const start = fc.uniqueArray(fc.integer({ min: 0, max: 3 }));
  const seen = { matched: 0, rewritten: 0 };
  fc.assert(
    fc.property(start, fc.array(write, { maxLength: 5 }), fc.boolean(), (ids, writes, naive) => {
      const table: Table = new Map(ids.map((id) => [id, { a: id % 2, b: null }]));
      const before = structuredClone(table);
      const records = writes.flatMap((one) => record(one, table) ?? []);
      const difference = differenceOf(before, table);
      const singly = [...singleWrites(under('net-state'), records)];
      // Approving each write by itself is wrong as soon as one row is written twice.
      const all = singly.every((effect) => effect !== undefined);
      const prepared = approving(naive && all ? singly : difference);
      const isMatched = matchWrites(prepared, singly);
      const rows = new Set(singly.map((effect) => effect?.key?.id));
      if (all && rows.size === singly.length) assert.equal(isMatched, true);
      if (all && rows.size < singly.length) seen.rewritten += 1;
      if (!isMatched) return;
      seen.matched += 1;
      assertSameBag([...exactEffects(prepared)], difference);
      assert.deepEqual([...observedLines(exactEffects(prepared))], [...observedLines(difference)]);
    }),
    { numRuns: 3000 },
  );
  assert.ok(seen.matched > 300 && seen.rewritten > 100, JSON.stringify(seen));
});

test('E is put together only when it is asked for', () => {
  const ids = Array.from({ length: 1500 }, (_, id) => id);
  const rows = ids.map((id) => ({
    op: 'insert' as const,
    target: 't',
    key: { id },
    after: { a: 1, b: id },
  }));
  let read = 0;
  const records: ChangeRecords = {
    length: rows.length,
    counts: [{ target: 't', op: 'insert', count: rows.length }],
    *[Symbol.iterator]() {
      read += 1;
      for (const { op, target, key, after } of rows)
        yield { op, target, key: null, before: null, after: { ...key, ...after } };
    },
  };
  const evidence = {
    ...{ candidate: 'c', evidence: 'e', records, unattributed: 0, assigned: [] },
    channels: [{ channel: 'r', kind: 'records' as const, count: rows.length }],
    window: { fromMs: 0, toMs: 0 },
  };
  const observation = establish(evidence, under('net-state'), ['r']);
  assert.equal(read, 0);
  const outcome = classify(approving(rows), observation, evidence);
  assert.deepEqual([outcome.kind, read], ['EXACT', 1]);
  assert.ok(outcome.kind === 'EXACT');
  assertSameBag(outcome.effects, rows);
  const other = classify(approving(rows.slice(1)), observation, evidence);
  assert.ok(other.kind === 'DIVERGED' && other.diff.extra.length === 1);
  const miscounted = { ...evidence, records: { ...records, counts: [] } };
  const gross = { channel: 'w', kind: 'counts' as const, counts: records.counts ?? [] };
  const gaps = establish(
    { ...miscounted, channels: [...evidence.channels, gross] },
    under('net-state'),
    ['r'],
  );
  assert.equal(gaps.kind, 'incomplete');
});

test('property: rows without a key compare as the difference of two multisets', () => {
  const rows = fc.array(
    fc.record({ a: fc.integer({ min: 0, max: 1 }), b: fc.integer({ min: 0, max: 1 }) }),
    {
      maxLength: 5,
    },
  );
  fc.assert(
    fc.property(rows, rows, fc.array(fc.nat(), { maxLength: 6 }), (removed, added, updated) => {
      const state: Row[] = [...removed];
      const records: ChangeRecord[] = [];
      for (const after of added) {
        state.push(after);
        records.push({ op: 'insert', target: 'log', key: null, before: null, after });
      }
      for (const choice of updated) {
        const before = state[choice % state.length];
        if (before === undefined) continue;
        const after = { ...before, a: 7 };
        state[choice % state.length] = after;
        records.push({ op: 'update', target: 'log', key: null, before, after });
      }
      const dropped = state.splice(0, updated.length);
      for (const before of dropped)
        records.push({ op: 'delete', target: 'log', key: null, before, after: null });
      const bag = (list: readonly Row[]) =>
        multisetOf(list.map((after): Effect => ({ op: 'insert', target: 'log', after })));
      const net = fold(records);
      const inserted = net.filter(({ op }) => op === 'insert').map(({ after }) => after as Row);
      const deleted = net.filter(({ op }) => op === 'delete').map(({ before }) => before as Row);
      assert.equal(
        inserted.length + deleted.length,
        net.length,
        'rows without a key are inserted or deleted',
      );
      assert.deepEqual(bag(inserted), without(bag(state), bag(removed)));
      assert.deepEqual(bag(deleted), without(bag(removed), bag(state)));
    }),
    { numRuns: 1000 },
  );
});

test('row-event keeps every write, two that cancel out and one that changes nothing included', () => {
  const there: ChangeRecord = {
    op: 'update',
    target: 't',
    key: { id: 1 },
    before: { id: 1, a: 1, b: 2 },
    after: { id: 1, a: 5, b: 2 },
  };
  const back: ChangeRecord = { ...there, before: there.after, after: there.before };
  const nothing: ChangeRecord = { ...there, after: there.before };
  assert.deepEqual(list([there, back, nothing]), [
    { op: 'update', target: 't', key: { id: 1 }, before: { a: 1 }, after: { a: 5 } },
    { op: 'update', target: 't', key: { id: 1 }, before: { a: 5 }, after: { a: 1 } },
    { op: 'update', target: 't', key: { id: 1 }, before: {}, after: {} },
  ]);
  assert.deepEqual(fold([there, back, nothing]), []);
});

test('row-event takes key columns out of the images and lists them where an update changes them', () => {
  assert.deepEqual(
    list([
      { op: 'insert', target: 't', key: null, before: null, after: { id: 1, a: 0, b: null } },
      {
        op: 'update',
        target: 't',
        key: { id: 1 },
        before: { a: 0, b: null },
        after: { id: 2, a: 0, b: null },
      },
      { op: 'delete', target: 't', key: { id: 2 }, before: { id: 2, a: 0, b: null }, after: null },
      { op: 'insert', target: 'log', key: null, before: null, after: { a: 1, b: 2 } },
    ]),
    [
      { op: 'insert', target: 't', key: { id: 1 }, after: { a: 0, b: null } },
      { op: 'update', target: 't', key: { id: 1 }, before: { id: 1 }, after: { id: 2 } },
      { op: 'delete', target: 't', key: { id: 2 }, before: { a: 0, b: null } },
      { op: 'insert', target: 'log', after: { a: 1, b: 2 } },
    ],
  );
});

test('relation-write keeps operation and target alone', () => {
  const records: ChangeRecord[] = [
    { op: 'update', target: 't', key: { id: 1 }, before: { a: 1 }, after: { a: 2 } },
    { op: 'update', target: 't', key: null, before: null, after: null },
  ];
  const effect = { op: 'update', target: 't' };
  assert.deepEqual(canonObserved(under('relation-write'), records), [effect, effect]);
});

test('a key may consist of several columns, and null is a value like others', () => {
  const target: Target = { name: 'p', columns: ['x', 'y', 'v'], key: ['y', 'x'], volatile: [] };
  const row = (x: Value, y: Value): ChangeRecord => ({
    op: 'insert',
    target: 'p',
    key: { y, x },
    before: null,
    after: { x, y, v: 1 },
  });
  assertSameBag(fold([row(1, null), row(null, 1)], [target]), [
    { op: 'insert', target: 'p', key: { x: 1, y: null }, after: { v: 1 } },
    { op: 'insert', target: 'p', key: { x: null, y: 1 }, after: { v: 1 } },
  ]);
});

test('volatile columns are kept, need not be reported, and need not be among the compared ones', () => {
  const target: Target = { name: 't', columns: ['id', 'a'], key: ['id'], volatile: ['at'] };
  const insert: ChangeRecord = {
    op: 'insert',
    target: 't',
    key: { id: 1 },
    before: null,
    after: { a: 1 },
  };
  assert.deepEqual(fold([insert], [target]), [
    { op: 'insert', target: 't', key: { id: 1 }, after: { a: 1 } },
  ]);
  const touched: ChangeRecord = {
    op: 'update',
    target: 't',
    key: { id: 1 },
    before: { at: 1 },
    after: { at: 2 },
  };
  assert.deepEqual(fold([touched], [target]), [
    { op: 'update', target: 't', key: { id: 1 }, before: { at: 1 }, after: { at: 2 } },
  ]);
});

test('records of a target that is not registered stay as they are', () => {
  const record: ChangeRecord = {
    op: 'update',
    target: 'other',
    key: null,
    before: { x: 1 },
    after: { x: 1 },
  };
  const effect = { op: 'update', target: 'other', before: { x: 1 }, after: { x: 1 } };
  assert.deepEqual(list([record]), [effect]);
  assert.deepEqual(fold([record, record]), [effect, effect]);
});

test('columns named like what every object inherits are columns like others', () => {
  const target: Target = {
    name: 't',
    columns: ['id', 'constructor', 'toString'],
    key: ['id'],
    volatile: ['valueOf'],
  };
  const update: ChangeRecord = {
    op: 'update',
    target: 't',
    key: { id: 1 },
    before: { constructor: 1 },
    after: { constructor: 2 },
  };
  const effect = {
    op: 'update',
    target: 't',
    key: { id: 1 },
    before: { constructor: 1 },
    after: { constructor: 2 },
  };
  assert.deepEqual(list([update], [target]), [effect]);
  assert.deepEqual(fold([update], [target]), [effect]);
  assert.throws(() => list([update], [{ ...target, columns: ['__proto__'] }]), {
    code: 'ERR_EM_INVARIANT',
  });
});

const row = { a: 1, b: 2 };
const insert: ChangeRecord = {
  op: 'insert',
  target: 't',
  key: { id: 1 },
  before: null,
  after: row,
};
const remove: ChangeRecord = {
  op: 'delete',
  target: 't',
  key: { id: 1 },
  before: row,
  after: null,
};
const change: ChangeRecord = {
  op: 'update',
  target: 't',
  key: { id: 1 },
  before: { a: 1 },
  after: { a: 2 },
};

for (const [what, records] of [
  ['a column that is not registered', [{ ...insert, after: { ...row, c: 1 } }]],
  ['an undefined column', [{ ...insert, after: { ...row, b: undefined as unknown as Value } }]],
  ['an inserted row that lacks a column', [{ ...insert, after: { a: 1 } }]],
  ['an inserted row without an image', [{ ...insert, after: null }]],
  ['a deleted row that lacks a column', [{ ...remove, before: { b: 1 } }]],
  ['an insert with an image from before', [{ ...insert, before: row }]],
  ['a delete with an image from after', [{ ...remove, after: row }]],
  ['an update with a column on one side only', [{ ...change, after: { a: 2, b: 1 } }]],
  ['a row without its key', [{ ...insert, key: null }]],
  ['another key than the registered one', [{ ...insert, key: { a: 1 } }]],
  ['a key with too many columns', [{ ...insert, key: { id: 1, a: 1 } }]],
  ['a key where the target has none', [{ ...insert, target: 'log' }]],
  ['a key that its image contradicts', [{ ...insert, after: { id: 2, ...row } }]],
] as const satisfies readonly (readonly [string, readonly ChangeRecord[]])[]) {
  test(`${what} is a fault of the adapter`, () => {
    assert.throws(() => list(records), { code: 'ERR_EM_INVARIANT' });
    assert.throws(() => fold(records), { code: 'ERR_EM_INVARIANT' });
  });
}

for (const [what, records] of [
  ['insert of a key that exists', [insert, insert]],
  ['insert of a key that an update has shown to exist', [change, insert]],
  ['update after delete', [remove, change]],
  ['delete after delete', [remove, remove]],
  ['an update that does not continue from the one before', [change, change]],
  ['a delete that does not continue from the update before', [change, remove]],
  [
    'a row moved onto an existing one',
    [insert, { ...change, key: { id: 2 }, before: { id: 2, ...row }, after: { id: 1, ...row } }],
  ],
  [
    'a row moved away twice',
    [
      { ...change, before: { id: 1, ...row }, after: { id: 2, ...row } },
      { ...change, before: { id: 1, ...row }, after: { id: 3, ...row } },
    ],
  ],
  ['a changed key without the whole row', [{ ...change, after: { id: 2, a: 2 } }]],
  [
    'an update of a row without a key that lacks a column',
    [{ ...change, target: 'log', key: null }],
  ],
] as const satisfies readonly (readonly [string, readonly ChangeRecord[]])[]) {
  test(`${what} cannot be folded`, () => {
    assert.throws(() => fold(records), { code: 'ERR_EM_INVARIANT' });
  });
}

test('a changed key needs no whole images where earlier records have told the row', () => {
  const moved: ChangeRecord = { ...change, before: { a: 1 }, after: { id: 2, a: 3 } };
  assert.deepEqual(fold([insert, moved]), [
    { op: 'insert', target: 't', key: { id: 2 }, after: { a: 3, b: 2 } },
  ]);
});

test('registered-fields: an entry is its fields as they were read back, whatever they were, whole or not at all', () => {
  const fields = (records: readonly ChangeRecord[]) =>
    canonObserved(under('registered-fields'), records);
  const after = { id: 7, a: 1, b: 'x' };
  const expected = { target: 't', key: { id: 7 }, after: { a: 1, b: 'x' } };
  for (const op of ['insert', 'update'] as const) {
    for (const before of [null, { id: 7, a: 0, b: 'x' }]) {
      assert.deepEqual(fields([{ op, target: 't', key: { id: 7 }, before, after }]), [
        { op, ...expected },
      ]);
    }
    const partial = { op, target: 't', key: { id: 7 }, before: null, after: { a: 1 } };
    assert.throws(() => fields([partial]), { code: 'ERR_EM_INVARIANT' });
    const strange = { op, target: 't', key: { id: 7 }, before: null, after: { ...after, c: 1 } };
    assert.throws(() => fields([strange]), { code: 'ERR_EM_INVARIANT' });
  }
  const gone: ChangeRecord = {
    op: 'delete',
    target: 't',
    key: { id: 7 },
    before: after,
    after: null,
  };
  assert.deepEqual(fields([gone]), [
    { op: 'delete', target: 't', key: { id: 7 }, before: { a: 1, b: 'x' } },
  ]);
  const stranger: ChangeRecord = {
    op: 'insert',
    target: 'elsewhere',
    key: null,
    before: null,
    after: { z: 1 },
  };
  assert.deepEqual(fields([stranger]), [{ op: 'insert', target: 'elsewhere', after: { z: 1 } }]);
});

test('an element that somebody has put on the prototype of lists is nobody’s row', () => {
  const row = { id: 1, a: 1, b: 1 };
  const inserted: ChangeRecord = { op: 'insert', target: 't', key: null, before: null, after: row };
  const expected = fold([inserted]);
  Object.assign(Array.prototype, { 0: expected[0]?.after });
  try {
    assert.equal(fold([inserted]).length, 1);
  } finally {
    Reflect.deleteProperty(Array.prototype, '0');
  }
  assert.equal(expected.length, 1);
});
