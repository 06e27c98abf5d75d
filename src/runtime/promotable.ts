import type { Stage } from '../contract/adapter.ts';
import type { ConsumedPermit } from '../contract/proof.ts';
import { prepareApproved } from '../protocol/match.ts';
import { establish } from '../protocol/observation.ts';
import type { Outcome } from '../protocol/outcome.ts';
import type { Digest } from '../protocol/record.ts';
import { stateReads } from '../protocol/state.ts';
import type { Gate, Terminal } from '../protocol/terminal.ts';
import { faultOf, observedDigest, storableFault } from './attempt.ts';
import type { Refusal } from './authority.ts';
import type { AdmittedPromotable, Deployment } from './deployment.ts';
import { commitment, finish, rejection, type Seen, uncertainty } from './finish.ts';
import { bindStagePermit, type Established, passStageGate } from './gate.ts';
import { type Settlement, settle } from './settle.ts';

/**
 * How far an attempt has come: what it holds, what was seen of it, and which gate it stands before.
 */
interface Trial {
  at: Gate;
  stage?: Stage;
  seen: Seen;
}

type Inspected =
  | {
      readonly kind: 'passed';
      readonly stage: Stage;
      readonly permit: ConsumedPermit;
      readonly observed: Digest;
    }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  | { readonly kind: 'faulted'; readonly refusal: Refusal };

/**
 * Algorithm 1, promotable part: inspect the candidate before durability, then promote exactly it. A
 * fault before the promotion is a rejection like any other, once nothing of the candidate remains
 * or its marker is void.
 */
export async function executePromotable(
  deployment: Deployment,
  admitted: AdmittedPromotable,
  established: Established,
): Promise<Terminal> {
  const trial: Trial = { at: 'stage', seen: {} };
  const endings = endingsOf(deployment, admitted, established, trial);
  try {
    const found = await inspect(deployment, admitted, established, trial).catch(
      (error: unknown): Inspected => ({ kind: 'faulted', refusal: faultOf(admitted, error) }),
    );
    if (found.kind !== 'passed') return await endings.refuse(found);
    const { stage, permit, observed } = found;

    // From here on the candidate may be durable, so `rejected` needs proof that nothing became so.
    const promotion = await stage
      .promote(permit)
      .catch((cause: unknown) => ({ kind: 'unknown' as const, cause }));
    deployment.reached('path:promoted');
    if (promotion.kind === 'confirmed') return await endings.commit(permit, observed, false);
    const discarded = await isDiscarded(stage);
    if (promotion.kind === 'refused' && discarded)
      return await endings.reject('promotion', promotion);
    const cause =
      promotion.kind === 'refused' ? promotion.detail : storableFault(admitted, promotion.cause);
    return await endings.resolveUnknown(permit, observed, cause);
  } finally {
    await dispose(trial.stage);
  }
}

/**
 * Whether nothing of a candidate remains. A discard that throws has not shown it; it may be asked
 * again.
 */
async function isDiscarded(stage: Stage): Promise<boolean> {
  const discard = () =>
    stage.discard().then(
      () => true,
      () => false,
    );
  return (await discard()) || (await discard());
}

/** Only the net: where it counts that nothing remains, the stage was discarded before. */
async function dispose(stage: Stage | undefined): Promise<void> {
  try {
    await stage?.[Symbol.asyncDispose]();
  } catch {
    // What is recorded about the attempt is true all the same.
  }
}

