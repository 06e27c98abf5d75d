import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PromotableAdapter } from '../../contract/adapter.ts';
import { EffectMatchError } from '../../errors.ts';
import { unclassified } from '../../protocol/boundary.ts';
import { canonical } from '../../protocol/canon.ts';
import { insert } from '../../protocol/draft.ts';
import { isName } from '../../protocol/record.ts';
import { failsWith } from '../fails-with.ts';
import { type AdapterKit, openBench } from './kit.ts';

/** What an adapter declares about itself, its actions and its manifests before anything runs. */
export function declarationTests(kit: AdapterKit): void {
  test('two instances on one backend have one identity', async () => {
    await using bench = await openBench(kit);
    const other = await bench.again();
    assert.deepEqual(other.identity, bench.adapter.identity);
    assert.deepEqual(other.registration, bench.adapter.registration);
    assert.deepEqual(other.channels, bench.adapter.channels);
    for (const part of Object.values(other.identity))
      assert.ok(part.length > 0 && part.length <= 256);
  });

  test('two backends have different identities', async () => {
    await using one = await openBench(kit);
    await using other = await openBench(kit);
    assert.notEqual(one.adapter.identity.backend, other.adapter.identity.backend);
  });

  test('the declared profile is a supported one, and channels have different names', async () => {
    await using bench = await openBench(kit);
    const { registration, profiles, channels } = bench.adapter;
    assert.ok(profiles.includes(registration.profile));
    assert.equal(new Set(channels).size, channels.length);
    for (const channel of channels) assert.ok(isName(channel), channel);
    canonical(registration);
  });

  test('whatever is not an action is refused as such, without any other error', async () => {
    await using bench = await openBench(kit);
    for (const [what, junk] of JUNK) assertRefused(bench.adapter, junk, what);
  });

  test('an action with an unknown field is refused', async (context) => {
    await using bench = await openBench(kit);
    const { action } = bench.specimen.effect;
    if (typeof action !== 'object') return context.skip('actions of this adapter are not objects');
    const surprising = { ...action, 'effectmatch-surprise': 1 };
    assertRefused(bench.adapter, surprising, 'an unknown field');
  });

  test('a parsed action does not change with what was handed over', async () => {
    await using bench = await openBench(kit);
    const handedOver = structuredClone(bench.specimen.effect.action);
    const action = bench.adapter.parseAction(handedOver);
    const described = canonical(bench.adapter.describeAction(action));
    spoil(handedOver);
    assert.equal(canonical(bench.adapter.describeAction(action)), described);
  });

  test('equal actions have one description and different ones have different ones', async () => {
    await using bench = await openBench(kit);
    const describe = (input: unknown) =>
      canonical(bench.adapter.describeAction(bench.adapter.parseAction(structuredClone(input))));
    const { effect, extra, failing } = bench.specimen;
    assert.equal(describe(effect.action), describe(effect.action));
    assert.equal(new Set([effect.action, extra, failing].map(describe)).size, 3);
  });

  test('normalising is idempotent and changes nothing durable', async () => {
    await using bench = await openBench(kit);
    const once = await bench.adapter.normalise(bench.manifest());
    assert.equal(canonical(await bench.adapter.normalise(once)), canonical(once));
    await bench.assertUntouched();
  });

  test('a manifest about a target or a column that is not registered is refused', async () => {
    await using bench = await openBench(kit);
    const manifest = bench.manifest();
    const [effect] = bench.specimen.effect.leaves;
    assert.ok(effect !== undefined);
    const elsewhere = { ...manifest, effects: [insert('effectmatch-nowhere', { id: 1 })] };
    await failsWith('ERR_EM_MANIFEST_INVALID', bench.adapter.normalise(elsewhere));
    const images =
      effect.op === 'delete'
        ? ['before']
        : effect.op === 'insert'
          ? ['after']
          : ['before', 'after'];
    const surprise = { 'effectmatch-surprise': { is: 1 } };
    const strange = { ...effect, ...Object.fromEntries(images.map((image) => [image, surprise])) };
    await failsWith(
      'ERR_EM_MANIFEST_INVALID',
      bench.adapter.normalise({ ...manifest, effects: [strange] }),
    );
  });

  test('a survey is the same every time, frozen, and leaves no outlet unclassified', async () => {
    await using bench = await openBench(kit);
    const first = await bench.adapter.survey();
    const second = await bench.adapter.survey();
    const other = await (await bench.again()).survey();
    assert.equal(canonical(second), canonical(first));
    assert.equal(canonical(other), canonical(first));
    assert.ok(Object.isFrozen(first.outlets), 'a frozen list is digested once');
    assert.ok(first.outlets.length > 0, 'a backend without outlets stores nothing');
    assert.deepEqual(unclassified(first), []);
  });

  test('holding and promoting a candidate does not change the survey', async () => {
    await using bench = await openBench(kit);
    const before = canonical(await bench.adapter.survey());
    const { stage, proofs } = await bench.hold('survey');
    assert.equal(canonical(await bench.adapter.survey()), before);
    await stage.promote(proofs.permit(await stage.observe()));
    assert.equal(canonical(await bench.adapter.survey()), before);
  });
}

const cycle: Record<string, unknown> = {};
cycle.self = cycle;
const JUNK: readonly (readonly [string, unknown])[] = [
  ['undefined', undefined],
  ['null', null],
  ['true', true],
  ['a number', 4711],
  ['a bigint', 1n],
  ['a symbol', Symbol('action')],
  ['a function', () => {}],
  ['an empty array', []],
  ['an empty object', {}],
  ['an object of nothing known', { 'effectmatch-surprise': 1 }],
  ['a date', new Date(0)],
  ['a map', new Map()],
  ['a cycle', cycle],
  ['a key that would be a prototype', JSON.parse('{"__proto__":{"sql":"delete"}}')],
  [
    'a getter that throws',
    Object.defineProperty({}, 'sql', { enumerable: true, get: () => assert.fail('was called') }),
  ],
  ['a lone surrogate', { sql: '\ud800', writes: '\ud800' }],
];

/** Overwrites every value that can be overwritten, at every depth. */
function spoil(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    spoil(inner);
    (value as Record<string, unknown>)[key] = 'spoiled';
  }
}

function assertRefused(adapter: PromotableAdapter, input: unknown, what: string): void {
  const instead = 'throw refuseAction(…) instead';
  try {
    adapter.parseAction(input);
  } catch (error) {
    const code = error instanceof EffectMatchError ? error.code : String(error);
    assert.equal(code, 'ERR_EM_ACTION_INVALID', `parseAction(${what}) threw ${code}; ${instead}`);
    return;
  }
  assert.fail(`parseAction(${what}) returned an action; ${instead}`);
}
