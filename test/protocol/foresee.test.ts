// Goal: an approval is refused early only if no execution could have its outcome. Method: random
// tables and random writes; whatever these writes really do must never be called impossible, however
// loosely it is approved. Then one example of everything that is refused, written out by hand.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  any,
  between,
  count,
  from,
  generated,
  insert,
  matches,
  now,
  oneOf,
  remove,
  to,
  update,
} from '../../src/protocol/draft.ts';
import type {
  ApprovedEffect,
  Cell,
  CellRow,
  ChangeRecord,
  Effect,
  Profile,
  StateReading,
} from '../../src/protocol/effect.ts';
import {
  findContradictions,
  findImpossible,
  foreseeable,
  foreseeingRead,
} from '../../src/protocol/foresee.ts';
import type { Approved } from '../../src/protocol/manifest.ts';
import { canonObserved } from '../../src/protocol/profile.ts';
import type { Row, Value } from '../../src/protocol/value.ts';

type Table = ReadonlyMap<number, Row>;

function approvedOf(
  effects: ApprovedEffect[],
  profile: Profile,
  values: 'plain' | 'digest' = 'plain',
): Approved {
  const target = { name: 't', columns: ['id', 'a', 'b'], key: ['id'], volatile: [] };
  const registration = { profile, values, targets: [target] };
  const rest = { requires: [], watch: [], salt: '0'.repeat(32) };
  return { version: 1, adapter: 'db', registration, effects, ...rest };
}

/** Everything that is found to be wrong, with the rows as they are. */
function refusals(
  effects: readonly ApprovedEffect[],
  rows: Table,
  profile: Profile = 'net-state',
  values: 'plain' | 'digest' = 'plain',
): readonly string[] {
  const approved = approvedOf([...effects], profile, values);
  const foreseen = foreseeable(approved);
  const readings = foreseen.map(foreseeingRead).map((read): StateReading => {
    const row = rows.get(Number(read.key.id));
    const chosen = read.columns?.map((column) => [column, row?.[column] ?? null] as const);
    return { ...read, row: row === undefined ? null : Object.fromEntries(chosen ?? []) };
  });
  return [...findContradictions(approved), ...findImpossible(approved, foreseen, readings)];
}

const ROWS: Table = new Map([
  [1, { id: 1, a: 10, b: 'x' }],
  [2, { id: 2, a: 20, b: null }],
]);

for (const [what, effect, why] of [
  [
    'an insert of a row that exists',
    insert('t', { id: 1, a: 1, b: 'y' }),
    /the row exists already/,
  ],
  ['an update of a missing row', update('t', { id: 9 }, { a: [1, 2] }), /there is no such row/],
  ['a delete of a missing row', remove('t', { id: 9 }), /there is no such row/],
  ['a before that is false', update('t', { id: 1 }, { a: [11, 12] }), /: a is 10 now$/],
  ['a delete whose before is false', remove('t', { id: 2 }, { b: 'x' }), /: b is null now$/],
  ['a list without the value', update('t', { id: 1 }, { a: from(oneOf(1, 2), 3) }), /a is 10 now/],
  ['a range around others', update('t', { id: 1 }, { a: from(between(11, 20), 3) }), /a is 10 now/],
  ['a pattern that fails', update('t', { id: 1 }, { b: from(matches('y+'), 'z') }), /b is "x" now/],
  [
    'a value that is there already',
    update('t', { id: 1 }, { a: to(10) }),
    /a has this value already/,
  ],
] as const) {
  test(`refused: ${what}`, () => {
    const keyed = effect.op === 'insert' ? { ...effect, key: { id: { is: 1 } } } : effect;
    for (const profile of ['net-state', 'row-event'] as const)
      assert.match(refusals([keyed], ROWS, profile)[0] ?? '', why, profile);
  });
}

test('what is found is not told where values must not be kept', () => {
  const [refusal] = refusals(
    [update('t', { id: 1 }, { a: [11, 12] })],
    ROWS,
    'net-state',
    'digest',
  );
  assert.equal(refusal, '~ t id=1  a: 11 -> 12: a is something else now');
});

test('several changes of one row contradict each other where only its net change is compared', () => {
  const twice = [update('t', { id: 1 }, { a: [10, 11] }), update('t', { id: 1 }, { a: [11, 12] })];
  assert.deepEqual(refusals(twice, ROWS), [
    '~ t id=1  a: 10 -> 11 and ~ t id=1  a: 11 -> 12: only the net change of a row is compared; state it as one change',
  ]);
  assert.deepEqual(refusals(twice, ROWS, 'row-event'), []);
  const replaced: readonly ApprovedEffect[] = [
    remove('t', { id: 1 }),
    { ...insert('t', { a: 1, b: 'x' }), key: { id: { is: 1 } } },
  ];
  assert.match(refusals(replaced, ROWS)[0] ?? '', /state it as one change/);
  assert.deepEqual(refusals(replaced, ROWS, 'row-event'), []);
  const counted = count(update('t', { id: 1 }, { a: [10, 11] }), 2);
  assert.match(refusals([counted], ROWS)[0] ?? '', /so it happens once/);
});

