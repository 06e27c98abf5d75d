// Goal: of many similar changes, the ones that stand out are read first. Method: hand-made effects.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { extentOf, largestWritten } from '../../src/console/numbers.ts';
import { rankUnusual } from '../../src/console/unusual.ts';
import type { ApprovedEffect } from '../../src/protocol/effect.ts';

const pay = (amount: number | string, count = 1): ApprovedEffect => ({
  ...{ op: 'insert', target: 'payment', count },
  after: { amount: { is: amount } },
});

test('a large amount or many changes come first and are named; small differences are not', () => {
  const usual = Array.from({ length: 9 }, (_, index) => [pay(100 + index)]);
  const [first, second, ...rest] = rankUnusual(
    [...usual, [pay(5000)], [pay(100), pay(101), pay(102), pay(103)]],
    (effects) => effects,
  );
  assert.match(first?.unusual ?? '', /payment\.amount is 5000, usually about 10\d/);
  assert.match(second?.unusual ?? '', /number of changes is 4, usually about 1/);
  assert.equal(rest.length, 9);
  for (const { unusual } of rest) assert.equal(unusual, undefined);
});

test('an identifier does not stand out', () => {
  const withId = (id: number) => [{ ...pay(100), key: { id: { is: id } } }];
  const ranked = rankUnusual([1, 2, 3, 4, 90_000].map(withId), (effects) => effects);
  for (const { unusual } of ranked) assert.equal(unusual, undefined);
});

test('amounts are read from numbers, tagged numbers and decimal text, and from nothing else', () => {
  const effects = [pay(3), pay('12.50'), pay('one'), { ...pay(7), op: 'delete' as const }];
  assert.deepEqual([...largestWritten(effects)], [['payment.amount', 12.5]]);
  const update: ApprovedEffect = {
    ...{ op: 'update', target: 'budget', key: { id: { is: 1 } }, count: 1 },
    before: { left: { is: 100 } },
    after: { left: { is: { $dec: '70.5' } } },
  };
  assert.equal(extentOf(update), 29.5);
  assert.equal(extentOf(pay('one')), 0);
});
