import { type Deadline, deadlineIn } from '../contract/clock.ts';
import type { Standing } from '../contract/ledgers.ts';
import type { Claim } from '../contract/proof.ts';
import {
  digestRecord,
  digestText,
  digestValueOf,
  occurrenceId,
  renderingDigest,
} from '../crypto/digest.ts';
import { checkCells } from '../protocol/approve.ts';
import { bindingRecord, claimRecord } from '../protocol/binding.ts';
import { canonical } from '../protocol/canon.ts';
import type { StateReading } from '../protocol/effect.ts';
import type { Policy } from '../protocol/frame.ts';
import { licenseRecord, type Proposal, type SignedLicense } from '../protocol/license.ts';
import { findExceeded, findOverlong, findOversized, findUntimely } from '../protocol/limits.ts';
import { type Approved, approvedRecord } from '../protocol/manifest.ts';
import type { Digest, ExecutionId, OccurrenceId } from '../protocol/record.ts';
import { redactApproved } from '../protocol/redact.ts';
import { renderLicense } from '../protocol/render-license.ts';
import {
  type BrokenRequirement,
  brokenRequirements,
  describeBroken,
  stateReads,
  taskStateText,
} from '../protocol/state.ts';
import { withTried } from './action.ts';
import { type Attempt, storableText } from './attempt.ts';
import { asOpenBoundary } from './boundary.ts';
import { type Admitted, type Deployment, nowInstant, provingContext } from './deployment.ts';
import { proveService } from './prove.ts';
import { checkSignature, type SignedAttempt } from './signed.ts';

/** Why authority was not granted: a stable reason and a sentence that says what to do. */
export interface Refusal {
  readonly reason: string;
  readonly detail: string;
}

const refuse = (reason: string, detail: string): Refusal => ({ reason, detail });

/**
 * Names the attempt before anything is decided, so that a refusal is journaled under the right
 * occurrence.
 */
export function openAttempt(
  deployment: Deployment,
  admitted: Admitted,
  signed: SignedLicense,
  occurrence?: OccurrenceId,
): Attempt {
  const lineage = digestRecord(licenseRecord, signed.license);
  const { issuer, nonce } = signed.license;
  return {
    execution: `exe_${deployment.ids.hex(16)}` as ExecutionId,
    occurrence: occurrence ?? occurrenceId({ issuer, nonce, license: lineage, index: 0 }),
    license: signed.license,
    signed,
    lineage,
    admitted,
  };
}

/**
 * Everything that can be checked without the backend: who signed what, for which deployment, and
 * when.
 */
export function checkLicense(
  deployment: Deployment,
  attempt: Attempt,
  action: unknown,
): Refusal | undefined {
  const { signed } = attempt;
  return checkSignature(deployment, signed) ?? checkTerms(deployment, attempt, action);
}

/**
 * What a designated issuer signed. Keys are registered under exactly the names of the policy's
 * issuers.
 */
function checkTerms(
  deployment: Deployment,
  attempt: Attempt,
  action: unknown,
): Refusal | undefined {
  const { admitted, signed } = attempt;
  const { license, approved } = signed;
  const issuer = deployment.policy.issuers[license.issuer] as Policy['issuers'][string];
  if (!issuer.may.includes(license.adapter)) {
    return refuse(
      'issuer-not-designated',
      `"${license.issuer}" may not approve changes on "${license.adapter}"`,
    );
  }
  if (!issuer.sources.includes(license.source)) {
    return refuse(
      'source-not-allowed',
      `"${license.issuer}" may not approve from source "${license.source}"`,
    );
  }
  if ((license.source === 'contract') !== (license.operation !== undefined)) {
    return refuse(
      'operation-mismatch',
      'a license names an operation exactly where its source is "contract"',
    );
  }
  const { operation } = license;
  if (
    operation !== undefined &&
    deployment.operations.get(operation)?.adapter !== license.adapter
  ) {
    return refuse(
      'operation-unknown',
      `"${license.adapter}" has no operation named "${operation}" here`,
    );
  }
  if (license.source === 'rehearsed' && license.action === undefined) {
    return refuse(
      'action-unbound',
      'a rehearsed approval is for the action that was rehearsed, and names none',
    );
  }
  if (
    digestRecord(approvedRecord, approved) !== license.approved ||
    approved.adapter !== license.adapter
  ) {
    return refuse('approved-mismatch', 'the outcome handed over is not the one that was signed');
  }
  const unusable = findUnusable(approved);
  if (unusable !== undefined) return refuse('constraint-invalid', storableText(admitted, unusable));
  if (renderingDigest(approved.salt, renderLicense(license, approved)) !== license.rendering) {
    return refuse(
      'rendering-mismatch',
      'the approver signed another text than this license renders to',
    );
  }
  if (!isRegistered(admitted, approved)) {
    return refuse(
      'registration-mismatch',
      'the outcome was approved for other registered relations or columns',
    );
  }
  const oversized =
    admitted.adapter.capability === 'PROMOTABLE' ? undefined : findOversized(approved.effects);
  if (oversized !== undefined)
    return refuse('too-many-effects', `${oversized}; approve fewer at a time`);
  const { limits = {} } = issuer;
  const exceeded = findExceeded(limits, license, approved) ?? findOverlong(limits, license);
  return (
    exceeded ?? checkPresupposed(deployment, attempt, action) ?? checkTime(deployment, attempt)
  );
}

