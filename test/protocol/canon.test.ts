// Goal: one value has one text and one text has one value; what has no faithful JSON form is
// refused, never changed. Method: vectors of RFC 8785, fast-check over values small enough to
// collide, and one refusal per unsupported thing.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { EffectMatchError } from '../../src/errors.ts';
import { canonical } from '../../src/protocol/canon.ts';
import { canonicalBytes } from '../../src/protocol/canon-size.ts';
import type { Value } from '../../src/protocol/value.ts';

function double(hex: string): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, BigInt(`0x${hex}`));
  return view.getFloat64(0);
}

test('the worked example of RFC 8785 section 3.2.2 comes out as printed there', () => {
  const input = JSON.parse(`{
    "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
    "string": "\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\"\\/",
    "literals": [null, true, false]
  }`);
  const expected =
    '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
    '"string":"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}';
  assert.equal(canonical(input), expected);
});

test('keys sort by UTF-16 code units, as in RFC 8785 section 3.2.3', () => {
  const input = {
    '\u20ac': 'Euro Sign',
    '\r': 'Carriage Return',
    '\ufb33': 'Hebrew Letter Dalet With Dagesh',
    '1': 'One',
    '\ud83d\ude00': 'Emoji: Grinning Face',
    '\u0080': 'Control',
    '\u00f6': 'Latin Small Letter O With Diaeresis',
  };
  assert.equal(
    canonical(input),
    '{"\\r":"Carriage Return","1":"One","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis",' +
      '"\u20ac":"Euro Sign","\ud83d\ude00":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}',
  );
});

test('wide objects sort by the same rule as narrow ones', () => {
  const keys = Array.from({ length: 60 }, (_, index) => `k${(index * 37) % 60}`);
  const expected = [...keys].sort().map((key) => `"${key}":0`);
  assert.equal(
    canonical(Object.fromEntries(keys.map((key) => [key, 0]))),
    `{${expected.join(',')}}`,
  );
});

for (const [hex, text] of [
  ['0000000000000000', '0'],
  ['0000000000000001', '5e-324'],
  ['8000000000000001', '-5e-324'],
  ['7fefffffffffffff', '1.7976931348623157e+308'],
  ['4340000000000000', '9007199254740992'],
  ['c340000000000000', '-9007199254740992'],
  ['4430000000000000', '295147905179352830000'],
  ['44b52d02c7e14af5', '9.999999999999997e+22'],
  ['44b52d02c7e14af6', '1e+23'],
  ['44b52d02c7e14af7', '1.0000000000000001e+23'],
  ['444b1ae4d6e2ef4e', '999999999999999700000'],
  ['444b1ae4d6e2ef4f', '999999999999999900000'],
  ['444b1ae4d6e2ef50', '1e+21'],
  ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
  ['3eb0c6f7a0b5ed8d', '0.000001'],
  ['41b3de4355555553', '333333333.3333332'],
  ['41b3de4355555554', '333333333.33333325'],
  ['41b3de4355555555', '333333333.3333333'],
  ['41b3de4355555556', '333333333.3333334'],
  ['41b3de4355555557', '333333333.33333343'],
  ['becbf647612f3696', '-0.0000033333333333333333'],
  ['43143ff3c1cb0959', '1424953923781206.2'],
] as const) {
  test(`the double ${hex} is written ${text} (RFC 8785 appendix B)`, () =>
    assert.equal(canonical(double(hex)), text));
}

test('U+2028, non-ASCII letters and well-paired surrogates stay as they are; control characters are escaped', () => {
  assert.equal(canonical('\u2028é😀'), '"\u2028é😀"');
  assert.equal(canonical('\b\t\n\f\r\u0000\u001f\u007f'), '"\\b\\t\\n\\f\\r\\u0000\\u001f\u007f"');
});

const leaf = fc.constantFrom<unknown>(
  0,
  1,
  10,
  0.5,
  '',
  '0',
  '1',
  'a',
  '"',
  ',',
  ':',
  '\\',
  '{',
  '[]',
  null,
  true,
  false,
);
const key = fc.constantFrom(
  '',
  'a',
  'b',
  '"',
  ',',
  '0',
  '1',
  'null',
  '\\',
  'a":0,"b',
  '$a',
  '😀',
  '\ufb33',
);
const small = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    leaf,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(key, tie('value'), { maxKeys: 3, noNullPrototype: true }),
  ),
})).value;
const wide = fc.jsonValue({ maxDepth: 5, stringUnit: 'binary' });

