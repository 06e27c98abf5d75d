// Goal: a record is read in one pass: what fits its schema comes back as a frozen copy with its
// canonical text, everything else is refused with the place and the reason. Method: every golden
// vector as it is and changed at a random place in a random way, compared with `canonical`, which
// knows nothing of schemas; every combinator with values on both sides of its bounds.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { documentRecord } from '../../src/ledger/journal.ts';
import { canonical } from '../../src/protocol/canon.ts';
import { approvedRecord } from '../../src/protocol/manifest.ts';
import type { RecordKind } from '../../src/protocol/record.ts';
import {
  type Copied,
  checked,
  choice,
  closed,
  copyOnce,
  dictionary,
  either,
  form,
  integer,
  list,
  nullable,
  oneField,
  optional,
  pair,
  plain,
  type Schema,
  text,
  variants,
  writePieces,
} from '../../src/protocol/schema.ts';
import { recordKinds, vectors } from '../vectors/load.ts';

const ledgerKind = documentRecord as unknown as RecordKind<object>;
const kinds = new Map([...(await recordKinds()), [ledgerKind.kind, ledgerKind] as const]);
const digest = 'ab'.repeat(32);
const samples: readonly { readonly kind: string; readonly record: object }[] = [
  ...vectors,
  { kind: 'document', record: { version: 1, digest, text: digest } },
];
const schemaOf = (kind: string) => (kinds.get(kind) as RecordKind<object>).schema;

test('every record kind has a golden vector', () => {
  const without = [...kinds.keys()].filter((name) => !samples.some(({ kind }) => kind === name));
  assert.deepEqual(without, []);
});

/** The text of plain data; undefined for everything else. */
function textOf(input: unknown): string | undefined {
  try {
    return canonical(input);
  } catch {
    return undefined;
  }
}

type Owner = Record<string, unknown>;
const isOwner = (value: unknown): value is Owner => typeof value === 'object' && value !== null;

/** Every object in a value, found without running code of its own. */
function objectsIn(value: unknown, found = new Set<object>()): Set<object> {
  if (!isOwner(value) || found.has(value)) return found;
  found.add(value);
  for (const property of Object.values(Object.getOwnPropertyDescriptors(value)))
    objectsIn(property.value, found);
  return found;
}

/** The text of a value. One that is no record is written in a field, because only records are. */
function written({ copy, inOrder }: Copied<unknown>): string {
  const write = (record: object) => [...writePieces({ copy: record, inOrder })].join('');
  if (typeof copy === 'object' && copy !== null && !Array.isArray(copy)) return write(copy);
  return write({ value: copy }).slice('{"value":'.length, -1);
}

/** Reads an input and its plain copy, which must come out alike. True when both are accepted. */
function assertReads(schema: Schema<unknown>, input: unknown): boolean {
  const found = copyOnce(schema, input, Number.POSITIVE_INFINITY);
  const text = textOf(input);
  if (text === undefined) {
    assert.ok('why' in found, 'accepted what is not plain data');
    return false;
  }
  const plainCopy = copyOnce(schema, JSON.parse(text), Number.POSITIVE_INFINITY);
  if ('why' in found) {
    assert.ok('why' in plainCopy, 'refused in one form, accepted in the other');
    assert.match(found.why, /^(must |from and to )/);
    return false;
  }
  assert.deepStrictEqual(found, plainCopy);
  assert.equal(written(found), text);
  assert.deepStrictEqual(found.copy, JSON.parse(text));
  const shared = objectsIn(input);
  for (const object of objectsIn(found.copy))
    assert.ok(Object.isFrozen(object) && !shared.has(object));
  return true;
}

const nested = (levels: number): unknown =>
  JSON.parse(`${'['.repeat(levels)}${']'.repeat(levels)}`);
class Money {
  readonly cents = 5;
}
let calls = 0;
const count = () => {
  calls += 1;
  return digest;
};

