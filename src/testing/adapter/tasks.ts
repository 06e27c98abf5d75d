import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { PromotableAdapter, TaskStage } from '../../contract/adapter.ts';
import { isName } from '../../protocol/record.ts';
import type { Proofs } from '../proofs.ts';
import { compare } from './candidates.ts';
import { type AdapterBench, type AdapterKit, openBench, proofsOn } from './kit.ts';

const DEADLINE_MS = 60_000;

/** A candidate that takes the calls of a task. Skipped if the adapter has no `hold`. */
export function taskTests(kit: AdapterKit): void {
  onTask(kit, 'calls one after another leave what one action leaves', async (bench) => {
    const { specimen, adapter } = bench;
    const { stage, proofs } = await openTask(bench, 'calls');
    assert.equal((await stage.call(adapter.parseAction(specimen.effect.action))).kind, 'done');
    await bench.assertUntouched();
    assert.equal((await stage.complete()).kind, 'done');
    const evidence = await stage.observe();
    assert.equal((await compare(bench, evidence)).kind, 'EXACT');
    assert.equal((await stage.recheck()).evidence, evidence.evidence);
    const promotion = await stage.promote(proofs.permit(evidence));
    assert.equal(promotion.kind, 'confirmed', JSON.stringify(promotion));
    assert.notDeepEqual(await specimen.readDurable(), bench.before);
  });

  onTask(kit, 'a call that fails leaves nothing of it, before and after others', async (bench) => {
    const { specimen, adapter } = bench;
    const { stage } = await openTask(bench, 'failing');
    const failing = adapter.parseAction(specimen.failing);
    const first = await stage.call(failing);
    assert.ok(first.kind === 'failed' && isName(first.reason), JSON.stringify(first));
    assert.equal(first.isLost, undefined, 'the candidate is still there');
    assert.equal((await stage.call(adapter.parseAction(specimen.effect.action))).kind, 'done');
    assert.equal((await stage.call(failing)).kind, 'failed');
    assert.equal((await stage.complete()).kind, 'done');
    const outcome = await compare(bench, await stage.observe());
    assert.equal(outcome.kind, 'EXACT', JSON.stringify(outcome));
    await stage.discard();
    await bench.assertUntouched();
  });

  onTask(kit, 'a call that leaves more shows in the comparison', async (bench) => {
    const { stage } = await openTask(bench, 'extra');
    const answer = await stage.call(bench.adapter.parseAction(bench.specimen.extra));
    assert.equal(answer.kind, 'done', JSON.stringify(answer));
    await stage.complete();
    assert.equal((await compare(bench, await stage.observe())).kind, 'DIVERGED');
  });

  onTask(kit, 'a task without a successful call leaves nothing to compare', async (bench) => {
    for (const calls of [[], [bench.specimen.failing]]) {
      const { stage } = await openTask(bench, `none-${calls.length}`);
      for (const call of calls) await stage.call(bench.adapter.parseAction(call));
      assert.equal((await stage.complete()).kind, 'done');
      assert.deepEqual((await stage.observe()).records, []);
      await stage.discard();
    }
  });

  onTask(kit, 'no call is taken once a task is complete', async (bench) => {
    const { stage } = await openTask(bench, 'complete');
    await stage.complete();
    const late = stage.call(bench.adapter.parseAction(bench.specimen.effect.action));
    await assert.rejects(late, { code: 'ERR_EM_INVARIANT' });
    await stage.discard();
    await bench.assertUntouched();
  });

  onTask(kit, 'recorded actions join to one that runs them in order', async (bench) => {
    const { adapter, specimen } = bench;
    assert.ok(adapter.joinActions !== undefined, 'drafts need it');
    const told = (action: unknown) => adapter.describeAction(adapter.parseAction(action));
    const { action } = specimen.effect;
    assert.deepEqual(told(adapter.joinActions([action])), told(action));
    const [both, ...parts] = [
      adapter.joinActions([action, specimen.extra]),
      action,
      specimen.extra,
    ];
    const lists = parts.map((part) => Object.values(told(part) as object)[0] as unknown[]);
    assert.deepEqual(Object.values(told(both) as object)[0], lists.flat());
  });

  onTask(kit, 'an open task that is given up frees the backend', async (bench) => {
    const { stage } = await openTask(bench, 'given-up');
    await stage.call(bench.adapter.parseAction(bench.specimen.effect.action));
    await stage.discard();
    await bench.assertUntouched();
    await bench.hold('next', undefined, await bench.again());
  });
}

function onTask(kit: AdapterKit, claim: string, run: (bench: AdapterBench) => Promise<void>): void {
  test(claim, async (context: TestContext) => {
    await using bench = await openBench(kit);
    if (bench.adapter.hold === undefined) return context.skip('it holds no tasks');
    await run(bench);
  });
}

async function openTask(
  { adapter, specimen }: AdapterBench,
  name: string,
): Promise<{ readonly stage: TaskStage; readonly proofs: Proofs }> {
  const proofs = await proofsOn(adapter as PromotableAdapter, name);
  const terms = { reads: specimen.reads, settings: {}, deadlineMs: DEADLINE_MS };
  const held = await adapter.hold?.(proofs.claim, proofs.certificate, terms);
  assert.ok(held?.kind === 'held', JSON.stringify(held));
  return { stage: held.stage, proofs };
}
