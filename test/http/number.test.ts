// Goal: a number is one value, in whatever form it was approved, and nothing that is not a number
// changes. Method: every form in which a value can hold a number, with the form that JSON would
// give it written out.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { digitsOf, encodeNumber, normaliseNumbers } from '../../src/http/number.ts';
import type { Value } from '../../src/protocol/value.ts';

test('numbers of every form become the form that they have in JSON, at every depth', () => {
  const forms: readonly (readonly [Value, Value])[] = [
    [1e20, { $int: '100000000000000000000' }],
    [-0, 0],
    [35.5, 35.5],
    [{ $int: '5' }, 5],
    [{ $int: '9007199254740993' }, { $int: '9007199254740993' }],
    [{ $dec: '1.50' }, 1.5],
    [{ $dec: '0.10000000000000000001' }, { $dec: '0.10000000000000000001' }],
    [{ $real: '35' }, 35],
  ];
  for (const [value, form] of forms) {
    assert.deepEqual(normaliseNumbers(value), form);
    assert.deepEqual(normaliseNumbers([{ a: [value] }, null]), [{ a: [form] }, null]);
  }
  assert.ok(Object.is(normaliseNumbers(-0), 0), 'JSON knows no minus zero');
});

test('what is not a number in JSON stays as it is', () => {
  for (const value of [
    ...[null, true, '5', '', [], {}, { int: '5' }, { $bytes: '35' }, { $text: '3535' }],
    ...[Number.NaN, Number.POSITIVE_INFINITY, { $real: 'Infinity' }, { $real: '-Infinity' }],
    { $int: '7'.repeat(1001) },
    { $$int: '5' },
  ]) {
    assert.deepEqual(normaliseNumbers(value), value);
  }
});

test('a number is read up to a thousand characters, written and written out', () => {
  const zeros = (count: number) => '0'.repeat(count);
  assert.equal(encodeNumber(`1.${zeros(998)}`), 1);
  assert.equal(encodeNumber(`1.${zeros(999)}`), undefined);
  assert.deepEqual(encodeNumber('1e999'), { $int: `1${zeros(999)}` });
  assert.equal(encodeNumber('1e1000'), undefined);
  assert.deepEqual(encodeNumber('1e-1000'), { $dec: `0.${zeros(999)}1` });
  assert.equal(encodeNumber('1e-1001'), undefined);
});

test('only numbers that no double carries are known by their digits', () => {
  assert.equal(digitsOf({ $int: '9007199254740993' }), '9007199254740993');
  assert.equal(digitsOf({ $dec: '0.5' }), '0.5');
  for (const value of [{ $real: '5' }, { $bytes: '35' }, 5, '5', null])
    assert.equal(digitsOf(value), undefined);
});