/**
 * Keys that are written with an escape are left to the other properties: JSON.parse of V8 from 12.8
 * on can confuse them (nodejs/node#63785), so that it is no oracle for them.
 */
function survivesParsing(value: unknown): boolean {
  if (Object.is(value, -0)) return false;
  if (typeof value !== 'object' || value === null) return true;
  if (Array.isArray(value)) return value.every(survivesParsing);
  return Object.entries(value).every(
    ([name, inner]) =>
      name !== '__proto__' && JSON.stringify(name) === `"${name}"` && survivesParsing(inner),
  );
}

test('property: two values share a text exactly when they are equal', () => {
  let equal = 0;
  fc.assert(
    fc.property(small, small, (left, right) => {
      const same = isDeepStrictEqual(left, right);
      if (same) equal += 1;
      assert.equal(canonical(left) === canonical(right), same);
    }),
    { numRuns: 20_000 },
  );
  assert.ok(equal > 50, `only ${equal} equal pairs were drawn`);
});

test('property: parsing the text gives the value back, and its text again', () => {
  fc.assert(
    fc.property(fc.oneof(small, wide).filter(survivesParsing), (value) => {
      const text = canonical(value);
      const back: unknown = JSON.parse(text);
      assert.deepEqual(structuredClone(back), structuredClone(value));
      assert.equal(canonical(back), text);
    }),
    { numRuns: 3_000 },
  );
});

test('property: the order in which keys were written does not show', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(
        fc.tuple(
          fc.string().filter((name) => name !== '__proto__'),
          leaf,
        ),
        { selector: ([name]) => name, maxLength: 40 },
      ),
      fc.nat(),
      (entries, turn) => {
        const at = entries.length === 0 ? 0 : turn % entries.length;
        const turned = [...entries.slice(at), ...entries.slice(0, at)].reverse();
        assert.equal(canonical(Object.fromEntries(entries)), canonical(Object.fromEntries(turned)));
      },
    ),
  );
});

test('an object without prototype is plain; a non-enumerable property is not part of the value', () => {
  assert.equal(canonical(Object.assign(Object.create(null), { b: 1, a: 2 })), '{"a":2,"b":1}');
  assert.equal(canonical(Object.defineProperty({ a: 1 }, 'hidden', { value: 2 })), '{"a":1}');
});

class Money {
  readonly cents = 5;
}
class List extends Array<number> {}
const cycle: { self?: unknown } = {};
cycle.self = cycle;
const getterCalls: string[] = [];
const elementGetter: unknown[] = [0];
Object.defineProperty(elementGetter, 0, {
  get: () => getterCalls.push('element'),
  enumerable: true,
});

for (const [what, value, path] of [
  ['-0', { a: [0, -0] }, '$.a[1]'],
  ['NaN', { a: Number.NaN }, '$.a'],
  ['Infinity', [Number.POSITIVE_INFINITY], '$[0]'],
  ['a bigint', { a: { b: 1n } }, '$.a.b'],
  ['undefined', { a: undefined }, '$.a'],
  ['undefined in an array', [undefined], '$[0]'],
  ['undefined itself', undefined, '$'],
  ['a function', { run() {} }, '$.run'],
  ['a symbol', { a: Symbol('s') }, '$.a'],
  ['a symbol key', { a: { [Symbol('s')]: 1 } }, '$.a'],
  ['a Date', { 'created at': new Date(0) }, '$["created at"]'],
  ['a Map', new Map(), '$'],
  ['a Buffer', { a: Buffer.from('x') }, '$.a'],
  ['a boxed number', { a: Object(1) }, '$.a'],
  ['a class instance', { price: new Money() }, '$.price'],
  ['an array of a subclass', List.of(1), '$'],
  ['a sparse array', Object.assign([1, 2], { length: 3 }), '$'],
  ['an array with a named property', Object.assign([1], { index: 0 }), '$'],
  ['a hole made up for by a named property', Object.assign(new Array(1), { index: 0 }), '$[0]'],
  [
    'a hidden element made up for by a named property',
    Object.defineProperty(Object.assign([1], { index: 0 }), 0, { enumerable: false }),
    '$[0]',
  ],
  ['a lone surrogate', { a: 'x\ud800y' }, '$.a'],
  ['a lone surrogate in a key', { 'x\udc00': 1 }, '$["x\\udc00"]'],
  ['a key named __proto__', JSON.parse('{"a":{"__proto__":{}}}'), '$.a.__proto__'],
  ['a cycle', cycle, `$${'.self'.repeat(64)}`],
  [
    'a getter',
    {
      get a() {
        return getterCalls.push('property');
      },
    },
    '$.a',
  ],
  ['a setter', { set a(_value: unknown) {} }, '$.a'],
  ['a getter as array element', elementGetter, '$[0]'],
] as const) {
  test(`${what} is refused at ${path.slice(0, 40)}`, () => {
    assert.throws(
      () => canonical(value),
      (error) =>
        error instanceof EffectMatchError &&
        error.code === 'ERR_EM_CANON_UNSUPPORTED' &&
        error.message.includes(` ${path} is `),
    );
    assert.deepEqual(getterCalls, []);
  });
}

