// Goal: comparison is exact. Equal means that a match exists which respects counts, constraints and
// labels; different means that none exists; and what cannot be decided within the budget is said to
// be undecided. Method: brute force over all assignments as an independent oracle, and named cases
// for counts and volatile columns.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { canonical } from '../../src/protocol/canon.ts';
import type { ApprovedEffect, Effect } from '../../src/protocol/effect.ts';
import { matchBags, prepareApproved } from '../../src/protocol/match.ts';
import type { Value } from '../../src/protocol/value.ts';
import {
  any,
  bruteForce,
  compare,
  countedCase,
  is,
  smallCase,
  touchedCase,
} from './match-cases.ts';

for (const [what, cases, numRuns, often] of [
  ['small bags with labels and constraints', smallCase, 6000, 300],
  ['bags with multiplicities and overlapping constraints', countedCase, 2000, 100],
  ['bags of touched rows', touchedCase, 3000, 300],
] as const) {
  test(`property: agrees with brute force on ${what}`, () => {
    const verdicts = { equal: 0, different: 0 };
    fc.assert(
      fc.property(cases, (one) => {
        const expected = bruteForce(one) ? 'equal' : 'different';
        assert.equal(compare(one.approved, one.observed, one).kind, expected);
        verdicts[expected] += 1;
      }),
      { numRuns },
    );
    assert.ok(
      Math.min(verdicts.equal, verdicts.different) > often,
      `both occur often: ${canonical(verdicts)}`,
    );
  });
}

test('property: a smaller budget leaves more undecided and decides nothing differently', () => {
  let undecided = 0;
  fc.assert(
    fc.property(smallCase, fc.nat({ max: 120 }), (one, budget) => {
      const { kind } = compare(one.approved, one.observed, { ...one, budget });
      if (kind === 'budget') undecided += 1;
      else assert.equal(kind, bruteForce(one) ? 'equal' : 'different');
    }),
    { numRuns: 2000 },
  );
  assert.ok(undecided > 100, `budgets were exceeded ${undecided} times`);
});

test('property: the order in which effects are observed and approved does not matter', () => {
  const inAnyOrder = smallCase.chain((one) =>
    fc.record({
      one: fc.constant(one),
      approved: fc.shuffledSubarray([...one.approved], { minLength: one.approved.length }),
      observed: fc.shuffledSubarray([...one.observed], { minLength: one.observed.length }),
    }),
  );
  fc.assert(
    fc.property(inAnyOrder, ({ one, approved, observed }) => {
      assert.equal(
        compare(approved, observed, one).kind,
        compare(one.approved, one.observed, one).kind,
      );
    }),
    { numRuns: 2000 },
  );
});

const row = (id: number, a: number, b = 0): Effect => ({
  op: 'insert',
  target: 't',
  key: { id },
  after: { a, b },
});
const approveRow = (id: number, a: number, count = 1): ApprovedEffect => ({
  op: 'insert',
  target: 't',
  key: is({ id }),
  after: is({ a, b: 0 }),
  count,
});

test('multiplicity counts in both directions, however large it is', () => {
  assert.equal(compare([approveRow(1, 1, 2)], [row(1, 1), row(1, 1)]).kind, 'equal');
  const tooMany = compare([approveRow(1, 1, 2)], [row(1, 1), row(1, 1), row(1, 1)]);
  assert.deepEqual(tooMany.kind === 'different' && tooMany.diff.extra, [
    { ...row(1, 1), count: 1 },
  ]);
  const tooFew = compare([approveRow(1, 1, 10_000_000)], [row(1, 1)]);
  assert.deepEqual(tooFew.kind === 'different' && tooFew.diff.missing, [
    approveRow(1, 1, 9_999_999),
  ]);
});

