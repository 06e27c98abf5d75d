// Goal: values carry what was meant, tags cannot be forged by data, and order is that of the exact
// numbers. Method: fast-check against BigInt arithmetic as an independent oracle, and named cases
// for each refusal.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { canonical } from '../../src/protocol/canon.ts';
import {
  encodeBytes,
  encodeData,
  encodeInteger,
  encodeReal,
  fromJs,
  orderValues,
  readTag,
  type Value,
} from '../../src/protocol/value.ts';
import { isValue } from './is-value.ts';

test('plain JavaScript becomes the value that was meant', () => {
  assert.equal(fromJs(null), null);
  assert.equal(fromJs(false), false);
  assert.equal(fromJs('paid'), 'paid');
  assert.equal(fromJs(35.5), 35.5);
  assert.equal(fromJs(4711n), 4711);
  assert.equal(fromJs(-9007199254740991n), -9007199254740991);
  assert.deepEqual(fromJs(9007199254740992n), { $int: '9007199254740992' });
  assert.deepEqual(fromJs(-9223372036854775808n), { $int: '-9223372036854775808' });
  assert.deepEqual(fromJs(-0), { $real: '-0.0' });
  assert.deepEqual(fromJs(Number.NEGATIVE_INFINITY), { $real: '-Infinity' });
  assert.deepEqual(fromJs(Buffer.from('c0ffee', 'hex')), { $bytes: 'c0ffee' });
  assert.deepEqual(fromJs([1, [2n]]), [1, [2]]);
  assert.deepEqual(fromJs({ $int: '5', a: { $$b: 1 } }), { $$int: '5', a: { $$$b: 1 } });
});

test('a view into a larger buffer carries only its own bytes', () => {
  assert.deepEqual(encodeBytes(new Uint8Array([1, 2, 3, 4]).subarray(1, 3)), { $bytes: '0203' });
});

for (const [what, value, message] of [
  ['a Date', new Date(0), /x is a Date; .*now\(\)/],
  ['undefined', undefined, /x is undefined; use null/],
  ['NaN', Number.NaN, /x is NaN/],
  ['a function', () => 1, /x is a function/],
  ['a symbol', Symbol('s'), /x is a symbol/],
  ['a Map', new Map(), /x is not plain data/],
  ['a lone surrogate', '\ud800', /x has a lone surrogate/],
  ['a hole in an array', Object.assign([1], { length: 2 }), /x\[1\] is undefined/],
  ['a Date deep inside', { a: [new Date(0)] }, /x\["a"\]\[0\] is a Date/],
  ['a key named __proto__', JSON.parse('{"__proto__":1}'), /x is not plain data/],
  ['a symbol key', { [Symbol('s')]: 1 }, /a constraint must stand for a whole column/],
] as const) {
  test(`${what} is refused with its place and a hint`, () => {
    assert.throws(() => fromJs(value, 'x'), { code: 'ERR_EM_MANIFEST_INVALID', message });
  });
}

test('a cycle is refused rather than followed', () => {
  const cycle: unknown[] = [];
  cycle.push(cycle);
  assert.throws(() => fromJs(cycle), {
    code: 'ERR_EM_MANIFEST_INVALID',
    message: /deeper than 64/,
  });
});

const dollarKey = fc.constantFrom('$', '$$', '$int', '$$int', '$bytes', '$digest', 'a', '');
const json = fc.letrec<{ value: Value }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<Value>(null, true, 0, 1.5, '', '12', 'ab'),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(dollarKey, tie('value'), { maxKeys: 2, noNullPrototype: true }),
  ),
})).value;

function holdsTag(value: Value): boolean {
  if (readTag(value) !== undefined) return true;
  return typeof value === 'object' && value !== null && Object.values(value).some(holdsTag);
}

test('property: encoded data is a value, holds no tag, and different data stay different', () => {
  fc.assert(
    fc.property(json, json, (a, b) => {
      assert.ok(isValue(encodeData(a)));
      assert.ok(!holdsTag(encodeData(a)));
      assert.equal(
        canonical(encodeData(a)) === canonical(encodeData(b)),
        canonical(a) === canonical(b),
      );
      assert.equal(canonical(fromJs(a)), canonical(encodeData(a)));
    }),
    { numRuns: 5_000 },
  );
});

test('only a well-formed lone tag reads as a tag', () => {
  assert.deepEqual(readTag({ $int: '12' }), { tag: '$int', text: '12' });
  assert.deepEqual(readTag({ $bytes: '' }), { tag: '$bytes', text: '' });
  const wrong: Value[] = [
    { $int: '1.5' },
    { $int: 12 },
    { $int: '01' },
    { $int: '1', a: 1 },
    { $real: 'NaN' },
    { $dec: '1e5' },
    { $bytes: 'abc' },
    { $bytes: 'AB' },
    { $text: 'zz' },
    { $unknown: '1' },
    { $$int: '1' },
    { toString: '1' },
    ['$int'],
    '$int',
    null,
    {},
  ];
  for (const value of wrong) assert.equal(readTag(value), undefined, canonical(value));
});