test('64 levels are accepted and 65 refused', () => {
  const nested = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels));
  assert.equal(canonical(nested(64)).length, 128);
  assert.throws(() => canonical(nested(65)), { code: 'ERR_EM_CANON_UNSUPPORTED' });
});

/**
 * A graph of so many objects, in which the innermost one stands in two to the power of `levels`
 * places.
 */
function doubled(levels: number, innermost: unknown): unknown {
  let value = innermost;
  for (let level = 0; level < levels; level += 1) value = [value, value];
  return value;
}

test('an object that stands in many places is written in each of them, up to a length that is refused', () => {
  const texts = (levels: number, text: string): string =>
    levels === 0 ? text : `[${texts(levels - 1, text)},${texts(levels - 1, text)}]`;
  assert.equal(canonical(doubled(10, { a: 1 })), texts(10, '{"a":1}'));
  // Each level doubles the text and adds three characters: 2^20 times 7, and 3 for each of the 2^20
  // - 1 pairs.
  assert.equal(canonical(doubled(20, { a: 1 })).length, 10 * 2 ** 20 - 3);
  assert.equal(canonical(doubled(22, { a: 1 })).length, 10 * 2 ** 22 - 3);
  for (const levels of [28, 60]) {
    assert.throws(() => canonical(doubled(levels, { a: 1 })), { code: 'ERR_EM_CANON_UNSUPPORTED' });
    assert.throws(() => canonical({ a: [doubled(levels, 'a')] }), {
      code: 'ERR_EM_CANON_UNSUPPORTED',
    });
  }
});

test('a text that is kept for one level is not taken for a deeper one', () => {
  const deep = JSON.parse('['.repeat(62) + ']'.repeat(62));
  const many = doubled(20, 0);
  assert.ok(canonical([many, deep]).endsWith(`${']'.repeat(62)}]`));
  assert.throws(() => canonical([many, deep, [[deep]]]), { code: 'ERR_EM_CANON_UNSUPPORTED' });
});

test('values are taken from property descriptors, so that neither a getter nor a get trap is asked', () => {
  const reads: PropertyKey[] = [];
  const proxy = new Proxy(
    { a: 1, b: 2 },
    {
      getOwnPropertyDescriptor(target, name) {
        reads.push(name);
        return Reflect.getOwnPropertyDescriptor(target, name);
      },
      get(_target, name) {
        throw new Error(`read ${String(name)}`);
      },
    },
  );
  assert.equal(canonical({ a: 1, b: 2 }), canonical(proxy));
  assert.ok(reads.includes('a') && reads.includes('b'));
});

test('property: the size of a canonical text is known without making the text', () => {
  const text = fc.string({ unit: 'binary', maxLength: 20 });
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      fc.constant(null),
      fc.boolean(),
      fc.integer(),
      text,
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(text, tie('value'), { maxKeys: 4, noNullPrototype: true }),
    ),
  }));
  fc.assert(
    fc.property(value, (sample) => {
      fc.pre(!JSON.stringify(sample).includes('__proto__'));
      assert.equal(canonicalBytes(sample as Value), Buffer.byteLength(canonical(sample)));
    }),
  );
});

test('a long text is measured like a short one, lone surrogates by their escapes', () => {
  const piece = 'a"\\\n\u0001\u007f\u00e9\u20ac\u{1f600}';
  const long = piece.repeat(500);
  assert.equal(canonicalBytes(long), Buffer.byteLength(JSON.stringify(long)));
  const lone = `${'x'.repeat(2000)}\ud800`;
  assert.equal(canonicalBytes(lone), 2 + 2000 + 6);
});