/**
 * Why the constraints of an outcome cannot be evaluated, if so. Asked once it is known who signed
 * them.
 */
function findUnusable({ effects }: Approved): string | undefined {
  try {
    checkCells(effects);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/**
 * Whether the outcome was approved for what is registered here. Parsed records usually list their
 * keys in canonical order, so that the engine writes the canonical text; where they do not, it is
 * made.
 */
export function isRegistered(
  { registrationText }: Pick<Admitted, 'registrationText'>,
  { registration }: Pick<Approved, 'registration'>,
): boolean {
  return (
    JSON.stringify(registration) === registrationText ||
    canonical(registration) === registrationText
  );
}

/**
 * Whether the license may be used at this moment. At the final gate it is the last question,
 * because others take time.
 */
export function checkTime(deployment: Deployment, attempt: Attempt): Refusal | undefined {
  const { license } = attempt.signed;
  const now = nowInstant(deployment);
  if (now < license.notBefore)
    return refuse('not-yet-valid', `the license is valid from ${license.notBefore}`);
  if (now >= license.expiresAt)
    return refuse('expired', `the license expired at ${license.expiresAt}; sign a new one`);
  const limits = deployment.policy.issuers[license.issuer]?.limits;
  return limits && findUntimely(limits, deployment.clock.now());
}

/** An outcome with the terms under which it is approved, signed or still to be signed. */
export interface Stated {
  readonly admitted: Admitted;
  readonly signed: { readonly license: Proposal['draft']; readonly approved: Approved };
}

/**
 * The deployment that an approval was made for, and the action where it names one. Both may have
 * changed since it was signed, so they are checked before the claim and again at the final gate.
 */
export function checkPresupposed(
  deployment: Deployment,
  { admitted, signed }: Stated,
  action: unknown,
): Refusal | undefined {
  const { license } = signed;
  const { adapter } = admitted;
  if (
    !isSameIdentity(adapter.identity, admitted.identity) ||
    admitted.identityDigest !== license.identity
  ) {
    const here = `here it is ${adapter.identity.kind}`;
    return refuse(
      'adapter-changed',
      `the license was signed for another database, another version of its server or another adapter code; ${here}`,
    );
  }
  if (deployment.policyDigest !== license.policy) {
    return refuse(
      'policy-changed',
      'the issuers or their limits changed since approval; prepare and sign again',
    );
  }
  if (admitted.frameDigest !== license.frame) {
    return refuse(
      'frame-changed',
      'registration, channels or runtime code changed since approval; prepare and sign again',
    );
  }
  if (
    license.action !== undefined &&
    actionDigest(admitted, action, signed.approved.salt) !== license.action
  ) {
    const tried = adapter.describeAction(action);
    const detail = withTried(admitted, 'the license is bound to another action', tried);
    return refuse('other-action', detail);
  }
  return undefined;
}

/** Whether a later plan was announced for the task since. */
export function checkPlan({ license }: Attempt, { announced }: Standing): Refusal | undefined {
  const { task, planRevision } = license;
  if (announced === undefined || announced <= planRevision) return undefined;
  return refuse(
    'plan-superseded',
    `plan revision ${announced} replaced ${planRevision} of task "${task}"`,
  );
}

function isSameIdentity(now: Admitted['identity'], then: Admitted['identity']): boolean {
  return now.kind === then.kind && now.backend === then.backend && now.code === then.code;
}

/** Salted with A's salt, so that it does not betray the values in the action. */
export function actionDigest(admitted: Admitted, action: unknown, salt: string): Digest {
  return digestValueOf('effectmatch/action/v1', {
    action: admitted.adapter.describeAction(action),
    salt,
  });
}

/** Declared state must read as it did at approval, and every precondition must hold. */
export function checkState(
  attempt: Pick<Stated, 'signed'>,
  readings: readonly StateReading[],
  revision: string | undefined,
): Refusal | undefined {
  const { approved, license } = attempt.signed;
  const broken = checkRequired(approved, readings);
  if (broken !== undefined) return broken;
  if (
    digestText('effectmatch/task-state/v1', taskStateText(approved, readings, revision)) !==
    license.taskState
  ) {
    return refuse(
      'stale-state',
      'the state this approval was based on has changed; prepare and sign again',
    );
  }
  return undefined;
}

/** Whether every precondition of an outcome holds. */
export function checkRequired(
  approved: Approved,
  readings: readonly StateReading[],
): Refusal | undefined {
  const broken = brokenRequirements(approved, readings)[0];
  if (broken === undefined) return undefined;
  return refuse(
    'precondition-broken',
    `${storableBroken(approved, broken)}; the approval is stale`,
  );
}

/**
 * What does not hold. Where values are not stored this names columns only: the sentence goes into
 * the journal.
 */
function storableBroken({ registration }: Approved, broken: BrokenRequirement): string {
  if (registration.values === 'plain') return describeBroken(broken);
  const { target, key, row } = broken.requirement;
  return `what was required of ${target} (${Object.keys(row ?? key).join(', ')}) no longer holds`;
}

export type Authority =
  /** `leased`: until when at least the lease lasts. */
  | {
      readonly kind: 'claimed';
      readonly claim: Claim;
      readonly attempt: Attempt;
      readonly leased: Deadline;
    }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

/**
 * ValidateAndClaim: stale state and expiry fail before the claim, then the occurrence is spent
 * durably. The only place that mints a {@link Claim}.
 */
export async function claimAuthority(
  deployment: Deployment,
  attempt: SignedAttempt,
  request: {
    readonly action: unknown;
    readonly revision?: string | undefined;
    /** The only occurrence that may be spent; the next unspent one where none is named. */
    readonly occurrence?: OccurrenceId | undefined;
  },
): Promise<Authority> {
  const { admitted, signed } = attempt;
  const { license, approved } = signed;
  const stale =
    checkTerms(deployment, attempt, request.action) ??
    (await admitted.adapter
      .read(stateReads(approved))
      .then((readings) => checkState(attempt, readings, request.revision), asOpenBoundary));
  if (stale !== undefined) return { kind: 'refused', refusal: stale };
  const proof = await proveService(provingContext(deployment, admitted.name), admitted.adapter);
  if (proof.kind === 'unproven')
    return { kind: 'refused', refusal: refuse('service-unproven', proof.why) };
  deployment.reached('path:validated');

  const { issuer, nonce } = license;
  const occurrences = Array.from({ length: license.occurrences }, (_, index) =>
    occurrenceId({ issuer, nonce, license: attempt.lineage, index }),
  );
  const binding = bindingRecord.parse({
    version: 1,
    issuer,
    nonce,
    license: attempt.lineage,
    occurrences,
  });
  const bindingDigest = digestRecord(bindingRecord, binding);
  const isDigested = approved.registration.values === 'digest';
  // Taken before the store is asked, which may keep it waiting, and after all that may take longer
  // than a lease.
  const leased = deadlineIn(deployment.clock, deployment.leaseMs);
  const result = await deployment.ledgers.claim({
    license,
    binding,
    ...(request.occurrence !== undefined && { only: request.occurrence }),
    leaseMs: deployment.leaseMs,
    approvedText: isDigested
      ? canonical(redactApproved(approved, deployment.digestValue))
      : approvedRecord.text(approved),
    claim: (occurrence) =>
      deployment.sealer.seal(claimRecord, {
        version: 1,
        occurrence,
        execution: attempt.execution,
        license: attempt.lineage,
        binding: bindingDigest,
        approved: license.approved,
        adapter: license.adapter,
        identity: license.identity,
        backend: admitted.adapter.identity.backend,
        frame: license.frame,
        task: license.task,
        taskState: license.taskState,
        continuations: license.continuations,
        claimedAt: nowInstant(deployment),
      }),
  });
  if (result.kind === 'refused') return { kind: 'refused', refusal: result };
  const sealed = result.claim;
  const claim = { sealed, digest: digestText(claimRecord.domain, sealed.text) } as Claim;
  deployment.reached('path:claimed');
  return {
    kind: 'claimed',
    claim,
    attempt: { ...attempt, occurrence: sealed.record.occurrence },
    leased,
  };
}