/** What may come to stand in a place: made anew each time, because some of it is changed later. */
const STRAYS: readonly (() => unknown)[] = [
  ...[0, -0, 1, -1, 1.5, 1e21, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, 10_000_001].map(
    (value) => () => value,
  ),
  ...[
    '',
    'x',
    'insert',
    '"',
    '\\',
    '\n',
    '\u2028é😀',
    'x\ud800',
    'x'.repeat(257),
    'x'.repeat(5000),
  ].map((v) => () => v),
  ...[
    digest,
    `${digest}0`,
    digest.toUpperCase(),
    `occ_${digest.slice(0, 40)}`,
    '2026-01-31T00:00:00.000Z',
  ].map((v) => () => v),
  ...[null, true, false, undefined, 5n, Symbol('s'), count].map((value) => () => value),
  () => [],
  () => ({}),
  () => [undefined],
  () => [1, 'a', null, { b: [true] }],
  () => new Array(1),
  () => Object.assign([1], { named: 2 }),
  () => Object.setPrototypeOf([], Object.prototype),
  () => Object.assign(Object.create(null), { is: 1 }),
  () => ({ is: { $dec: '35' } }),
  () => ({ is: undefined }),
  () => ({ any: true }),
  () => ({ between: [1, 2] }),
  () => ({ between: [1, 2, 3] }),
  () => ({ now: { withinMs: -0, unit: 'ms' } }),
  () => ({ constructor: 1, toString: 'x', toJSON: null }),
  () => JSON.parse('{"__proto__":{"is":1}}'),
  () => ({ [Symbol('s')]: 1 }),
  () => ({ 'x\udc00': 1, 10: 1, 9: 2 }),
  () => Object.defineProperty({ is: 1 }, 'hidden', { value: 2 }),
  () => Object.defineProperty({}, 'is', { value: 2 }),
  () => ({
    get is() {
      return count();
    },
  }),
  () => ({ set is(_value: unknown) {} }),
  () => new Money(),
  () => new Date(0),
  () => new Map(),
  () => Buffer.from('x'),
  () => Object(1),
  () => nested(50),
  () => nested(58),
  () => nested(64),
  () => new Proxy([1, 2], {}),
  () => new Proxy({ is: 1 }, { get: count }),
];

/** Ways to change the owner of a place, or what stands there. */
const CHANGES: readonly ((owner: Owner, key: string, stray: unknown) => void)[] = [
  (owner, key, stray) => Reflect.set(owner, key, stray),
  (owner, key) => Reflect.deleteProperty(owner, key),
  (owner, _key, stray) => Reflect.set(owner, 'stray', stray),
  (owner) => Reflect.defineProperty(owner, '__proto__', { value: 1, enumerable: true }),
  (owner) => Reflect.defineProperty(owner, 'hidden', { value: 1 }),
  (owner) => Reflect.set(owner, Symbol('s'), 1),
  (owner) => Reflect.defineProperty(owner, Symbol('s'), { value: 1 }),
  (owner, key) => Reflect.defineProperty(owner, key, { get: count }),
  (owner, key) => Reflect.defineProperty(owner, key, { set: count }),
  (owner, key) => Reflect.defineProperty(owner, key, { enumerable: false }),
  (owner) => Reflect.setPrototypeOf(owner, null),
  (owner) => Reflect.setPrototypeOf(owner, Money.prototype),
  (owner) => Object.freeze(owner),
  (owner, key) => Reflect.set(owner, key, new Proxy(Object(owner[key]), {})),
  (owner, key) => Reflect.set(owner, key, [owner[key]]),
  (owner, key) =>
    Array.isArray(owner[key]) &&
    Reflect.set(owner, key, [...Object.values(owner[key]), owner[key][0]]),
  (owner, key) =>
    Array.isArray(owner[key]) && Reflect.set(owner, key, Object.values(owner[key]).slice(1)),
  (owner, key) => typeof owner[key] === 'string' && Reflect.set(owner, key, `${owner[key]}x`),
  (owner, key) => typeof owner[key] === 'number' && Reflect.set(owner, key, owner[key] + 1),
  (owner) => {
    for (const key of Reflect.ownKeys(owner).reverse()) {
      const property = Object.getOwnPropertyDescriptor(owner, key);
      if (Reflect.deleteProperty(owner, key)) Reflect.defineProperty(owner, key, property ?? {});
    }
  },
];

/** Every place of a record, as the object that holds it and its key there. */
function placesIn(value: unknown): [Owner, string][] {
  if (!isOwner(value) || ArrayBuffer.isView(value)) return [];
  return Object.entries(value).flatMap(
    ([key, inner]) => [[value, key], ...placesIn(inner)] as [Owner, string][],
  );
}

test('every golden vector is read', () => {
  for (const { kind, record } of samples) assert.ok(assertReads(schemaOf(kind), record), kind);
});

test('property: a changed record is refused, or read as what it is, and no accessor is called', () => {
  const change = fc.record({
    place: fc.nat(),
    change: fc.oneof(fc.constant(CHANGES[0]), fc.constantFrom(...CHANGES)),
    stray: fc.constantFrom(...STRAYS),
  });
  let [accepted, refused] = [0, 0];
  fc.assert(
    fc.property(
      fc.constantFrom(...samples),
      fc.array(change, { minLength: 1, maxLength: 2 }),
      (sample, changes) => {
        const input = structuredClone(sample.record);
        for (const { place, change, stray } of changes) {
          const places = placesIn(input);
          const [owner, key] = places[place % places.length] ?? [];
          // A proxy or a frozen owner of an earlier change may not take another one.
          if (owner !== undefined && key !== undefined && Object.isExtensible(owner))
            change?.(owner, key, stray());
        }
        calls = 0;
        if (assertReads(schemaOf(sample.kind), input)) accepted += 1;
        else refused += 1;
        assert.equal(calls, 0, 'an accessor was called');
      },
    ),
    { numRuns: 10_000 },
  );
  assert.ok(accepted > 1000 && refused > 1000, `${accepted} accepted, ${refused} refused`);
});

