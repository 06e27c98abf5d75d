// Goal: a bag is a multiset of effects, and no two different effects are ever taken for one.
// Method: fast-check; canonical JSON as the independent notion of equality, arrays of effects as
// the model of a bag.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  comparisonKey,
  countEffects,
  effectKey,
  sameValue,
  valueText,
} from '../../src/protocol/bag.ts';
import { canonical } from '../../src/protocol/canon.ts';
import type { Effect } from '../../src/protocol/effect.ts';
import type { Row, Value } from '../../src/protocol/value.ts';
import { multisetOf } from './multiset.ts';

// Few characters, among them those that the texts use themselves, so that collisions would be
// found.
const tricky = fc.string({ unit: fc.constantFrom('1', ':', 's', 'r', ';', 'é'), maxLength: 4 });
const { value } = fc.letrec<{ value: Value }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 2 },
    fc.constantFrom<Value>(null, true, false, 0, 1, 11, -1, 1.5, '', 'n', 't', 'd1;', {
      $int: '1',
    }),
    tricky,
    fc.array(tie('value'), { maxLength: 2 }),
    fc.dictionary(tricky, tie('value'), { maxKeys: 2 }),
  ),
}));
const row: fc.Arbitrary<Row> = fc.dictionary(tricky, value, { maxKeys: 3 });
const effect: fc.Arbitrary<Effect> = fc.record(
  {
    op: fc.constantFrom('insert', 'update', 'delete'),
    target: tricky,
    key: row,
    before: row,
    after: row,
  },
  { requiredKeys: ['op', 'target'] },
);

test('property: two values share a text exactly if they are the same value', () => {
  fc.assert(
    fc.property(value, value, (a, b) => {
      const same = canonical(a) === canonical(b);
      assert.equal(valueText(a) === valueText(b), same);
      assert.equal(sameValue(a, b), same);
      assert.ok(sameValue(a, structuredClone(a)));
    }),
    { numRuns: 5000 },
  );
});

test('property: two effects share a key exactly if they are the same effect', () => {
  // Neighbours: an effect and the same with one character or image moved, which is where a
  // separator would fail.
  const moved = effect.chain((one) =>
    fc
      .record(
        {
          op: fc.constant(one.op),
          target: fc.constantFrom(one.target, `${one.target}1`, `1:${one.target}`),
          key: fc.constantFrom(one.key ?? {}, one.before ?? {}, {}),
          before: fc.constantFrom(one.before ?? {}, one.after ?? {}, one.key ?? {}),
          after: fc.constantFrom(one.after ?? {}, one.before ?? {}),
        },
        { requiredKeys: ['op', 'target'] },
      )
      .map((other): [Effect, Effect] => [one, other]),
  );
  fc.assert(
    fc.property(fc.oneof(moved, fc.tuple(effect, effect)), ([a, b]) => {
      assert.equal(effectKey(a) === effectKey(b), canonical(a) === canonical(b));
    }),
    { numRuns: 5000 },
  );
});

test('the order of columns does not matter, an absent image and an empty one differ in a bag but not in comparison', () => {
  const one: Effect = { op: 'update', target: 't', key: { a: 1, b: 2 }, after: { y: 1, x: 2 } };
  assert.equal(
    effectKey(one),
    effectKey({ op: 'update', target: 't', key: { b: 2, a: 1 }, after: { x: 2, y: 1 } }),
  );
  assert.notEqual(effectKey(one), effectKey({ ...one, before: {} }));
  assert.equal(comparisonKey(one, undefined), comparisonKey({ ...one, before: {} }, undefined));
  assert.equal(
    comparisonKey(one, new Set(['y'])),
    comparisonKey({ ...one, after: { x: 2 } }, undefined),
  );
});

test('what is not plain data has no text', () => {
  for (const value of [undefined, 1n, Symbol('x'), () => 0]) {
    assert.throws(() => valueText(value as unknown as Value), { code: 'ERR_EM_INVARIANT' });
  }
  assert.notEqual(valueText(-0), valueText(0));
});

// Few different effects, so that multiplicities above one are common.
const few: fc.Arbitrary<Effect> = fc
  .constantFrom('a', 'b', 'c')
  .map((target) => ({ op: 'insert', target }));
const effects = fc.array(few, { maxLength: 8 });

test('property: counting effects gives each of them once, with how often it occurs', () => {
  fc.assert(
    fc.property(effects, (list) => {
      const counted = countEffects(list);
      const texts = counted.map(({ count: _, ...one }) => canonical(one));
      assert.equal(new Set(texts).size, texts.length);
      assert.deepEqual(multisetOf(counted), multisetOf(list));
    }),
  );
});
