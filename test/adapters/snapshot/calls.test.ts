// Goal: what calls leave of a state is the canonical text of it, or nothing. Method: random states
// and changes against canonical texts, through a real worker.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { parseAction } from '../../../src/adapters/snapshot/action.ts';
import { checkText, writeDocument } from '../../../src/adapters/snapshot/document.ts';
import { ToolRunner } from '../../../src/adapters/snapshot/tools.ts';
import { canonical } from '../../../src/protocol/canon.ts';
import type { Value } from '../../../src/protocol/value.ts';
import { toolModule } from './tool-module.ts';

/** As text and back, because states hold no negative zero; a key of that name is refused before. */
const plain: fc.Arbitrary<Value> = fc
  .jsonValue({ maxDepth: 4 })
  .map((value) => JSON.stringify(value))
  .filter((text) => !text.includes('__proto__'))
  .map((text) => JSON.parse(text));

const tools = toolModule({
  set(
    state: Record<string, Value>,
    { name, value, fails }: { name: string; value: Value; fails: boolean },
  ) {
    state[name] = value;
    if (fails) throw new Error('it was told to');
  },
});
const runner = new ToolRunner(
  { module: tools.href, data: undefined },
  { timeoutMs: 10_000, quotesValues: true },
);
after(() => runner.close());

test('a text is taken exactly if it is what the state that it describes is written as', () => {
  const deep = (levels: number): unknown => (levels === 0 ? 1 : { in: [deep(levels - 2)] });
  assert.ok(checkText(JSON.stringify(deep(48))));
  const strange = ['', '{"b":1,"a":2}', '{"a": 1}', '-0', '1e1', '"\\ud800"', '{"__proto__":1}'];
  for (const text of [...strange, JSON.stringify(deep(50)), JSON.stringify(deep(70))])
    assert.equal(checkText(text), undefined, text);
  for (const text of [undefined, null, 1, {}] as never[])
    assert.equal(checkText(text), undefined, String(text));
  fc.assert(
    fc.property(plain, (state) => {
      const text = writeDocument(state);
      assert.deepEqual(checkText(text), { text, state: JSON.parse(text) });
    }),
  );
});

test('keys that JSON.parse of the engine takes for each other are not mixed up', () => {
  // The second text has the shape of the first, and begins with the same characters.
  const [first, second] = [
    { a: 0, 'q\\': 1 },
    { a: 0, 'q"': 1 },
  ];
  assert.deepEqual(checkText(writeDocument(first))?.state, first);
  const read = checkText(writeDocument(second));
  assert.ok(read === undefined || Object.hasOwn(Object(read.state), 'q"'));
  const { calls } = parseAction({ calls: [{ tool: 'set', args: second }] }, ['set']);
  assert.deepEqual(calls[0]?.args, second);
});

test('whatever calls leave of a state, its text is the canonical one, and calls that fail leave the text before', async () => {
  await runner.open();
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
        const ran = await runner.run({ text, state: JSON.parse(text) }, calls);
        assert.ok(ran.kind === 'done');
        assert.equal(ran.made.text, canonical(expected));
        assert.deepEqual(ran.made.state, JSON.parse(ran.made.text));
        assert.deepEqual(
          ran.calls.map(({ failed }) => failed !== undefined),
          steps.map(({ fails }) => fails),
        );
      },
    ),
  );
});