test('a constraint with a huge multiplicity is compared without unfolding it', () => {
  const approved: ApprovedEffect = {
    op: 'insert',
    target: 't',
    key: { id: any },
    after: is({ a: 1, b: 0 }),
    count: 10_000_000,
  };
  const result = compare([approved], [row(1, 1), row(2, 1), row(3, 2)], { budget: 100 });
  assert.ok(result.kind === 'different');
  assert.deepEqual(result.diff.missing, [{ ...approved, count: 9_999_998 }]);
  assert.deepEqual(result.diff.extra, [{ ...row(3, 2), count: 1 }]);
});

test('equal approved effects add up, whether or not they were merged', () => {
  assert.equal(compare([approveRow(1, 1), approveRow(1, 1)], [row(1, 1), row(1, 1)]).kind, 'equal');
  assert.equal(compare([approveRow(1, 1), approveRow(1, 1)], [row(1, 1)]).kind, 'different');
  const open = { ...approveRow(1, 1), key: { id: any } };
  assert.equal(compare([open, open], [row(1, 1), row(2, 1)]).kind, 'equal');
  const tooFew = compare([open, open], [row(1, 1)]);
  assert.deepEqual(tooFew.kind === 'different' && tooFew.diff.missing, [open]);
});

test('values are compared as they are stored, not as they compare', () => {
  const pairs = [
    [1, '1'],
    [1, { $real: '1' }],
    [0, false],
    [null, 'null'],
    ['a', 'A'],
    [[], {}],
    [{ $bytes: '61' }, 'a'],
  ] as const;
  for (const [approved, observed] of pairs) {
    const wanted = { ...approveRow(1, 1), after: is({ a: approved, b: 0 }) };
    const seen = { ...row(1, 1), after: { a: observed, b: 0 } };
    assert.equal(compare([wanted], [seen]).kind, 'different', canonical([approved, observed]));
    assert.equal(
      compare([wanted], [{ ...seen, after: { b: 0, a: approved } }]).kind,
      'equal',
      canonical(approved),
    );
  }
});

test('property: exact effects are equal exactly when their texts are, whatever kind of key finds them', () => {
  const id = fc.constantFrom<Value>(
    0,
    1,
    '',
    '0',
    '1',
    'r1:2:idd1;',
    null,
    ['1'],
    { $int: '1' },
    { $dec: '1' },
  );
  const effect = fc.record({ op: fc.constantFrom('insert', 'delete'), id, a: fc.nat(1) }).map(
    ({ op, id, a }): Effect => ({
      op,
      target: 't',
      key: { id },
      [op === 'insert' ? 'after' : 'before']: { a },
    }),
  );
  const approve = ({ op, target, key = {}, before, after }: Effect): ApprovedEffect => ({
    ...{ op, target, key: is(key), count: 1 },
    ...(before && { before: is(before) }),
    ...(after && { after: is(after) }),
  });
  const verdicts = { equal: 0, different: 0 };
  const bags = fc.array(effect, { maxLength: 4 }).chain((observed) =>
    fc.record({
      observed: fc.constant(observed),
      approved: fc.oneof(
        fc.shuffledSubarray(observed, { minLength: observed.length }),
        fc.array(effect),
      ),
    }),
  );
  fc.assert(
    fc.property(bags, ({ observed, approved }) => {
      const texts = (effects: readonly Effect[]) => effects.map(canonical).sort().join();
      const expected = texts(observed) === texts(approved) ? 'equal' : 'different';
      assert.equal(compare(approved.map(approve), observed).kind, expected);
      verdicts[expected] += 1;
    }),
    { numRuns: 2000 },
  );
  assert.ok(Math.min(verdicts.equal, verdicts.different) > 300, canonical(verdicts));
});

test('nothing approved and nothing observed is equal; anything on one side alone is not', () => {
  assert.equal(compare([], []).kind, 'equal');
  assert.equal(compare([], [row(1, 1)]).kind, 'different');
  assert.equal(compare([approveRow(1, 1)], []).kind, 'different');
  assert.equal(compare([{ ...approveRow(1, 1), key: { id: any } }], []).kind, 'different');
});

