// Goal: the diff says what differs, all of it and nothing else, in an order that depends on nothing
// but the bags. Method: exact bags, where the difference of two multisets is the oracle; named
// cases for what is paired.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type CountedEffect, type Diff, diffOf } from '../../src/protocol/diff.ts';
import type { ApprovedEffect, Effect, Op } from '../../src/protocol/effect.ts';
import { any, compare, is } from './match-cases.ts';
import { multisetOf, without } from './multiset.ts';

const small = fc.integer({ min: 0, max: 1 });
const effect: fc.Arbitrary<Effect> = fc
  .record({
    op: fc.constantFrom<Op>('insert', 'update', 'delete'),
    target: fc.constantFrom('t', 'u'),
    id: small,
    a: small,
  })
  .map(({ op, target, id, a }) => ({
    op,
    target,
    key: { id },
    ...(op !== 'insert' && { before: { a } }),
    ...(op !== 'delete' && { after: { a: 1 - a } }),
  }));
const effects = fc.array(effect, { maxLength: 8 });

const approve = ({ op, target, key, before, after }: Effect, count = 1): ApprovedEffect => ({
  op,
  target,
  ...(key && { key: is(key) }),
  ...(before && { before: is(before) }),
  ...(after && { after: is(after) }),
  count,
});
const observe = ({ op, target, key, before, after }: ApprovedEffect): Effect => {
  const plain = (cells: ApprovedEffect['key']) =>
    Object.fromEntries(
      Object.entries(cells ?? {}).map(([column, cell]) => [
        column,
        'is' in cell ? cell.is : 'constraint',
      ]),
    );
  return {
    op,
    target,
    ...(key && { key: plain(key) }),
    ...(before && { before: plain(before) }),
    ...(after && { after: plain(after) }),
  };
};

function differenceOf(approved: readonly Effect[], observed: readonly Effect[]): Diff {
  const result = compare(
    approved.map((one) => approve(one)),
    observed,
  );
  return result.kind === 'different' ? result.diff : diffOf([], []);
}

test('property: what is missing and what is extra are the two differences of the bags', () => {
  fc.assert(
    fc.property(effects, effects, (approved, observed) => {
      const { missing, extra, altered, omitted } = differenceOf(approved, observed);
      const [a, e] = [multisetOf(approved), multisetOf(observed)];
      const unseen = [...missing, ...altered.map((pair) => pair.approved)];
      const unwanted = [...extra, ...altered.map((pair) => pair.observed)];
      const counted = unseen.map((one) => ({ ...observe(one), count: one.count }));
      assert.deepEqual(multisetOf(counted), without(a, e));
      assert.deepEqual(multisetOf(unwanted), without(e, a));
      assert.equal(omitted, 0);
    }),
    { numRuns: 1000 },
  );
});

test('property: the diff does not depend on the order of the effects', () => {
  const shuffled = fc
    .tuple(effects, effects)
    .chain(([approved, observed]) =>
      fc.tuple(
        fc.constant(differenceOf(approved, observed)),
        fc.shuffledSubarray(approved, { minLength: approved.length }),
        fc.shuffledSubarray(observed, { minLength: observed.length }),
      ),
    );
  fc.assert(
    fc.property(shuffled, ([diff, approved, observed]) =>
      assert.deepEqual(differenceOf(approved, observed), diff),
    ),
  );
});

test('property: nothing that could be paired is left unpaired', () => {
  fc.assert(
    fc.property(effects, effects, (approved, observed) => {
      const { missing, extra } = differenceOf(approved, observed);
      const rows = new Set(extra.map(({ target, key }) => `${target} ${key?.id}`));
      for (const one of missing) assert.ok(!rows.has(`${one.target} ${observe(one).key?.id}`));
    }),
  );
});

const update = (id: number, a: number, count = 1): CountedEffect => ({
  op: 'update',
  target: 't',
  key: { id },
  before: { a: 0 },
  after: { a },
  count,
});

test('another value in the same row is one altered row, with the same operation before another one', () => {
  const gone: CountedEffect = {
    op: 'delete',
    target: 't',
    key: { id: 1 },
    before: { a: 0 },
    count: 1,
  };
  assert.deepEqual(diffOf([approve(update(1, 5))], [gone, update(1, 6)]), {
    extra: [gone],
    missing: [],
    altered: [{ approved: approve(update(1, 5)), observed: update(1, 6) }],
    omitted: 0,
  });
  assert.deepEqual(diffOf([approve(update(1, 5))], [gone]).altered, [
    { approved: approve(update(1, 5)), observed: gone },
  ]);
});

test('multiplicities are paired as far as they go', () => {
  assert.deepEqual(diffOf([approve(update(1, 5), 3)], [update(1, 6, 2), update(1, 7, 4)]), {
    extra: [update(1, 7, 3)],
    missing: [],
    altered: [
      { approved: approve(update(1, 5), 2), observed: update(1, 6, 2) },
      { approved: approve(update(1, 5), 1), observed: update(1, 7, 1) },
    ],
    omitted: 0,
  });
});

test('a key that is not approved exactly says nothing about which row was meant, nor does no key at all', () => {
  const unsure = { ...approve(update(1, 5)), key: { id: any } };
  assert.deepEqual(diffOf([unsure], [update(1, 6)]).altered, []);
  const approved: ApprovedEffect = { op: 'insert', target: 'log', after: is({ a: 1 }), count: 1 };
  const observed: CountedEffect = { op: 'insert', target: 'log', after: { a: 2 }, count: 1 };
  assert.deepEqual(diffOf([approved], [observed]), {
    extra: [observed],
    missing: [approved],
    altered: [],
    omitted: 0,
  });
});

test('rows of different targets or keys are not paired', () => {
  assert.deepEqual(
    diffOf([approve(update(1, 5))], [update(2, 5), { ...update(1, 5), target: 'u' }]).altered,
    [],
  );
});