test('every record refuses a field that it does not know, and one that it needs and has not', () => {
  for (const { kind, record } of samples) {
    const stray = copyOnce(schemaOf(kind), { ...record, stray: 1 }, Number.POSITIVE_INFINITY);
    assert.deepEqual(stray, { path: [], why: 'must not have the field "stray"' }, kind);
    const { version: _, ...rest } = record as { version?: unknown };
    const without = copyOnce(schemaOf(kind), rest, Number.POSITIVE_INFINITY);
    const needed = kind === 'statement' ? undefined : 'must have the field "version"';
    assert.equal('why' in without ? without.why : undefined, needed, kind);
  }
});

test('property: plain values are read as they are', () => {
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 6, stringUnit: 'binary' }),
    fc.anything({ withNullPrototype: true }),
  );
  const safe = value.filter(
    (drawn) => !/\\/.test(JSON.stringify(drawn, (_, v) => (typeof v === 'bigint' ? 0 : v)) ?? ''),
  );
  fc.assert(
    fc.property(safe, (drawn) => void assertReads(plain, drawn)),
    { numRuns: 1000 },
  );
});

test('every combinator accepts what is within its bounds and says what it asks for', () => {
  const cases: readonly [Schema<unknown>, accepted: unknown[], refused: unknown[], why: string][] =
    [
      [text(), ['', 'x'], [1, null, undefined], 'must be text of at least 0 characters'],
      [text(1, 2), ['a', 'ab'], ['', 'abc', 1], 'must be text of 1 to 2 characters'],
      [text(), [], ['\ud800'], 'must be text that is not too long and has no lone surrogate'],
      [form(/^a+$/, 'some a'), ['a', 'aa'], ['', 'ab', 1], 'must be some a'],
      [
        integer(1),
        [1, 2 ** 53 - 1],
        [0, 1.5, 2 ** 53, '1'],
        'must be a whole number of at least 1',
      ],
      [integer(-1, 1), [-1, 0, 1], [-2, 2, -0], 'must be a whole number of -1 to 1'],
      [choice('a', 'b'), ['a', 'b'], ['c', 1], 'must be a or b'],
      [choice(true), [true], [false, 1], 'must be true'],
      [nullable(choice('a')), ['a', null], ['b', undefined], 'must be a'],
      [list(plain), [[], [1]], [{}, 'a', null], 'must be a list'],
      [list(plain, 1, 2), [[1], [1, 2]], [[], [1, 2, 3]], 'must have 1 to 2 items'],
      [pair(plain), [[1, 2]], [[1], [1, 2, 3]], 'must have 2 items'],
      [dictionary(text(1), plain), [{}, { a: 1 }], [[], 1, null], 'must be an object'],
      [
        dictionary(text(2), plain),
        [{ ab: 1 }],
        [{ a: 1 }],
        'must be text of at least 2 characters',
      ],
      [closed({ a: text() }), [{ a: '' }], [{}], 'must have the field "a"'],
      [closed({ a: text() }), [], [{ a: '', b: 1 }], 'must not have the field "b"'],
      [closed({ a: text() }), [], [[], null, 'a'], 'must be an object'],
      [closed({ a: optional(text()) }), [{}, { a: '' }], [], ''],
      [
        variants('k', { x: { a: text() }, y: {} }),
        [{ k: 'x', a: '' }, { k: 'y' }],
        [{}, { k: 'z' }],
        'must have "k": x or y',
      ],
      [variants('k', { x: {}, y: {} }), [], [null, 1], 'must be an object'],
      [variants('k', { x: {} }), [], [{ k: 'x', a: 1 }], 'must not have the field "a"'],
      [
        oneField({ is: plain, any: choice(true) }),
        [{ is: null }, { any: true }],
        [{}, { other: 1 }],
        'must have one of the fields is, any',
      ],
      [
        oneField({ is: plain, any: plain }),
        [],
        [{ is: 1, any: 1 }],
        'must not have the field "any"',
      ],
      [oneField({ is: plain }), [], [null, 'is'], 'must be an object'],
      [either(choice('a'), choice('b')), ['a', 'b'], ['c'], 'must be b'],
      [checked(text(), (value) => value !== 'a', 'must not be a'), ['b'], ['a'], 'must not be a'],
    ];
  for (const [schema, accepted, refused, why] of cases) {
    for (const value of accepted) assert.ok(assertReads(schema, value), canonical(value));
    for (const value of refused) {
      const found = copyOnce(schema, value, 10);
      assert.equal('why' in found ? found.why : 'accepted', why);
      assert.deepEqual('path' in found && found.path, why.includes('at least 2 c') ? ['a'] : []);
    }
  }
});