test('an effect with fewer or more columns than approved is another effect', () => {
  assert.equal(
    compare([{ ...approveRow(1, 1), after: is({ a: 1 }) }], [row(1, 1)]).kind,
    'different',
  );
  assert.equal(
    compare([{ ...approveRow(1, 1), after: { a: any } }], [row(1, 1)]).kind,
    'different',
  );
  assert.equal(
    compare([{ ...approveRow(1, 1), key: { id: any } }], [{ ...row(1, 1), after: { a: 1 } }]).kind,
    'different',
  );
});

test('constrained effects find their partners even where the first choice was wrong', () => {
  const wanted = (values: number[]): ApprovedEffect => ({
    ...approveRow(0, 0),
    key: { id: { oneOf: values } },
    after: { a: any, b: any },
  });
  const chain = [wanted([1, 2]), wanted([1, 3]), wanted([2, 4]), wanted([1])];
  assert.equal(compare(chain, [row(1, 0), row(2, 0), row(3, 0), row(4, 0)]).kind, 'equal');
  const result = compare(chain, [row(1, 0), row(2, 0), row(4, 0), row(5, 0)]);
  assert.ok(result.kind === 'different' && result.reason === 'effects');
  assert.equal(result.diff.missing.length, 1);
  assert.deepEqual(result.diff.extra, [{ ...row(5, 0), count: 1 }]);
});

test('many approved effects without a partner are found without searching for each of them anew', () => {
  const rows = 40;
  const taken = Array.from({ length: rows / 2 }, (_, index) => index);
  const approved = Array.from(
    { length: rows },
    (_, index): ApprovedEffect => ({
      ...approveRow(0, 0),
      key: { id: { oneOf: [...taken, 1000 + index] } },
    }),
  );
  const result = compare(
    approved,
    taken.map((id) => row(id, 0)),
    { budget: 6 * rows * taken.length },
  );
  assert.ok(result.kind === 'different');
  assert.equal(result.diff.missing.length, rows / 2);
});

// Volatile columns: b is one. Not compared on rows that A names; a row that A does not name is
// still an extra effect.

const touch = (id: number, was: number, now: number): Effect => ({
  op: 'update',
  target: 't',
  key: { id },
  before: { b: was },
  after: { b: now },
});
const set = (id: number, a: number, b: number): Effect => ({
  op: 'update',
  target: 't',
  key: { id },
  before: { a: 0, b: 0 },
  after: { a, b },
});
const approveSet = (id: number, a: number): ApprovedEffect => ({
  op: 'update',
  target: 't',
  key: is({ id }),
  before: is({ a: 0 }),
  after: is({ a }),
  count: 1,
});
const volatile = ['b'];

test('a volatile column is not compared on a row that A names', () => {
  assert.equal(compare([approveSet(1, 5)], [set(1, 5, 9)], { volatile }).kind, 'equal');
  assert.equal(
    compare([approveSet(1, 5)], [set(1, 5, 9)]).kind,
    'different',
    'unless it is not volatile',
  );
  const names = { ...approveSet(1, 5), after: is({ a: 5, b: 7 }), before: is({ a: 0, b: 7 }) };
  assert.equal(
    compare([names], [set(1, 5, 9)], { volatile }).kind,
    'equal',
    'even where A names the column',
  );
  assert.equal(compare([approveSet(1, 5)], [set(1, 6, 9)], { volatile }).kind, 'different');
});

test('a further write of volatile columns alone belongs to the row that A names, and only to that', () => {
  assert.equal(
    compare([approveSet(1, 5)], [set(1, 5, 9), touch(1, 9, 10), touch(1, 10, 11)], { volatile })
      .kind,
    'equal',
  );
  const result = compare([approveSet(1, 5)], [set(1, 5, 9), touch(2, 0, 1)], { volatile });
  assert.deepEqual(result.kind === 'different' && result.diff.extra, [
    { ...touch(2, 0, 1), count: 1 },
  ]);
});