/** How an attempt can end, each recorded. */
function endingsOf(
  deployment: Deployment,
  admitted: AdmittedPromotable,
  established: Established,
  trial: Trial,
) {
  const { attempt, claim, certificate } = established;
  const known = { claim: claim.digest, certificate: certificate.digest };
  return { refuse, reject, commit, resolveUnknown };

  /**
   * Nothing was promoted. What is held ends before the rejection is recorded, so that it never
   * precedes the rollback.
   */
  async function refuse({
    kind,
    refusal,
  }: Exclude<Inspected, { kind: 'passed' }>): Promise<Terminal> {
    if (trial.stage === undefined && kind === 'refused') return reject(trial.at, refusal);
    if (trial.stage !== undefined && (await isDiscarded(trial.stage))) {
      deployment.reached('path:discarded');
      return reject(trial.at, refusal);
    }
    const settled = await settleOrWhy();
    if (settled.kind === 'void' || settled.kind === 'elsewhere') return reject(trial.at, refusal);
    const why = 'why' in settled ? settled.why : 'the backend says that it was committed';
    const gap = `it ended before anything was promoted (${refusal.detail}), and what it held could not be ended: ${why}`;
    return finish(deployment, uncertainty(deployment, attempt, known, gap));
  }

  function reject(at: Gate, refusal: Refusal): Promise<Terminal> {
    return finish(
      deployment,
      rejection(deployment, attempt, at, refusal, { ...known, ...trial.seen }),
    );
  }

  function commit(
    permit: ConsumedPermit,
    observed: Digest,
    reconciled: boolean,
  ): Promise<Terminal> {
    const { claimedAt } = claim.sealed.record;
    const { residue } = trial.seen;
    const facts = { ...consumed(permit), observed, claimedAt, reconciled, residue };
    return finish(deployment, commitment(deployment, attempt, facts), 'relaxed');
  }

  function consumed({ digest: permit, record: { consumedAt } }: ConsumedPermit) {
    return { ...known, permit, consumedAt };
  }

  /** A reply lost at COMMIT is resolved by inserting the void marker, never by reading. */
  async function resolveUnknown(
    permit: ConsumedPermit,
    observed: Digest,
    cause: string,
  ): Promise<Terminal> {
    const settled = await settleOrWhy();
    switch (settled.kind) {
      case 'committed':
        return commit(permit, observed, true);
      case 'void':
      case 'elsewhere':
        return reject('promotion', {
          reason: 'commit-failed',
          detail: `nothing became durable: ${cause}`,
        });
      default: {
        const gap = `the commit's result is unknown (${cause}) and could not be settled: ${settled.why}`;
        return finish(deployment, uncertainty(deployment, attempt, consumed(permit), gap));
      }
    }
  }

  function settleOrWhy(): Promise<
    Settlement | { readonly kind: 'unreachable'; readonly why: string }
  > {
    return settle(deployment, admitted, claim.sealed).catch((error: unknown) => ({
      kind: 'unreachable' as const,
      why: storableFault(admitted, error),
    }));
  }
}

/** Everything up to the final gate. Whatever it throws, nothing was promoted. */
async function inspect(
  deployment: Deployment,
  admitted: AdmittedPromotable,
  established: Established,
  trial: Trial,
): Promise<Inspected> {
  const { attempt, claim, certificate, action } = established;
  const { approved } = attempt.signed;
  const staged = await admitted.adapter.stage(claim, certificate, action, stateReads(approved));
  if (staged.kind === 'failed') {
    trial.seen = { residue: staged.residue };
    return { kind: 'refused', refusal: staged };
  }
  const { stage } = staged;
  trial.stage = stage;
  deployment.reached('path:staged');

  trial.at = 'comparison';
  const evidence = await stage.observe();
  const observation = establish(evidence, admitted.registration, admitted.frame.channels);
  const outcome = deployment.classify(prepareApproved(approved), observation, evidence);
  trial.seen = { outcome, residue: evidence.residue };
  deployment.reached('path:observed');
  if (outcome.kind !== 'EXACT') return { kind: 'refused', refusal: explain(outcome) };

  const observed = observedDigest(deployment, admitted, outcome.effects);
  const bound = { candidate: evidence.candidate, evidence: evidence.evidence, observed };
  const permit = bindStagePermit(established, bound);
  deployment.reached('path:permit-bound');
  trial.at = 'final-gate';
  const gate = await passStageGate(deployment, established, stage, permit);
  if (gate.kind === 'refused') return gate;
  deployment.reached('path:gate-passed');
  return { kind: 'passed', stage, permit: gate.permit, observed };
}

function explain(outcome: Exclude<Outcome, { kind: 'EXACT' }>): Refusal {
  return outcome.kind === 'DIVERGED'
    ? {
        reason: 'diverged',
        detail: 'the observed outcome is not the approved one; the candidate was discarded',
      }
    : {
        reason: 'incomplete',
        detail: `the outcome could not be established: ${outcome.gaps.join('; ')}`,
      };
}