test('a refusal names the way to the part that does not fit, also behind an alternative that failed', () => {
  const cell = oneField({ is: text(), now: closed({ unit: choice('s') }) });
  const schema = closed({
    rows: list(dictionary(text(), cell)),
    bound: either(closed({ a: text() }), closed({ b: list(integer(0)) })),
  });
  const rows = [{}, { column: { now: { unit: 's' } } }];
  const good = { rows, bound: { b: [1] } };
  assert.ok(assertReads(schema, good));
  const refusals: readonly [unknown, (string | number)[]][] = [
    [
      { ...good, rows: [{}, { column: { now: { unit: 'h' } } }] },
      ['rows', 1, 'column', 'now', 'unit'],
    ],
    [{ ...good, bound: { b: [1, -1] } }, ['bound', 'b', 1]],
    [{ ...good, bound: { a: 1 } }, ['bound']],
  ];
  for (const [input, path] of refusals) {
    const found = copyOnce(schema, input, Number.POSITIVE_INFINITY);
    assert.deepEqual('path' in found && found.path, path);
  }
});

test('an input that answers differently every time gives a copy that fits its text', () => {
  let asked = 0;
  const liar = new Proxy(
    { version: 1, digest, text: digest },
    {
      getOwnPropertyDescriptor(target, key) {
        asked += 1;
        const found = Reflect.getOwnPropertyDescriptor(target, key);
        return found && key === 'digest'
          ? { ...found, value: String(asked).padStart(64, '0') }
          : found;
      },
    },
  );
  const found = copyOnce(schemaOf('document'), liar, 10);
  assert.ok('copy' in found);
  assert.deepEqual(JSON.parse(written(found)), found.copy);
});

test('an array that tells another length every time is never longer or shorter than its schema says', () => {
  for (const schema of [list(text(), 2, 2), pair(text())]) {
    for (const items of [['a'], ['a', 'b', 'c']]) {
      for (let lies = 0; lies < 8; lies += 1) {
        let asked = 0;
        const get = (target: string[], key: string | symbol) => {
          if (key !== 'length') return Reflect.get(target, key);
          asked += 1;
          return asked <= lies ? 2 : target.length;
        };
        const found = copyOnce(schema as Schema<unknown>, new Proxy(items, { get }), 10);
        assert.ok('why' in found, `${items.length} items, ${lies} lies`);
      }
    }
  }
});

test('what a careless path writes to the functions of built-in objects does not reach the reader', () => {
  const { propertyIsEnumerable: method } = Object.prototype;
  Reflect.set(method, 'call', 1);
  try {
    const found = copyOnce(closed({ a: optional(text()) }), { a: 'x' }, 10);
    assert.deepEqual('copy' in found && found.copy, { a: 'x' });
  } finally {
    Reflect.deleteProperty(method, 'call');
  }
});

test('what is written where every object inherits from has no say in the text', () => {
  const schema = closed({ a: list(text()), b: plain });
  const input = { a: ['x'], b: { c: [1], d: { toJSON: 'own' } } };
  const expected = copyOnce(schema, input, 10);
  assert.ok('copy' in expected);
  assert.equal(written(expected), canonical(input));
  for (const owner of [Object.prototype, Array.prototype]) {
    Object.defineProperty(owner, 'toJSON', {
      value: () => 'forged',
      configurable: true,
      writable: true,
    });
    try {
      const found = copyOnce(schema, input, 10);
      assert.deepEqual(found, expected);
      assert.equal('copy' in found && written(found), canonical(input));
    } finally {
      Reflect.deleteProperty(owner, 'toJSON');
    }
  }
});

test('a text that no string can hold is refused, whatever makes it long', () => {
  const long = 'x'.repeat(2 ** 27);
  const inputs = [[long, long, long], { [long]: long, y: 'x' }, ['\u0001'.repeat(2 ** 27)]];
  for (const input of inputs) {
    const found = copyOnce(closed({ a: plain }), { a: input }, 10);
    assert.ok('why' in found || [...writePieces(found)].includes(undefined));
  }
});

test('a small graph with a large copy is refused without making the copy', () => {
  let value: unknown = [1];
  for (let level = 0; level < 50; level += 1) value = [value, value];
  const vector = vectors.find(({ kind }) => kind === 'approved');
  const input = { ...vector?.record, requires: [{ target: 't', key: { id: value }, row: null }] };
  assert.ok('why' in copyOnce(approvedRecord.schema, input, 1000));
  assert.throws(() => approvedRecord.parse(input), { code: 'ERR_EM_CANON_UNSUPPORTED' });
});
