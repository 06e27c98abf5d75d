import type { Stage } from '../contract/adapter.ts';
import type { ConsumedPermit } from '../contract/proof.ts';
import { prepareApproved } from '../protocol/match.ts';
import { establish } from '../protocol/observation.ts';
import type { Outcome } from '../protocol/outcome.ts';
import { stateReads } from '../protocol/state.ts';
import type { Gate, Terminal } from '../protocol/terminal.ts';
import { observedDigest } from './attempt.ts';
import type { Refusal } from './authority.ts';
import type { AdmittedPromotable, Deployment } from './deployment.ts';
import { commitment, finish, rejection, type Seen, uncertainty } from './finish.ts';
import { bindStagePermit, type Established, passStageGate } from './gate.ts';
import { settle } from './settle.ts';

/** Algorithm 1, promotable part: inspect the candidate before durability, then promote exactly it. */
export async function executePromotable(
  deployment: Deployment,
  admitted: AdmittedPromotable,
  established: Established,
): Promise<Terminal> {
  const { adapter } = admitted;
  const { attempt, claim, certificate, action } = established;

  const staged = await adapter.stage(claim, certificate, action, stateReads(attempt.signed.approved));
  if (staged.kind === 'failed') return reject('stage', staged, { residue: staged.residue });
  await using stage = staged.stage;
  deployment.reached('path:staged');

  const evidence = await stage.observe();
  const observation = establish(evidence, admitted.registration, admitted.frame.channels);
  const outcome = deployment.classify(prepareApproved(attempt.signed.approved), observation, evidence);
  const seen = { outcome, residue: evidence.residue };
  deployment.reached('path:observed');
  if (outcome.kind !== 'EXACT') return discard(stage, 'comparison', explain(outcome));

  const observed = observedDigest(deployment, admitted, outcome.effects);
  const bound = { candidate: evidence.candidate, evidence: evidence.evidence, observed };
  const permit = bindStagePermit(established, bound);
  deployment.reached('path:permit-bound');
  const gate = await passStageGate(deployment, established, stage, permit);
  if (gate.kind === 'refused') return discard(stage, 'final-gate', gate.refusal);
  deployment.reached('path:gate-passed');

  // From here on the candidate may be durable, so `rejected` needs proof that nothing became so.
  const promotion = await stage.promote(gate.permit).catch((cause: unknown) => ({ kind: 'unknown' as const, cause }));
  deployment.reached('path:promoted');
  if (promotion.kind === 'confirmed') return finish(deployment, commit(gate.permit, false), 'relaxed');
  await stage.discard();
  if (promotion.kind === 'refused') return reject('promotion', promotion, seen);
  return resolveUnknown(gate.permit, String(promotion.cause));

  async function discard(held: Stage, at: Gate, refusal: Refusal): Promise<Terminal> {
    await held.discard(); // before the rejection is recorded, so that it never precedes the rollback
    deployment.reached('path:discarded');
    return reject(at, refusal, seen);
  }

  function reject(at: Gate, refusal: Refusal, seen: Seen): Promise<Terminal> {
    const known = { claim: claim.digest, certificate: certificate.digest, ...seen };
    return finish(deployment, rejection(deployment, attempt, at, refusal, known));
  }

  function consumed(permit: ConsumedPermit) {
    const { consumedAt } = permit.record;
    return { claim: claim.digest, certificate: certificate.digest, permit: permit.digest, consumedAt };
  }

  function commit(permit: ConsumedPermit, reconciled: boolean): Terminal {
    const { claimedAt } = claim.sealed.record;
    const { residue } = evidence;
    return commitment(deployment, attempt, { ...consumed(permit), observed, claimedAt, reconciled, residue });
  }

  /** A reply lost at COMMIT is resolved by inserting the void marker, never by reading. */
  async function resolveUnknown(permit: ConsumedPermit, cause: string): Promise<Terminal> {
    const settled = await settle(deployment, admitted, claim.sealed).catch((error: unknown) => ({
      kind: 'unreachable' as const,
      why: String(error),
    }));
    switch (settled.kind) {
      case 'committed':
        return finish(deployment, commit(permit, true), 'relaxed');
      case 'void':
      case 'elsewhere':
        return reject('promotion', { reason: 'commit-failed', detail: `nothing became durable: ${cause}` }, seen);
      default: {
        const gap = `the commit's result is unknown (${cause}) and could not be settled: ${settled.why}`;
        return finish(deployment, uncertainty(deployment, attempt, consumed(permit), gap));
      }
    }
  }
}

function explain(outcome: Exclude<Outcome, { kind: 'EXACT' }>): Refusal {
  return outcome.kind === 'DIVERGED'
    ? { reason: 'diverged', detail: 'the observed outcome is not the approved one; the candidate was discarded' }
    : { reason: 'incomplete', detail: `the outcome could not be established: ${outcome.gaps.join('; ')}` };
}