test('what is not a value is told apart', () => {
  for (const value of [{ $int: '1' }, [{ $$x: null }], 0, '', [], {}]) assert.ok(isValue(value));
  const wrong = [
    undefined,
    1n,
    -0,
    Number.NaN,
    '\udfff',
    { $x: 1 },
    { a: { $int: 'x' } },
    [undefined],
    new Array(1),
  ];
  for (const value of [...wrong, new Date(0), new Map(), { a: Symbol('s') }])
    assert.ok(!isValue(value));
});

const digits = (max: number): fc.Arbitrary<string> =>
  fc
    .array(fc.constantFrom(...'0015799'), { minLength: 1, maxLength: max })
    .map((list) => list.join(''));
const decimal = fc
  .tuple(fc.constantFrom('', '-'), digits(25), fc.option(digits(25), { nil: undefined }))
  .map(([sign, whole, fraction]) => {
    const integer = BigInt(whole);
    return { text: `${sign}${integer}${fraction === undefined ? '' : `.${fraction}`}` };
  });

/** The decimal times 10^25, which is an integer. */
function scaled(text: string): bigint {
  const [whole = '', fraction = ''] = text.split('.');
  return BigInt(`${whole}${fraction.padEnd(25, '0')}`.replace(/^(-?)0+(?=\d)/, '$1'));
}

function sign(a: bigint | number, b: bigint | number): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

test('property: exact decimals order as BigInt arithmetic says', () => {
  fc.assert(
    fc.property(decimal, decimal, (a, b) => {
      assert.equal(
        orderValues({ $dec: a.text }, { $dec: b.text }),
        sign(scaled(a.text), scaled(b.text)),
      );
    }),
    { numRuns: 5_000 },
  );
});

test('property: integers and doubles order as the exact numbers they are', () => {
  const near = fc.tuple(
    fc.bigInt({ min: -3n, max: 3n }),
    fc.constantFrom(0n, 2n ** 53n, 2n ** 63n, -(2n ** 63n), 10n ** 23n),
  );
  const integer = fc.oneof(
    fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }),
    near.map(([a, b]) => a + b),
  );
  const double = fc.oneof(fc.double({ noNaN: true }), integer.map(Number));
  fc.assert(
    fc.property(integer, double, double, (whole, first, second) => {
      const real = encodeReal(first);
      assert.equal(orderValues(encodeInteger(whole), real), sign(whole, first));
      assert.equal(orderValues(real, encodeReal(second)), sign(first, second));
      if (Number.isFinite(first) && !Object.is(first, -0))
        assert.equal(orderValues(first, real), 0);
    }),
    { numRuns: 10_000 },
  );
});

test('a decimal and the double people write for it have the same rank', () => {
  assert.equal(orderValues({ $dec: '0.1' }, 0.1), 0);
  assert.equal(orderValues({ $dec: '0.2' }, { $real: '0.2' }), 0);
  assert.equal(orderValues(1e-7, { $dec: '0.0000001' }), 0);
  assert.equal(orderValues(-1e-7, { $dec: '-0.0000002' }), 1);
  assert.equal(orderValues({ $real: '-0.0' }, 0), 0);
  assert.equal(orderValues({ $real: 'Infinity' }, { $dec: '9'.repeat(400) }), 1);
});

test('property: text orders by code points', () => {
  const unit = fc.constantFrom('a', 'z', '\ud7ff', '\ue000', '\uffff', '😀', '𐀀', '\u{10ffff}');
  const text = fc.array(unit, { maxLength: 4 }).map((list) => list.join(''));
  fc.assert(
    fc.property(text, text, (a, b) => {
      const expected = Buffer.compare(Buffer.from(a), Buffer.from(b)); // UTF-8 keeps the order of code points
      assert.equal(orderValues(a, b), expected);
    }),
    { numRuns: 5_000 },
  );
});

test('values of different kinds have no order', () => {
  const pairs: [Value, Value][] = [
    ['1', 1],
    [null, 0],
    [true, false],
    [{ $bytes: '01' }, { $bytes: '02' }],
    [{ $text: 'ff' }, 'a'],
    [[1], [2]],
    [{ a: 1 }, 1],
    [{ $int: 'x' }, 1],
  ];
  for (const [a, b] of pairs) assert.equal(orderValues(a, b), undefined, canonical([a, b]));
});
