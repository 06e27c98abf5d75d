import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LedgerContext } from '../../contract/ledgers.ts';
import type { Sealed } from '../../contract/seal.ts';
import type { ClaimRecord } from '../../protocol/binding.ts';
import { type Resolution, resolutionRecord } from '../../protocol/resolution.ts';
import { failsWith } from '../fails-with.ts';
import {
  claimFixture,
  fixtureContext,
  fixtureDigest,
  fixtureExecution,
  fixturePermit,
  fixtureTerminal,
} from './fixtures.ts';
import { type LedgerKit, openBench } from './kit.ts';

/**
 * An operator's decision about a claim. The ledger does not check the signature; the runtime does.
 */
export function fixtureResolution(
  { sealer }: LedgerContext,
  claim: ClaimRecord,
  overrides: Partial<Resolution> = {},
): Sealed<Resolution> {
  return sealer.seal(resolutionRecord, {
    version: 1,
    occurrence: claim.occurrence,
    execution: claim.execution,
    lineage: claim.license,
    finding: 'happened',
    evidence: fixtureDigest('evidence'),
    operator: 'operator',
    key: fixtureDigest('operator key'),
    at: '2026-01-01T12:00:00.000Z',
    signature: 'A'.repeat(86),
    ...overrides,
  });
}

/** How every ledger must handle operators' decisions. */
export function resolutionTests(kit: LedgerKit): void {
  test('a decision about an indeterminate occurrence is recorded once, and changes no verdict', async () => {
    await using bench = await openBench(kit);
    const { context, ledgers } = bench;
    const { record: claim } = await claimFixture(ledgers, context, 'lost', { leaseMs: 1 });
    await ledgers.consumePermit(fixturePermit(context, claim));
    await ledgers.record(fixtureTerminal(context, claim, 'indeterminate'), 'flushed');
    assert.equal((await ledgers.unsettled({ includeLeased: true })).length, 1);
    assert.equal(await ledgers.resolution(claim.occurrence), undefined);
    const resolution = fixtureResolution(context, claim);
    assert.deepEqual(await ledgers.resolve(resolution), resolution.record);
    assert.deepEqual(await ledgers.resolve(resolution), resolution.record);
    assert.deepEqual(await ledgers.resolution(claim.occurrence), resolution.record);
    assert.equal((await ledgers.terminal(claim.occurrence))?.kind, 'indeterminate');
    assert.deepEqual(await ledgers.unsettled({ includeLeased: true }), []);
    const last = (await ledgers.journal({ last: true, limit: 1 }))[0];
    assert.deepEqual([last?.kind, last?.record], ['resolution', resolution.record]);
    assert.equal((await ledgers.verify()).kind, 'intact');
  });

  test('an execution does not hold its occurrence once an operator has decided about it', async () => {
    await using bench = await openBench(kit);
    const { context, ledgers } = bench;
    const { record: claim } = await claimFixture(ledgers, context, 'decided');
    await ledgers.record(fixtureTerminal(context, claim, 'indeterminate'), 'flushed');
    assert.equal((await ledgers.standing(claim.task, claim)).holds, true);
    await ledgers.resolve(fixtureResolution(context, claim));
    assert.equal((await ledgers.standing(claim.task, claim)).holds, false);
  });

  test('another decision about the same occurrence is refused', async () => {
    await using bench = await openBench(kit);
    const { context, ledgers } = bench;
    const { record: claim } = await claimFixture(ledgers, context, 'disputed');
    await ledgers.consumePermit(fixturePermit(context, claim));
    await ledgers.resolve(fixtureResolution(context, claim));
    const other = fixtureResolution(context, claim, { finding: 'did-not-happen' });
    await failsWith('ERR_EM_RESOLUTION_REFUSED', ledgers.resolve(other));
    assert.equal((await ledgers.resolution(claim.occurrence))?.finding, 'happened');
  });

  test('nothing is resolved that has a verdict, was never sent, or belongs to another attempt', async () => {
    await using bench = await openBench(kit);
    const { context, ledgers } = bench;
    const { record: unsent } = await claimFixture(ledgers, context, 'unsent');
    await failsWith(
      'ERR_EM_RESOLUTION_REFUSED',
      ledgers.resolve(fixtureResolution(context, unsent)),
    );
    await ledgers.voidPermit(unsent.occurrence, unsent.execution);
    await failsWith(
      'ERR_EM_RESOLUTION_REFUSED',
      ledgers.resolve(fixtureResolution(context, unsent)),
    );
    for (const kind of ['committed', 'diverged', 'rejected'] as const) {
      const { record: claim } = await claimFixture(ledgers, context, kind);
      await ledgers.consumePermit(fixturePermit(context, claim));
      await ledgers.record(fixtureTerminal(context, claim, kind), 'flushed');
      await failsWith(
        'ERR_EM_RESOLUTION_REFUSED',
        ledgers.resolve(fixtureResolution(context, claim)),
      );
    }
    const { record: claim } = await claimFixture(ledgers, context, 'held');
    await ledgers.consumePermit(fixturePermit(context, claim));
    for (const wrong of [{ execution: fixtureExecution('x') }, { lineage: fixtureDigest('x') }]) {
      await failsWith(
        'ERR_EM_RESOLUTION_REFUSED',
        ledgers.resolve(fixtureResolution(context, claim, wrong)),
      );
    }
    const stranger = fixtureResolution(fixtureContext('another deployment'), claim);
    await failsWith('ERR_EM_SEAL_INVALID', ledgers.resolve(stranger));
    assert.equal((await ledgers.verify()).kind, 'intact');
  });

  test('evidence that arrives after a decision still settles the verdict', async () => {
    await using bench = await openBench(kit);
    const { context, ledgers } = bench;
    const { record: claim } = await claimFixture(ledgers, context, 'late');
    await ledgers.consumePermit(fixturePermit(context, claim));
    await ledgers.record(fixtureTerminal(context, claim, 'indeterminate'), 'flushed');
    await ledgers.resolve(fixtureResolution(context, claim, { finding: 'did-not-happen' }));
    await ledgers.record(fixtureTerminal(context, claim, 'committed'), 'flushed');
    assert.equal((await ledgers.terminal(claim.occurrence))?.kind, 'committed');
    assert.equal((await ledgers.verify()).kind, 'intact');
  });
}
