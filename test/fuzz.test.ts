// Goal: no input from outside makes a parser accept what was changed, throw something else, work
// long or keep memory. Method: thousands of damaged records, texts and bytes from a printed seed,
// judged by oracles that share no code with the parsers; EFFECTMATCH_SEED repeats a run,
// test/fuzz/soak.ts makes a longer one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runCampaign } from './fuzz/campaign.ts';
import { damageValue } from './fuzz/damage-value.ts';
import { plainText } from './fuzz/oracle.ts';
import { openSubjects, type Subject } from './fuzz/subjects.ts';
import { countWork } from './fuzz/work.ts';
import { chooseSeed, randomOf, runsOf } from './random.ts';
import { recordKinds, vectors } from './vectors/load.ts';

/** So many inputs and more come from each round. */
const INPUTS_MIN = 1_800;
const ROUNDS = runsOf(14);
/**
 * The heap may end at this many times what it was when all parsers were warm. A leak of 100 bytes
 * an input is more.
 */
const HEAP_GROWTH_MAX = 1.5;
/** Levels that canonical text may have. */
const DEEPEST = 64;

const seed = chooseSeed();
console.log(`fuzz: seed ${seed}`);

const prototypes = () =>
  [Object.prototype, Array.prototype, String.prototype, Function.prototype].map((prototype) =>
    Object.getOwnPropertyDescriptors(prototype),
  );

test('damaged input is refused with a documented code, or is what it was', async () => {
  const before = prototypes();
  using opened = await openSubjects();
  const { inputs, tallies, heap } = runCampaign(opened.subjects, seed, ROUNDS);
  assert.ok(inputs >= INPUTS_MIN * ROUNDS, `only ${inputs} inputs`);
  for (const [name, { accepted, codes }] of tallies) {
    assert.ok(accepted > 0, `${name}: no input got as far as being judged`);
    assert.ok(codes.size > 0, `${name}: nothing was refused`);
  }
  assert.ok(
    heap.end <= heap.warm * HEAP_GROWTH_MAX,
    `the heap grew from ${heap.warm} to ${heap.end} bytes`,
  );
  assert.deepEqual(prototypes(), before, 'built-in prototypes are as they were');
  assert.equal(Reflect.get({}, 'polluted'), undefined);
});

test('the work on an object is proportional to its size, whatever is wrong with it', async () => {
  for (const [name, kind] of await recordKinds()) {
    const records = vectors.filter((vector) => vector.kind === name).map(({ record }) => record);
    for (let round = 0; round < 200; round += 1) {
      const label = `${seed}/effort/${name}/${round}`;
      const { looks, nodes } = countWork(damageValue(records, randomOf(label)), kind.parse);
      // A cycle has few nodes, and is followed down to the deepest level that canonical text
      // allows. Through the root, every level has all of them again.
      const most = 60 * (nodes + 64) + DEEPEST * nodes;
      assert.ok(looks <= most, `case ${label}: ${looks} looks at ${nodes} nodes`);
    }
  }
});

test('a parser that accepts what was changed, or throws anything else, does not get away with it', () => {
  const record = { version: 1, note: 'whole', list: [1, 2, 3] };
  const subject = (parse: (input: unknown) => unknown): Subject => ({
    name: 'careless',
    share: 200,
    codes: ['ERR_EM_RECORD_INVALID'],
    attempt(dice) {
      const input = damageValue([record], dice);
      assert.equal(plainText(parse(input)), plainText(input));
      return undefined;
    },
  });
  const campaign = (parse: (input: unknown) => unknown) => () =>
    runCampaign([subject(parse)], seed, 2);
  assert.throws(
    campaign((input) => input),
    /careless answered/,
    'takes anything',
  );
  assert.throws(
    campaign(() => record),
    /careless answered/,
    'answers with something else',
  );
  assert.throws(
    campaign((input) => JSON.parse(JSON.stringify(input))),
    /careless answered/,
    'drops what it cannot carry',
  );
  assert.throws(
    campaign((input) => (input as typeof record).list.length),
    /careless answered/,
    'trips over it',
  );
});
