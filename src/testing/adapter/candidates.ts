import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Evidence, PromotableAdapter } from '../../contract/adapter.ts';
import { approvedOutcome } from '../../protocol/approve.ts';
import type { StateRead } from '../../protocol/effect.ts';
import { prepareApproved } from '../../protocol/match.ts';
import { establish } from '../../protocol/observation.ts';
import { classify, type Outcome } from '../../protocol/outcome.ts';
import { isName } from '../../protocol/record.ts';
import { type AdapterBench, type AdapterKit, openBench, proofsOn } from './kit.ts';

/** A held candidate: what it shows, who sees it, and that discarding it leaves no trace. */
export function candidateTests(kit: AdapterKit): void {
  test('a held candidate is invisible outside', async () => {
    await using bench = await openBench(kit);
    await bench.hold('held');
    await bench.assertUntouched();
  });

  test('the evidence of an action with known effects establishes exactly them', async () => {
    await using bench = await openBench(kit);
    const { stage } = await bench.hold('exact');
    const outcome = await compare(bench, await stage.observe());
    assert.equal(outcome.kind, 'EXACT', JSON.stringify(outcome));
  });

  test('the evidence of an action that leaves more shows the difference', async () => {
    await using bench = await openBench(kit);
    const { stage } = await bench.hold('extra', bench.specimen.extra);
    const outcome = await compare(bench, await stage.observe());
    assert.equal(outcome.kind, 'DIVERGED', JSON.stringify(outcome));
  });

  test('every declared channel answers once', async () => {
    await using bench = await openBench(kit);
    const { stage } = await bench.hold('channels');
    const { channels } = await stage.observe();
    assert.ok(bench.adapter.channels.length > 0, 'an adapter without channels proves nothing');
    for (const channel of bench.adapter.channels) {
      const reports = channels.filter((report) => report.channel === channel);
      assert.equal(reports.length, 1, `channel "${channel}"`);
      assert.notEqual(reports[0]?.kind, 'silent', `channel "${channel}"`);
    }
  });

  test('one channel says how many records there are', async () => {
    await using bench = await openBench(kit);
    const { stage } = await bench.hold('count');
    const { channels, records } = await stage.observe();
    const sources = channels.filter((report) => report.kind === 'records');
    assert.deepEqual(
      sources.map(({ count }) => count),
      [records.length],
    );
  });

  test('observing again shows the same, and so does the recheck of the final gate', async () => {
    await using bench = await openBench(kit);
    const { stage } = await bench.hold('again');
    const { candidate, evidence, records } = await stage.observe();
    const second = await stage.observe();
    assert.equal(candidate, stage.candidate);
    assert.deepEqual({ candidate, evidence, records }, pickEvidence(second));
    const facts = await stage.recheck();
    assert.deepEqual(
      { candidate: facts.candidate, evidence: facts.evidence },
      { candidate, evidence },
    );
  });

  test('what identifies candidate and evidence fits into a permit', async () => {
    await using bench = await openBench(kit);
    const first = await bench.hold('first');
    const { candidate, evidence } = await first.stage.observe();
    assert.ok(candidate.length >= 1 && candidate.length <= 256, candidate);
    assert.ok(evidence.length <= 256, evidence);
    await first.stage.discard();
    const second = await bench.hold('second');
    assert.notEqual(second.stage.candidate, candidate, 'another candidate has another identity');
  });

  test('a write after the observation changes the recheck', async (context) => {
    await using bench = await openBench(kit);
    const { writeInto } = bench.specimen;
    if (writeInto === undefined)
      return context.skip('the kit has no way to write into a held candidate');
    const { stage } = await bench.hold('written');
    const { evidence } = await stage.observe();
    await writeInto(stage);
    assert.notEqual((await stage.recheck()).evidence, evidence);
  });

  test('discard leaves nothing and may be repeated', async () => {
    await using bench = await openBench(kit);
    const { stage } = await bench.hold('discarded');
    await stage.observe();
    await stage.discard();
    await stage.discard();
    await stage[Symbol.asyncDispose]();
    await bench.assertUntouched();
  });

  test('disposal without discard leaves nothing and frees the backend', async () => {
    await using bench = await openBench(kit);
    {
      await using _stage = (await bench.hold('disposed')).stage;
    }
    await bench.assertUntouched();
    await bench.hold('next', undefined, await bench.again());
  });

  test('a failing action leaves nothing, says why, and frees the backend', async () => {
    await using bench = await openBench(kit);
    const { adapter, specimen } = bench;
    const { claim, certificate } = await proofsOn(adapter, 'failing');
    const staged = await adapter.stage(claim, certificate, adapter.parseAction(specimen.failing));
    assert.ok(staged.kind === 'failed', 'the action was meant to fail');
    assert.ok(isName(staged.reason), `"${staged.reason}" is not a name that a terminal can carry`);
    assert.equal(typeof staged.detail, 'string');
    await bench.assertUntouched();
    await bench.hold('next', undefined, await bench.again());
  });

  test('declared state reads the same outside and inside a candidate, whatever its action wrote', async () => {
    await using bench = await openBench(kit);
    const { adapter, specimen } = bench;
    const outside = await adapter.read(specimen.reads);
    assert.equal(outside.length, specimen.reads.length);
    assert.deepEqual(
      outside.map(({ target, key }) => ({ target, key })),
      specimen.reads.map(({ target, key }) => ({ target, key })),
    );
    const { stage } = await bench.hold('reads');
    assert.deepEqual(await stage.read(specimen.reads), outside);
    assert.deepEqual(await stage.read([...specimen.reads].reverse()), [...outside].reverse());
    await stage.discard();
    assert.deepEqual(await adapter.read(specimen.reads), outside);
  });

  readingTests(kit);
}