test('a write of volatile columns alone does not name its row', () => {
  const result = compare([], [touch(1, 0, 1), touch(1, 1, 2)], { volatile });
  assert.ok(result.kind === 'different');
  assert.deepEqual(result.diff.extra, [
    { ...touch(1, 0, 1), count: 1 },
    { ...touch(1, 1, 2), count: 1 },
  ]);
});

test('a touched row whose real change does not match stays in the diff with both', () => {
  const result = compare([approveSet(2, 5)], [set(1, 5, 9), touch(1, 9, 10)], { volatile });
  assert.ok(result.kind === 'different');
  assert.equal(result.diff.extra.length, 2);
});

test('an update of volatile columns alone can be approved, and then must happen', () => {
  const approved: ApprovedEffect = {
    op: 'update',
    target: 't',
    key: is({ id: 1 }),
    before: { b: any },
    after: { b: any },
    count: 1,
  };
  assert.equal(compare([approved], [touch(1, 0, 1)], { volatile }).kind, 'equal');
  assert.equal(compare([approved], [touch(1, 0, 1), touch(1, 1, 2)], { volatile }).kind, 'equal');
  assert.equal(compare([approved], [], { volatile }).kind, 'different');
  assert.equal(compare([approved], [touch(2, 0, 1)], { volatile }).kind, 'different');
  const rewrite: Effect = { op: 'update', target: 't', key: { id: 1 }, before: {}, after: {} };
  assert.equal(
    compare([approved], [touch(1, 0, 1), rewrite], { volatile }).kind,
    'equal',
    'the write of nothing is it',
  );
  assert.equal(
    compare([approved], [rewrite, rewrite], { volatile }).kind,
    'different',
    'writing nothing twice is twice',
  );
});

test('a key column is compared even if it was declared volatile', () => {
  assert.equal(
    compare([approveRow(1, 1)], [row(2, 1)], { volatile: ['id', 'b'] }).kind,
    'different',
  );
});

test('under relation-write only operation, relation and count are compared', () => {
  const registration = {
    profile: 'relation-write',
    values: 'plain',
    targets: [{ name: 't', columns: [], key: [], volatile: [] }],
  } as const;
  const prepared = prepareApproved({
    registration,
    effects: [{ op: 'update', target: 't', count: 2 }],
  });
  const context = { assigned: [], window: { fromMs: 0, toMs: 0 } };
  const write = { op: 'update', target: 't' } as const;
  assert.equal(matchBags(prepared, [write, write], context).kind, 'equal');
  const result = matchBags(prepared, [write, write, write, { op: 'delete', target: 't' }], context);
  assert.deepEqual(result.kind === 'different' && result.diff.extra, [
    { op: 'delete', target: 't', count: 1 },
    { op: 'update', target: 't', count: 1 },
  ]);
});

const noted = (pattern: string, count: number): ApprovedEffect => ({
  op: 'insert',
  target: 't',
  after: { a: { matches: pattern } },
  count,
});
const notes = (count: number, text: (row: number) => string): Effect[] =>
  Array.from({ length: count }, (_, row) => ({
    op: 'insert',
    target: 't',
    after: { a: text(row) },
  }));

test('what patterns cost is taken from the same budget: a costly pattern on long texts is given up, not waited for', () => {
  // One text of 4,096 letters keeps some 500 states busy at every letter: two million steps for
  // each pair.
  const approved = Array.from({ length: 20 }, (_, index) => noted(`(a?){250}a{250}b{${index}}`, 1));
  const observed = notes(20, (row) => `${'a'.repeat(4000)}${row}`);
  const result = compare(approved, observed, { budget: 20_000 });
  assert.ok(result.kind === 'budget', result.kind);
  assert.ok(
    result.steps < 40_000,
    `${result.steps} steps: a run that uses up the budget ends with it`,
  );
});

test('a usual pattern on many rows stays far within the budget', () => {
  const approved = [noted('INV-\\d{6}-[a-f0-9]{8}', 10_000)];
  const observed = notes(10_000, (row) => `INV-${String(row).padStart(6, '0')}-0123abcd`);
  assert.equal(compare(approved, observed).kind, 'equal');
});
