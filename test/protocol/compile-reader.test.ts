// Goal: reading a record in one pass accepts, writes and copies exactly what the canonical text and
// the schema do. Method: every golden vector as it is and changed at a random place in a random
// way, compared with the separate steps.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { z } from 'zod';
import { EffectMatchError } from '../../src/errors.ts';
import { documentRecord } from '../../src/ledger/journal.ts';
import { canonical } from '../../src/protocol/canon.ts';
import { compileReader, type Read } from '../../src/protocol/compile-reader.ts';
import { approvedRecord } from '../../src/protocol/manifest.ts';
import { PLAIN_PATTERNS } from '../../src/protocol/patterns.ts';
import type { RecordKind } from '../../src/protocol/record.ts';
import { plainSchema } from '../../src/protocol/value.ts';
import { recordKinds, vectors } from '../vectors/load.ts';

const ledgerKind = documentRecord as unknown as RecordKind<object>;
const kinds = new Map([...(await recordKinds()), [ledgerKind.kind, ledgerKind] as const]);
const digest = 'ab'.repeat(32);
const samples: readonly { readonly kind: string; readonly record: object }[] = [
  ...vectors,
  { kind: 'document', record: { version: 1, digest, text: digest } },
];
const readers = new Map([...kinds].map(([name, kind]) => [name, compileReader(kind.schema)]));

test('every record kind has a reader, except the policy, whose hours have a check of their own', () => {
  const without = [...readers].filter(([, read]) => read === undefined).map(([name]) => name);
  assert.deepEqual(without, ['policy']);
  assert.deepEqual(
    [...kinds.keys()].filter((name) => !samples.some(({ kind }) => kind === name)),
    [],
  );
});

/** The same by the separate steps. */
function readInSteps(schema: z.ZodType, input: unknown): Read | undefined {
  let text: string;
  try {
    text = canonical(input);
  } catch (error) {
    if (error instanceof EffectMatchError) return undefined;
    throw error;
  }
  const result = schema.safeParse(JSON.parse(text));
  return result.success ? { copy: result.data, text } : undefined;
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

function assertAgree(schema: z.ZodType, input: unknown, read = compileReader(schema)): boolean {
  const once = read?.(input, Number.POSITIVE_INFINITY);
  const inSteps = readInSteps(schema, input);
  assert.equal(once === undefined, inSteps === undefined, 'accepted by one of them');
  if (once === undefined || inSteps === undefined) return false;
  assert.equal(once.text, inSteps.text);
  assert.deepStrictEqual(once.copy, inSteps.copy);
  const shared = objectsIn(input);
  for (const object of objectsIn(once.copy))
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

test('every golden vector reads the same in one pass as in steps', () => {
  for (const { kind, record } of samples.filter(({ kind }) => kind !== 'policy')) {
    assert.ok(assertAgree((kinds.get(kind) as RecordKind<object>).schema, record), kind);
  }
});

test('property: a changed record reads the same in one pass as in steps, and no accessor is called', () => {
  const compiled = samples.filter(({ kind }) => readers.get(kind) !== undefined);
  const change = fc.record({
    place: fc.nat(),
    change: fc.oneof(fc.constant(CHANGES[0]), fc.constantFrom(...CHANGES)),
    stray: fc.constantFrom(...STRAYS),
  });
  let [accepted, refused] = [0, 0];
  fc.assert(
    fc.property(
      fc.constantFrom(...compiled),
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
        const { schema } = kinds.get(sample.kind) as RecordKind<object>;
        if (assertAgree(schema, input, readers.get(sample.kind))) accepted += 1;
        else refused += 1;
        assert.equal(calls, 0, 'an accessor was called');
      },
    ),
    { numRuns: 10_000 },
  );
  assert.ok(accepted > 1000 && refused > 1000, `${accepted} accepted, ${refused} refused`);
});

test('property: plain values read the same in one pass as in steps', () => {
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 6, stringUnit: 'binary' }),
    fc.anything({ withNullPrototype: true }),
  );
  const safe = value.filter(
    (drawn) => !/\\/.test(JSON.stringify(drawn, (_, v) => (typeof v === 'bigint' ? 0 : v)) ?? ''),
  );
  fc.assert(
    fc.property(safe, (drawn) => void assertAgree(plainSchema, drawn)),
    { numRuns: 1000 },
  );
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
  const read = readers.get('document')?.(liar, 10);
  assert.deepEqual(JSON.parse(read?.text ?? ''), read?.copy);
});

test('an array that tells another length every time is never longer or shorter than its schema says', () => {
  const arrays = [z.array(z.string()).min(2).max(2), z.tuple([z.string(), z.string()])];
  for (const schema of arrays) {
    const read = compileReader(schema);
    for (const items of [['a'], ['a', 'b', 'c']]) {
      for (let lies = 0; lies < 8; lies += 1) {
        let asked = 0;
        const get = (target: string[], key: string | symbol) => {
          if (key !== 'length') return Reflect.get(target, key);
          asked += 1;
          return asked <= lies ? 2 : target.length;
        };
        assert.equal(
          read?.(new Proxy(items, { get }), 10),
          undefined,
          `${items.length} items, ${lies} lies`,
        );
      }
    }
  }
});