test('what only the execution can tell is left to it', () => {
  const later: readonly ApprovedEffect[] = [
    update('t', { id: 1 }, { b: from(now({ within: '1s' }), 'y') }),
    update('t', { id: oneOf(8, 9) }, { a: [1, 2] }),
    { ...insert('t', { a: 1, b: 'x' }), key: { id: { generated: 'n' } } },
    remove('t', { id: 2 }, { a: any() }),
  ];
  assert.deepEqual(refusals(later, ROWS), []);
  assert.deepEqual(refusals([update('t', { id: 2 }, { b: from(generated('n'), 'y') })], ROWS), []);
  for (const profile of ['relation-write', 'registered-fields'] as const)
    assert.deepEqual(refusals([update('t', { id: 9 }, { a: [1, 2] })], ROWS, profile), []);
});

test('under row-event a row may get to its key by another event', () => {
  const moved = update('t', { id: 1 }, { id: [1, 9] });
  assert.deepEqual(
    refusals([moved, update('t', { id: 9 }, { a: [10, 11] })], ROWS, 'row-event'),
    [],
  );
});

const small = fc.integer({ min: 0, max: 2 });
const cells = fc.record({ a: small, b: fc.constantFrom<Value>('x', 'y', null) });
const table = fc
  .uniqueArray(fc.tuple(fc.integer({ min: 1, max: 4 }), cells), { selector: ([id]) => id })
  .map((rows): Table => new Map(rows.map(([id, row]) => [id, { id, ...row }])));
const write = fc.record({
  op: fc.constantFrom('insert', 'update', 'delete', 'move'),
  id: fc.integer({ min: 1, max: 4 }),
  to: fc.integer({ min: 1, max: 4 }),
  row: cells,
});

interface Write {
  readonly op: string;
  readonly id: number;
  readonly to: number;
  readonly row: Row;
}

/** Plays writes on a table, as far as they are possible, and records what they did. */
function play(rows: Table, writes: readonly Write[]): ChangeRecord[] {
  const state = new Map(rows);
  const records: ChangeRecord[] = [];
  for (const { op, id, to: other, row } of writes) {
    const before = state.get(id) ?? null;
    const target = 't';
    if (op === 'insert' && before === null) {
      state.set(id, { id, ...row });
      records.push({ op, target, key: { id }, before: null, after: { id, ...row } });
    } else if (op === 'delete' && before !== null) {
      state.delete(id);
      records.push({ op, target, key: { id }, before, after: null });
    } else if (op === 'update' && before !== null) {
      state.set(id, { id, ...row });
      records.push({ op, target, key: { id }, before, after: { id, ...row } });
    } else if (op === 'move' && before !== null && !state.has(other)) {
      const after = { ...before, id: other };
      state.delete(id);
      state.set(other, after);
      records.push({ op: 'update', target, key: { id }, before, after });
    }
  }
  return records;
}

/** An approval that the effect satisfies: exact, or with constraints that its values meet. */
function loosen(effect: Effect, choose: () => number): ApprovedEffect {
  const cell = (value: Value): Cell => {
    const others: readonly Cell[] = [
      { is: value },
      { any: true },
      { oneOf: [value, 7] },
      ...(typeof value === 'number' ? [{ between: [value, value + 1] as const }] : []),
      ...(typeof value === 'string' ? [{ matches: '[xy]' }] : []),
    ];
    return others[choose() % others.length] ?? { is: value };
  };
  const cellsOf = (row: Row): CellRow =>
    Object.fromEntries(Object.entries(row).map(([column, value]) => [column, cell(value)]));
  const exact = (row: Row): CellRow =>
    Object.fromEntries(Object.entries(row).map(([column, is]) => [column, { is }]));
  const { op, target, key, before, after } = effect;
  return {
    op,
    target,
    ...(key !== undefined && { key: choose() === 0 ? cellsOf(key) : exact(key) }),
    ...(before !== undefined && { before: cellsOf(before) }),
    ...(after !== undefined && { after: cellsOf(after) }),
    count: 1,
  };
}

test('property: what writes really do is never called impossible', () => {
  let refusable = 0;
  const profiles = fc.constantFrom<Profile>('net-state', 'row-event');
  fc.assert(
    fc.property(
      ...[table, fc.array(write, { maxLength: 6 }), profiles, fc.infiniteStream(fc.nat(20))],
      (rows, writes, profile, stream) => {
        const choose = () => Number(stream.next().value) % 5;
        const registration = approvedOf([], profile).registration;
        const observed = canonObserved(registration, play(rows, writes));
        const effects = observed.map((effect) => loosen(effect, choose));
        assert.deepEqual(refusals(effects, rows, profile), []);
        refusable += foreseeable(approvedOf(effects, profile)).length;
      },
    ),
    { numRuns: 3000 },
  );
  assert.ok(refusable > 1000, `only ${refusable} rows were looked at`);
});
