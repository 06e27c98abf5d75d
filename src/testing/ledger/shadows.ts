import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LedgerContext } from '../../contract/ledgers.ts';
import type { Sealed } from '../../contract/seal.ts';
import type { OccurrenceId } from '../../protocol/record.ts';
import { type Shadow, shadowRecord } from '../../protocol/shadow.ts';
import { failsWith } from '../fails-with.ts';
import { claimFixture, fixtureContext, fixtureDigest } from './fixtures.ts';
import { type LedgerKit, openBench } from './kit.ts';

function fixtureShadow({ sealer }: LedgerContext, occurrence: string): Sealed<Shadow> {
  return sealer.seal(shadowRecord, {
    version: 1,
    occurrence: occurrence as OccurrenceId,
    basis: 'license',
    license: fixtureDigest('license'),
    adapter: 'books',
    task: 'a task',
    approved: fixtureDigest('approved'),
    contract: fixtureDigest('contract'),
    observer: fixtureDigest('observer'),
    recordedAt: '2026-01-01T12:00:00.000Z',
    would: 'commit',
    observed: fixtureDigest('observed'),
  });
}

const DRAWN = `occ_${'5'.repeat(40)}`;

/** Shadows are journal rows and nothing else. */
export function shadowTests(kit: LedgerKit): void {
  test('a shadow is a row of the journal that no question about verdicts, claims or releases finds', async () => {
    await using bench = await openBench(kit);
    const { context, ledgers } = bench;
    const shadow = fixtureShadow(context, DRAWN);
    await ledgers.recordShadow(shadow);
    const occurrence = shadow.record.occurrence;
    const rows = await ledgers.journal({ occurrence });
    assert.deepEqual(rows, [{ seq: 1, kind: 'shadow', record: shadow.record }]);
    assert.equal(await ledgers.terminal(occurrence), undefined);
    assert.deepEqual(await ledgers.attempts(occurrence), []);
    assert.equal(await ledgers.holder(occurrence), undefined);
    assert.equal(await ledgers.permit(occurrence), undefined);
    assert.deepEqual(await ledgers.unsettled({ includeLeased: true }), []);
    assert.deepEqual(await ledgers.acknowledgements(occurrence), []);
    assert.deepEqual(await ledgers.search(DRAWN.slice(0, 12)), [DRAWN]);
    assert.equal((await ledgers.checkpoint())?.record.throughSeq, 1);
    assert.equal((await ledgers.verify()).kind, 'intact');
  });

  test('a shadow cannot stand where something was claimed, nor a second time', async () => {
    await using bench = await openBench(kit);
    const { context, ledgers } = bench;
    const { record: claim } = await claimFixture(ledgers, context, 'claimed');
    await failsWith(
      'ERR_EM_INVARIANT',
      ledgers.recordShadow(fixtureShadow(context, claim.occurrence)),
    );
    await ledgers.recordShadow(fixtureShadow(context, DRAWN));
    await failsWith('ERR_EM_INVARIANT', ledgers.recordShadow(fixtureShadow(context, DRAWN)));
    const kinds = (await ledgers.journal()).map(({ kind }) => kind);
    assert.deepEqual(kinds, ['claim', 'shadow']);
    assert.equal((await ledgers.verify()).kind, 'intact');
  });

  test('a shadow that another key sealed is refused', async () => {
    await using bench = await openBench(kit);
    const foreign = fixtureShadow(fixtureContext('another'), DRAWN);
    await failsWith('ERR_EM_SEAL_INVALID', bench.ledgers.recordShadow(foreign));
    assert.deepEqual(await bench.ledgers.journal(), []);
  });
}