test('what a careless path writes to the functions of built-in objects does not reach the reader', () => {
  const { propertyIsEnumerable: method } = Object.prototype;
  Reflect.set(method, 'call', 1);
  try {
    const input = { a: 'x' };
    const read = compileReader(z.strictObject({ a: z.string().optional() }))?.(input, 10);
    assert.equal(read?.text, '{"a":"x"}');
  } finally {
    Reflect.deleteProperty(method, 'call');
  }
});

test('what is written where every object inherits from has no say in the text', () => {
  const schema = z.strictObject({ a: z.array(z.string()), b: plainSchema });
  const input = { a: ['x'], b: { c: [1], d: { toJSON: 'own' } } };
  const expected = compileReader(schema)?.(input, 10);
  assert.equal(expected?.text, canonical(input));
  for (const owner of [Object.prototype, Array.prototype]) {
    Object.defineProperty(owner, 'toJSON', {
      value: () => 'forged',
      configurable: true,
      writable: true,
    });
    try {
      assert.deepEqual(compileReader(schema)?.(input, 10), expected);
    } finally {
      Reflect.deleteProperty(owner, 'toJSON');
    }
  }
});

test('a text that no string can hold is left to the steps, whatever makes it long', () => {
  const read = compileReader(plainSchema);
  const long = 'x'.repeat(2 ** 27);
  assert.equal(read?.([long, long, long], 10), undefined);
  assert.equal(read?.({ [long]: long, y: 'x' }, 10), undefined);
  assert.equal(read?.(['\u0001'.repeat(2 ** 27)], 10), undefined, 'six characters for each');
});

test('a small graph with a large copy is left to the steps, which refuse it without making the copy', () => {
  let value: unknown = [1];
  for (let level = 0; level < 50; level += 1) value = [value, value];
  const vector = vectors.find(({ kind }) => kind === 'approved');
  const input = { ...vector?.record, requires: [{ target: 't', key: { id: value }, row: null }] };
  assert.equal(readers.get('approved')?.(input, 1000), undefined);
  assert.throws(() => approvedRecord.parse(input), { code: 'ERR_EM_CANON_UNSUPPORTED' });
});

test('what fits a plain pattern stands in JSON as it is', () => {
  const unsafe = Array.from({ length: 2 ** 16 }, (_, unit) => String.fromCharCode(unit)).filter(
    (unit) => !/^[\x20\x21\x23-\x5b\x5d-\x7e]$/.test(unit),
  );
  for (const pattern of PLAIN_PATTERNS) {
    const fitting = fc.stringMatching(pattern);
    fc.assert(fc.property(fitting, (text) => JSON.stringify(text) === `"${text}"`));
    const [text = ''] = fc.sample(fitting, 1);
    for (const unit of unsafe) {
      assert.ok(
        ![0, 1, text.length - 1].some((at) =>
          pattern.test(text.slice(0, at) + unit + text.slice(at + 1)),
        ),
      );
      assert.ok(!pattern.test(text + unit) && !pattern.test(unit + text));
    }
  }
});

test('a schema with a part that is not known has no reader', () => {
  const unknown: readonly z.ZodType[] = [
    z.date(),
    z.number(),
    z.coerce.string(),
    z.email(),
    z.iso.datetime(),
    z.record(z.uuid(), z.string()),
    z.string().default('x'),
    z.string().regex(/^a$/g),
    z.string().regex(/^a$/y),
    z.string().regex(/a/).regex(/b/),
    z.string().toLowerCase(),
    z.string().refine((text) => text !== 'b'),
    z.literal(0),
    z.literal(null),
    z.int().multipleOf(2),
    z.int().gt(1),
    z.array(z.date()),
    z.array(z.string()).refine((list) => list.length !== 2),
    z.tuple([z.string()], z.string()),
    z.tuple([z.date()]),
    z.record(z.enum(['a', 'b']), z.string()),
    z.record(z.string(), z.date()),
    z.looseRecord(z.string().regex(/^a/), z.string()),
    z.object({ a: z.string() }),
    z.looseObject({ a: z.string() }),
    z.strictObject({ a: z.date() }),
    z.strictObject({ a: z.string() }).refine(() => true),
    z.union([z.string(), z.date()]),
    z.xor([z.string(), z.literal('a')]),
    z.discriminatedUnion('a', [z.strictObject({ a: z.enum(['x', 'y']) })]),
    z.nullable(z.date()),
    z.custom<string>(() => true),
    z.lazy(() => z.string()),
  ];
  for (const schema of unknown)
    assert.equal(compileReader(schema), undefined, schema._zod.def.type);
});
