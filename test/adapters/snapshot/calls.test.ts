// Goal: what is quick about running calls finds and leaves the same as what is slow: copies, texts,
// looks at built-ins. Method: random states and changes against canonical texts; every property of
// every built-in object spoilt in turn.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { overAction } from '../../../src/adapters/snapshot/built-ins.ts';
import {
  copyDocument,
  readDocument,
  takeDocument,
  writeDocument,
} from '../../../src/adapters/snapshot/document.ts';
import { runCalls } from '../../../src/adapters/snapshot/tools.ts';
import { canonical } from '../../../src/protocol/canon.ts';
import type { Value } from '../../../src/protocol/value.ts';

/** As text and back, because states hold no negative zero; a key of that name is refused before. */
const plain: fc.Arbitrary<Value> = fc
  .jsonValue({ maxDepth: 4 })
  .map((value) => JSON.stringify(value))
  .filter((text) => !text.includes('__proto__'))
  .map((text) => JSON.parse(text));

test('a copy says the same in the same order and shares nothing that can be changed', () => {
  fc.assert(
    fc.property(plain, (state) => {
      const copy = copyDocument(state);
      assert.equal(JSON.stringify(copy), JSON.stringify(state));
      const seen = new Set(objectsIn(state));
      assert.ok(objectsIn(copy).every((object) => !seen.has(object)));
    }),
  );
});

test('a document is taken or refused as its canonical text is written, and shares nothing with what it was taken from', () => {
  const deep = (levels: number): unknown => (levels === 0 ? 1 : { in: [deep(levels - 2)] });
  const strange: fc.Arbitrary<unknown> = fc.constantFrom(
    ...[
      undefined,
      -0,
      Number.NaN,
      1n,
      '\ud800',
      new Date(0),
      new Map(),
      () => 1,
      new Array(2),
      deep(48),
      deep(50),
      deep(70),
    ],
    Object.create(null),
    Object.create({ inherited: 1 }),
    Object.defineProperty({}, 'x', { get: () => assert.fail('was called'), enumerable: true }),
    Object.defineProperty({ a: 1 }, 'hidden', { value: 1 }),
    Object.assign([], { named: 1 }),
    { [Symbol('s')]: 1 },
    { '\udfff': 1 },
    JSON.parse('{"__proto__":1}'),
    { 10: 1, 9: 2, a: 3 },
  );
  const some = fc.oneof(plain, strange);
  fc.assert(
    fc.property(fc.oneof(some, fc.array(some), fc.dictionary(fc.string(), some)), (state) => {
      const text = valueOrCode(() => writeDocument(state));
      const taken = valueOrCode(() => takeDocument(state));
      if (typeof taken === 'string' || typeof text !== 'string') return assert.equal(taken, text);
      assert.equal(taken.text, text);
      assert.deepEqual(taken.state, JSON.parse(text));
      const seen = new Set(objectsIn(state));
      assert.ok(objectsIn(taken.state).every((object) => !seen.has(object)));
    }),
    { numRuns: 500 },
  );
});

function valueOrCode<T>(attempt: () => T): T | string {
  try {
    return attempt();
  } catch (error) {
    return `${(error as { code?: unknown }).code}: ${String(error)}`;
  }
}

test('whatever calls leave of a state, its text is the canonical one, and calls that fail leave the text before', async () => {
  const step = fc.record({
    name: fc.constantFrom('a', 'b', '1', 'Z'),
    value: plain,
    fails: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.dictionary(fc.stringMatching(/^[a-z0-9]*$/), plain),
      fc.array(step, { maxLength: 6 }),
      async (initial, steps) => {
        const text = canonical(initial);
        const expected: Record<string, Value> = JSON.parse(text);
        for (const { name, value, fails } of steps) if (!fails) expected[name] = value;
        const calls = steps.map((args) => ({ tool: 'set', args, mayFail: true }));
        const ran = await runCalls(bench, { text, state: readDocument(text) }, { calls });
        assert.ok(ran.kind === 'done');
        assert.equal(ran.held.text, canonical(expected));
        assert.deepEqual(ran.held.state, JSON.parse(ran.held.text));
        assert.deepEqual(
          ran.calls.map(({ failed }) => failed !== undefined),
          steps.map(({ fails }) => fails),
        );
      },
    ),
  );
});

test('a text that was written while built-in objects were spoilt is not held, even where a later call mends them', async () => {
  const base = { text: '{"a":1}', state: { a: 1 } };
  const call = (tool: string) => ({ tool, args: {}, mayFail: true });
  const mended = await runCalls(bench, base, { calls: ['blind', 'surrogate', 'mend'].map(call) });
  assert.match(mended.kind === 'failed' ? mended.detail : '', /built-in objects/);
  const refused = await runCalls(bench, base, { calls: ['surrogate'].map(call) });
  assert.ok(
    refused.kind === 'done' && refused.held.text === base.text,
    'without that it is refused when its call ends',
  );
  const harmless = await runCalls(bench, base, { calls: ['blind', 'mend'].map(call) });
  assert.ok(harmless.kind === 'done' && harmless.held.text === base.text);
});

const MAKERS = [Object, Array, String, Number, Boolean, Function];
for (const maker of MAKERS) {
  test(`every property of ${maker.name} and its prototype is missed when it is overwritten, deleted or exchanged`, async () => {
    for (const object of [maker, maker.prototype as object]) {
      for (const name of Reflect.ownKeys(object)) {
        const was = Reflect.getOwnPropertyDescriptor(object, name);
        assert.ok(was);
        for (const spoil of spoilings(object, name, was)) {
          const intact = overAction(async (isIntact) => {
            spoil();
            return isIntact();
          });
          assert.equal(await intact, false, String(name));
          assert.deepEqual(Reflect.getOwnPropertyDescriptor(object, name), was, String(name));
          assert.ok(!Reflect.has(object, 'stranger'));
        }
      }
    }
    assert.ok(await overAction(async (isIntact) => isIntact()));
  });
}

function* spoilings(object: object, name: PropertyKey, was: PropertyDescriptor) {
  if (was.writable === true)
    yield () => Reflect.set(object, name, name === 'length' ? 7 : 'spoilt');
  if (was.configurable !== true) return;
  yield () => Reflect.deleteProperty(object, name);
  yield () => {
    Reflect.deleteProperty(object, name);
    Reflect.set(object, 'stranger', 1);
  };
  yield () => Reflect.defineProperty(object, 'stranger', { value: 1, configurable: true });
}

function objectsIn(value: unknown): object[] {
  if (typeof value !== 'object' || value === null) return [];
  return [value, ...Object.values(value).flatMap(objectsIn)];
}

const { isWellFormed } = String.prototype;
const bench = {
  toolTimeoutMs: 1000,
  quotesValues: true,
  tools: {
    set(
      state: Record<string, Value>,
      { name, value, fails }: { name: string; value: Value; fails: boolean },
    ) {
      state[name] = value;
      if (fails) throw new Error('it was told to');
    },
    blind() {
      String.prototype.isWellFormed = () => true;
    },
    surrogate(state: Record<string, Value>) {
      state.a = '\ud800';
    },
    mend() {
      String.prototype.isWellFormed = isWellFormed;
    },
  },
};
