import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CandidateFacts, PromotableAdapter } from '../../contract/adapter.ts';
import type { ConsumedPermit } from '../../contract/proof.ts';
import type { PermitRecord } from '../../protocol/permit.ts';
import { isName } from '../../protocol/record.ts';
import { mintProofs, type Proofs } from '../proofs.ts';
import { type AdapterKit, openBench } from './kit.ts';

interface Attempted {
  readonly adapter: PromotableAdapter;
  readonly proofs: Proofs;
  /** What the stage observed. */
  readonly facts: CandidateFacts;
}

/** Permits that a stage must refuse. Each differs from the right one in one thing. */
const FOREIGN: Readonly<Record<string, (attempted: Attempted) => ConsumedPermit>> = {
  'another occurrence': ({ adapter, facts }) => mintProofs(adapter, 'another').permit(facts),
  'another execution of the occurrence': ({ adapter, facts }) =>
    mintProofs(adapter, 'permit', 'another execution').permit(facts),
  'another candidate': ({ proofs, facts }) =>
    proofs.permit({ ...facts, candidate: `${facts.candidate.slice(1)}x` }),
  'other evidence': ({ proofs, facts }) =>
    proofs.permit({ ...facts, evidence: `${facts.evidence.slice(1)}x` }),
  'no evidence': ({ proofs, facts }) => proofs.permit({ ...facts, evidence: '' }),
  'another claim': ({ proofs, facts }) => withRecord(proofs.permit(facts), { claim: ZERO }),
  'another certificate': ({ proofs, facts }) =>
    withRecord(proofs.permit(facts), { certificate: ZERO }),
  'a request': ({ proofs, facts }) =>
    withRecord(proofs.permit(facts), { bound: { request: ZERO } }),
  'another marker': ({ adapter, proofs, facts }) =>
    ({
      ...proofs.permit(facts),
      marker: mintProofs(adapter, 'another').permit(facts).marker,
    }) as ConsumedPermit,
  'a void marker': ({ proofs, facts }) =>
    ({ ...proofs.permit(facts), marker: proofs.voidMarker() }) as ConsumedPermit,
};

/**
 * A permit is for one candidate with one content. The adapter itself refuses any other, whatever
 * the core did.
 */
export function permitTests(kit: AdapterKit): void {
  for (const [what, mint] of Object.entries(FOREIGN)) {
    test(`a permit for ${what} is refused, leaves nothing and ends the stage`, async () => {
      await using bench = await openBench(kit);
      const { adapter } = bench;
      const { stage, proofs } = await bench.hold('permit');
      const facts = await stage.observe();
      const foreign = mint({ adapter, proofs, facts });
      const promotion = await stage.promote(foreign);
      assert.ok(promotion.kind === 'refused', `expected a refusal and got ${promotion.kind}`);
      assert.ok(isName(promotion.reason), promotion.reason);
      const second = await stage.promote(proofs.permit(facts)).catch(() => undefined);
      assert.notEqual(second?.kind, 'confirmed', 'what was refused cannot be promoted later');
      await bench.assertUntouched();
      const other = await bench.again();
      for (const { occurrence } of [proofs, foreign.record]) {
        assert.equal(await other.markers.find(occurrence), undefined);
      }
      await bench.hold('next', undefined, other);
    });
  }

  test('a permit for a candidate that was never observed is refused and leaves nothing', async () => {
    await using bench = await openBench(kit);
    const first = await bench.hold('first');
    const { evidence } = await first.stage.observe();
    await first.stage.discard();
    const { stage, proofs } = await bench.hold('unobserved');
    const promotion = await stage.promote(proofs.permit({ candidate: stage.candidate, evidence }));
    assert.equal(promotion.kind, 'refused');
    await bench.assertUntouched();
  });

  test('a permit for evidence that a recheck no longer found is refused and leaves nothing', async (context) => {
    await using bench = await openBench(kit);
    const { writeInto } = bench.specimen;
    if (writeInto === undefined)
      return context.skip('the kit has no way to write into a held candidate');
    const { stage, proofs } = await bench.hold('written');
    const facts = await stage.observe();
    await writeInto(stage);
    await stage.recheck();
    assert.equal((await stage.promote(proofs.permit(facts))).kind, 'refused');
    await bench.assertUntouched();
  });
}

const ZERO = '0'.repeat(64) as PermitRecord['claim'];

function withRecord(permit: ConsumedPermit, change: Partial<PermitRecord>): ConsumedPermit {
  return { ...permit, record: { ...permit.record, ...change } };
}
