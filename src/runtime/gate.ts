import type { CandidateFacts, Stage, Survey, TaskStage } from '../contract/adapter.ts';
import type { Deadline } from '../contract/clock.ts';
import type { Certificate, Claim, ConsumedPermit, RequestPermit } from '../contract/proof.ts';
import { digestRecord } from '../crypto/digest.ts';
import { invariant } from '../errors.ts';
import type { StoredGenerated } from '../protocol/generated.ts';
import { markerRecord } from '../protocol/marker.ts';
import { type PermitRecord, permitRecord } from '../protocol/permit.ts';
import type { Digest } from '../protocol/record.ts';
import { type Attempt, type Refusal, type Refused, refuse } from './attempt.ts';
import { checkPlan, checkPresupposed, checkState, checkTime } from './authority.ts';
import { describeChange, isConfirmed } from './boundary.ts';
import { type Deployment, nowInstant } from './deployment.ts';
import { markerText } from './settle.ts';

type GateResult<Permit> = { readonly kind: 'passed'; readonly permit: Permit } | Refused;

type StageBound = Extract<PermitRecord['bound'], { candidate: string }>;

/** What was established before the gate, and must still be true. */
export interface Established {
  readonly attempt: Attempt;
  readonly claim: Claim;
  readonly certificate: Certificate;
  /** The survey that the certificate was made from. */
  readonly survey: Survey;
  /** The action to run; undefined for a task, whose calls are not known in advance. */
  readonly action: unknown;
  readonly revision: string | undefined;
  /** Runs the calls of a task on the candidate. */
  readonly host?: TaskHost | undefined;
}

/** Runs the calls of a task on its candidate. */
export interface TaskHost {
  readonly deadlineMs: number;
  /**
   * Called with the open candidate. Resolves when no call can follow: with undefined if the result
   * is to be compared, otherwise with why the candidate is discarded.
   */
  serve(stage: TaskStage, attempt: Attempt, survey: Survey): Promise<Refusal | undefined>;
}

/** The permit binds this candidate or request, this E, this certificate and this claim. */
function permitOf<Bound>(
  deployment: Deployment,
  { attempt, claim, certificate }: Established,
  bound: Bound,
) {
  const now = nowInstant(deployment);
  const { claimedAt } = claim.sealed.record;
  return {
    version: 1 as const,
    occurrence: attempt.occurrence,
    execution: attempt.execution,
    claim: claim.digest,
    certificate: certificate.digest,
    approved: attempt.signed.license.approved,
    bound,
    // t_g. The permit must not look older than the claim if the clock was set back.
    consumedAt: now < claimedAt ? claimedAt : now,
  };
}

/**
 * Final gate of a held candidate: same boundary, candidate, evidence and state, and the authority
 * is still valid.
 */
export async function passStageGate(
  deployment: Deployment,
  established: Established,
  stage: Stage,
  bound: StageBound,
  generated: StoredGenerated = {},
): Promise<GateResult<ConsumedPermit>> {
  const deadline = leaseDeadline(deployment, established.attempt);
  const stale =
    (await checkAuthority(deployment, established)) ??
    checkCandidate(bound, await stage.recheck()) ??
    checkState(
      established.attempt,
      await stage.read(established.attempt.reads),
      established.revision,
    ) ??
    checkTime(deployment, established.attempt);
  if (stale !== undefined) return stale;
  const record = permitOf(deployment, established, bound);
  const digest = digestRecord(permitRecord, record);
  const marker = deployment.sealer.seal(markerRecord, {
    version: 1,
    disposition: 'committed',
    occurrence: record.occurrence,
    execution: record.execution,
    approved: record.approved,
    observed: bound.observed,
    certificate: record.certificate,
    claim: record.claim,
    permit: digest,
    consumedAt: record.consumedAt,
    ...generated,
  });
  const { credentials } = established.certificate;
  const permit = { record, digest, marker: markerText(marker), credentials, deadline };
  return { kind: 'passed', permit: permit as ConsumedPermit };
}

/**
 * Final gate of a request: the same checks, then the permit row is consumed durably before anything
 * is sent.
 */
export async function passRequestGate(
  deployment: Deployment,
  established: Established,
  request: Digest,
): Promise<GateResult<RequestPermit>> {
  const { attempt, revision } = established;
  const deadline = leaseDeadline(deployment, attempt);
  const stale =
    (await checkAuthority(deployment, established)) ??
    checkState(attempt, await attempt.admitted.adapter.read(attempt.reads), revision) ??
    checkTime(deployment, attempt);
  if (stale !== undefined) return stale;
  const record = permitOf(deployment, established, { request });
  const fence = await deployment.ledgers.consumePermit(
    deployment.sealer.seal(permitRecord, record),
  );
  if (fence.kind !== 'consumed')
    return refuse(
      `permit-${fence.kind}`,
      'another worker decided this occurrence; nothing was sent',
    );
  const { credentials } = established.certificate;
  const permit = { record, digest: digestRecord(permitRecord, record), credentials, deadline };
  return { kind: 'passed', permit: permit as RequestPermit };
}

/**
 * Read when the gate starts, so that a process that slept gains no time by renewing the lease when
 * it wakes up.
 */
function leaseDeadline({ leases }: Deployment, attempt: Attempt): Deadline {
  const deadline = leases.deadline(attempt);
  invariant(deadline !== undefined, 'an attempt that comes to its final gate has a lease');
  return deadline;
}

/**
 * Checks that a new survey matches the certificate, that identity, policy and frame are unchanged,
 * that the plan is not superseded, and that the claim is still ours.
 */
async function checkAuthority(
  deployment: Deployment,
  established: Established,
): Promise<Refused | undefined> {
  const { attempt, certificate, survey, action } = established;
  const { reads } = attempt;
  const { adapter } = attempt.admitted;
  // Ask the backend and the ledger at the same time.
  const asking = deployment.ledgers.standing(attempt.license.task, attempt);
  asking.catch(() => {});
  const fresh = await adapter.survey();
  const surveys = { before: survey, now: fresh };
  if (!isConfirmed(attempt.admitted, certificate, { action, reads }, surveys))
    return refuse('boundary-changed', await describeChange(adapter, survey, fresh));
  const stale = checkPresupposed(deployment, attempt, action);
  if (stale !== undefined) return stale;
  const standing = await asking;
  if (standing.holds) return checkPlan(attempt, standing);
  return refuse('claim-lost', 'the ledger no longer names this execution as holder of the claim');
}

function checkCandidate(bound: StageBound, now: CandidateFacts): Refused | undefined {
  if (now.candidate !== bound.candidate)
    return refuse('candidate-replaced', 'the held candidate is not the one that was observed');
  if (now.evidence !== bound.evidence)
    return refuse('evidence-changed', 'something was written after the observation');
  return undefined;
}