/** What a reading of declared state contains. */
function readingTests(kit: AdapterKit): void {
  test('a reading holds every registered column, or only the columns that were asked for', async () => {
    await using bench = await openBench(kit);
    const reads = [...bench.specimen.reads, ...changedRows(bench)];
    const asked = reads.flatMap((read) => [
      read,
      { ...read, columns: columnsOf(bench, read).slice(-1) },
    ]);
    for (const [index, { row }] of (await bench.adapter.read(asked)).entries()) {
      const read = asked[index] as StateRead;
      if (row === null) continue;
      const expected = read.columns ?? columnsOf(bench, read);
      assert.deepEqual(Object.keys(row).sort(), [...expected].sort(), JSON.stringify(read));
    }
  });

  test('a row that an action changes reads differently after its promotion', async () => {
    await using bench = await openBench(kit);
    const reads = changedRows(bench);
    const before = await bench.adapter.read(reads);
    const { stage, proofs } = await bench.hold('changed');
    await stage.promote(proofs.permit(await stage.observe()));
    const after = await bench.adapter.read(reads);
    for (const [index, { row, ...read }] of before.entries()) {
      assert.notEqual(row, null, `${JSON.stringify(read)} is to be changed, and reads as missing`);
      assert.notDeepEqual(after[index]?.row, row, `${JSON.stringify(read)} was changed`);
    }
  });
}

/** Reads of the rows that `effect` updates or deletes. */
function changedRows({ specimen }: AdapterBench): readonly StateRead[] {
  return specimen.effect.leaves.flatMap(({ op, target, key }) => {
    const cells = Object.entries(key ?? {});
    if (op === 'insert' || cells.some(([, cell]) => !('is' in cell))) return [];
    const values = cells.map(([name, cell]) => [name, 'is' in cell ? cell.is : null]);
    return [{ target, key: Object.fromEntries(values) }];
  });
}

function columnsOf({ adapter }: AdapterBench, { target }: StateRead): readonly string[] {
  const found = adapter.registration.targets.find(({ name }) => name === target);
  assert.ok(found !== undefined, `"${target}" is read and not registered`);
  return found.columns;
}

/**
 * The core's classification of evidence, against the effects that the kit declares for its action.
 */
export async function compare(bench: AdapterBench, evidence: Evidence): Promise<Outcome> {
  const { registration, channels } = bench.adapter;
  const manifest = await (bench.adapter as PromotableAdapter).normalise(bench.manifest());
  const approved = approvedOutcome(manifest, registration, '0'.repeat(32));
  return classify(prepareApproved(approved), establish(evidence, registration, channels), evidence);
}

function pickEvidence({ candidate, evidence, records }: Evidence) {
  return { candidate, evidence, records };
}
