import type { Survey } from '../contract/adapter.ts';
import { type Deadline, deadlineIn } from '../contract/clock.ts';
import type { ClaimRequest, Standing } from '../contract/ledgers.ts';
import type { Claim, Proof } from '../contract/proof.ts';
import {
  actionDigest,
  digestRecord,
  digestText,
  occurrenceId,
  occurrencesOf,
  renderingDigest,
} from '../crypto/digest.ts';
import { verifySecond } from '../crypto/signature.ts';
import { isFault } from '../errors.ts';
import { checkCells } from '../protocol/approve.ts';
import { bindingRecord, claimRecord } from '../protocol/binding.ts';
import { canonical } from '../protocol/canon.ts';
import type { StateReading } from '../protocol/effect.ts';
import type { Policy } from '../protocol/frame.ts';
import {
  type License,
  licenseRecord,
  type Proposal,
  type SecondSignature,
  type SignedLicense,
} from '../protocol/license.ts';
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
import {
  type Attempt,
  type Refusal,
  type Refused,
  refuse,
  storableText,
  withTried,
} from './attempt.ts';
import { asOpenBoundary } from './boundary.ts';
import type { CheckedLicense, CheckedLicenses } from './checked-licenses.ts';
import {
  type Admitted,
  type Deployment,
  isPromotable,
  isTriedLater,
  nowInstant,
  provingContext,
} from './deployment.ts';
import { proveService } from './prove.ts';
import { findRefusedSetting } from './settings.ts';

/**
 * Names the attempt before any check, so that a refusal is journaled under the right occurrence.
 */
export function openAttempt(
  deployment: Deployment,
  admitted: Admitted,
  signed: SignedLicense,
  chosen?: OccurrenceId,
): Attempt {
  const { license } = signed;
  const lineage = digestRecord(licenseRecord, license);
  const { issuer, nonce } = license;
  const occurrence = chosen ?? occurrenceId({ issuer, nonce, license: lineage, index: 0 });
  const execution = `exe_${deployment.ids.hex(16)}` as ExecutionId;
  const reads = stateReads(signed.approved);
  return { execution, occurrence, license, signed, lineage, admitted, reads };
}

/**
 * An attempt under a license that a designated issuer signed, and what else was checked about that
 * license. Minted by {@link admitSigned}.
 */
export type SignedAttempt = Proof<'signed', Attempt & { readonly checked: CheckedLicense }>;

/** Checks that a designated issuer signed the license. Nothing else is done with it before. */
export function admitSigned(
  deployment: Deployment,
  attempt: Attempt,
): { readonly kind: 'signed'; readonly attempt: SignedAttempt } | Refused {
  const { lineage, signed } = attempt;
  const { issuer } = signed.license;
  const keys = deployment.issuerKeys.get(issuer);
  if (keys === undefined)
    return refuse('issuer-unknown', `"${issuer}" is not a designated issuer of this deployment`);
  const known = deployment.licenses.find(lineage, signed);
  if (known === undefined && !deployment.verifyLicense(keys, signed)) {
    const detail = `the signature is not by a registered key of "${issuer}"`;
    return refuse('signature-invalid', detail);
  }
  const refused = checkSecond(deployment, signed, known !== undefined);
  if (refused !== undefined) return refused;
  const checked = known ?? deployment.licenses.add(lineage, signed);
  return { kind: 'signed', attempt: { ...attempt, checked } as SignedAttempt };
}

/**
 * Checks that a second person signed if the issuer or the operation requires it. A second signature
 * that is not required is checked too.
 */
function checkSecond(
  { policy, operations, issuerKeys }: Deployment,
  { license, second }: SignedLicense,
  isVerified: boolean,
): Refused | undefined {
  const { issuer, operation } = license;
  const byOperation = operation === undefined ? undefined : operations.get(operation)?.second;
  const required = [policy.issuers[issuer]?.second ?? [], byOperation ?? []];
  if (second === undefined) {
    const [names] = required.filter(({ length }) => length > 0);
    if (names === undefined) return undefined;
    const detail = `"${issuer}" signed; it also needs the signature of ${names.join(' or ')}`;
    return refuse('second-missing', detail);
  }
  const isOther = second.issuer !== issuer && second.key !== license.key;
  const isNamed = required.every((names) => names.length === 0 || names.includes(second.issuer));
  if (!isOther || !isNamed) {
    const detail = `"${second.issuer}" may not be the second person to sign this`;
    return refuse('second-not-designated', detail);
  }
  const keys = issuerKeys.get(second.issuer) ?? [];
  if (isVerified || verifySecond(keys, license, second)) return undefined;
  const detail = `the second signature is not by a registered key of "${second.issuer}"`;
  return refuse('second-invalid', detail);
}

/** What {@link claimAuthority} needs besides the attempt. */
interface AuthorityRequest {
  readonly action: unknown;
  readonly revision?: string | undefined;
  /** The only occurrence that may be spent; by default the next unspent one. */
  readonly occurrence?: OccurrenceId | undefined;
}

export type Authority =
  /** The lease lasts at least until `leased`. */
  | {
      readonly kind: 'claimed';
      readonly claim: Claim;
      readonly attempt: Attempt;
      readonly leased: Deadline;
      /** The survey that was started before the claim was recorded, if any. */
      readonly surveying: Promise<Survey> | undefined;
    }
  | Refused;

/**
 * ValidateAndClaim: checks the terms, expiry and state, then spends the occurrence durably. Only
 * this function mints a {@link Claim}.
 */
export async function claimAuthority(
  deployment: Deployment,
  attempt: SignedAttempt,
  request: AuthorityRequest,
): Promise<Authority> {
  const unfit = checkTerms(deployment, attempt, request.action);
  if (unfit !== undefined) return unfit;
  const surveying = surveyAhead(attempt.admitted);
  const isLive = isTriedLater(attempt.admitted.adapter);
  const invalid =
    (await checkLiveState(attempt, request.revision)) ??
    (isLive ? await checkService(deployment, attempt) : undefined);
  if (invalid !== undefined) return invalid;
  deployment.reached('path:validated');

  // Computed before the store is asked, which may take time, but after checks that may take longer
  // than a lease.
  const leased = deadlineIn(deployment.clock, deployment.leaseMs);
  const result = await deployment.ledgers.claim(
    claimRequest(deployment, attempt, request.occurrence),
  );
  if (result.kind === 'refused') return result;
  const sealed = result.claim;
  const { occurrence } = sealed.record;
  const claim = { sealed, digest: digestText(claimRecord.domain, sealed.text) } as Claim;
  deployment.reached('path:claimed');
  return { kind: 'claimed', claim, attempt: { ...attempt, occurrence }, leased, surveying };
}

/**
 * Starts the survey for the certificate, so that the backend answers while the ledger flushes the
 * claim. The final gate surveys again and notices any later change. A service is not asked, because
 * the license may already be spent.
 */
function surveyAhead(admitted: Admitted): Promise<Survey> | undefined {
  if (!isPromotable(admitted)) return undefined;
  const surveying = Promise.try(() => admitted.adapter.survey());
  // A failure matters only if the claim succeeds; it is reported then.
  surveying.catch(() => {});
  return surveying;
}

async function checkLiveState(
  attempt: Attempt,
  revision: string | undefined,
): Promise<Refused | undefined> {
  const reading = attempt.admitted.adapter.read(attempt.reads);
  return await reading.then((rows) => checkState(attempt, rows, revision), asOpenBoundary);
}

async function checkService(
  deployment: Deployment,
  { admitted }: Attempt,
): Promise<Refused | undefined> {
  const proof = await proveService(provingContext(deployment, admitted.name), admitted.adapter);
  return proof.kind === 'unproven' ? refuse('service-unproven', proof.why) : undefined;
}

/** The binding, the stored form of A, and how to make the claim for a chosen occurrence. */
function claimRequest(
  deployment: Deployment,
  attempt: SignedAttempt,
  only: OccurrenceId | undefined,
): ClaimRequest {
  const { admitted, signed, lineage, execution } = attempt;
  const { license, approved } = signed;
  const { issuer, nonce } = license;
  const occurrences = occurrencesOf(license, lineage);
  const binding = bindingRecord.parse({ version: 1, issuer, nonce, license: lineage, occurrences });
  const bindingDigest = digestRecord(bindingRecord, binding);
  const isDigested = approved.registration.values === 'digest';
  return {
    license,
    binding,
    ...(only !== undefined && { only }),
    leaseMs: deployment.leaseMs,
    log: isPromotable(admitted) ? admitted.adapter.commitLog?.() : undefined,
    approvedText: isDigested
      ? canonical(redactApproved(approved, deployment.digestValue))
      : approvedRecord.text(approved),
    claim: (occurrence) =>
      deployment.sealer.seal(claimRecord, {
        version: 1,
        occurrence,
        execution,
        license: lineage,
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
  };
}

/**
 * Checks everything that does not need the backend: who signed what, for which deployment, and
 * when.
 */
export function checkLicense(
  deployment: Deployment,
  attempt: Attempt,
  action: unknown,
): Refused | undefined {
  const presented = admitSigned(deployment, attempt);
  if (presented.kind === 'refused') return presented;
  return checkTerms(deployment, presented.attempt, action);
}

/**
 * Checks the terms of a license that a designated issuer signed. Keys are registered for exactly
 * the policy's issuers, so the policy has an entry.
 */
function checkTerms(
  deployment: Deployment,
  attempt: SignedAttempt,
  action: unknown,
): Refused | undefined {
  const { license, second } = attempt.signed;
  const { issuers } = deployment.policy;
  const issuer = issuers[license.issuer] as Policy['issuers'][string];
  return (
    checkDesignation(deployment, attempt, issuer) ??
    checkOutcome(deployment, attempt) ??
    checkExtent(attempt, issuer) ??
    (second && checkSecondTerms(attempt, second, issuers[second.issuer] as typeof issuer)) ??
    checkPresupposed(deployment, attempt, action) ??
    checkTime(deployment, attempt)
  );
}

type Designated = Pick<License, 'issuer' | 'adapter' | 'source' | 'operation' | 'action'>;

/**
 * The issuers who may sign a proposal: they are designated for it, and it is within their limits.
 */
export function issuersFor(
  deployment: Deployment,
  asked: Proposal | { readonly operation: string },
): readonly string[] {
  const issuers = Object.entries(deployment.policy.issuers);
  const able = issuers.filter(([issuer, terms]) => {
    const about = 'draft' in asked ? asked.draft : contractOf(deployment, asked.operation);
    const license = { ...about, issuer };
    const isDesignated = checkDesignation(deployment, { license }, terms) === undefined;
    if (!isDesignated || !('draft' in asked)) return isDesignated;
    return findExceeded(terms.limits ?? {}, asked.draft, asked.approved) === undefined;
  });
  return able.map(([issuer]) => issuer);
}

function contractOf({ operations }: Deployment, operation: string) {
  const adapter = operations.get(operation)?.adapter ?? '';
  return { adapter, source: 'contract', operation } as const;
}

/** The second person also needs the right to approve: adapter, source and limits. */
function checkSecondTerms(
  attempt: Attempt,
  second: SecondSignature,
  issuer: Policy['issuers'][string],
): Refused | undefined {
  const { adapter, source } = attempt.license;
  if (issuer.may.includes(adapter) && issuer.sources.includes(source))
    return checkExtent(attempt, issuer);
  const detail = `"${second.issuer}" may not approve changes on "${adapter}" from source "${source}"`;
  return refuse('second-not-designated', detail);
}

/** Checks that the issuer may approve for this adapter, from this source, by this operation. */
function checkDesignation(
  deployment: Deployment,
  { license }: { readonly license: Designated },
  { may, sources }: Policy['issuers'][string],
): Refused | undefined {
  const { issuer, adapter, source, operation, action } = license;
  if (!may.includes(adapter))
    return refuse('issuer-not-designated', `"${issuer}" may not approve changes on "${adapter}"`);
  if (!sources.includes(source))
    return refuse('source-not-allowed', `"${issuer}" may not approve from source "${source}"`);
  if ((source === 'contract') !== (operation !== undefined)) {
    const detail = 'a license names an operation exactly where its source is "contract"';
    return refuse('operation-mismatch', detail);
  }
  if (operation !== undefined && deployment.operations.get(operation)?.adapter !== adapter)
    return refuse('operation-unknown', `"${adapter}" has no operation named "${operation}" here`);
  if (source === 'rehearsed' && action === undefined) {
    const detail = 'a rehearsed approval is for the action that was rehearsed, and names none';
    return refuse('action-unbound', detail);
  }
  return undefined;
}

/** Checks that the outcome is the one that was signed, rendered and registered. */
function checkOutcome(
  { licenses }: Deployment,
  { admitted, signed, checked }: SignedAttempt,
): Refused | undefined {
  const { license, approved } = signed;
  const isSigned = digestRecord(approvedRecord, approved) === license.approved;
  if (!isSigned || approved.adapter !== license.adapter)
    return refuse('approved-mismatch', 'the outcome handed over is not the one that was signed');
  const unsound = checked.isSound ? undefined : findUnsound(licenses, admitted, signed);
  if (unsound !== undefined) return unsound;
  checked.isSound = true;
  const { settings } = approved;
  const unsettable = settings && findRefusedSetting(admitted, settings);
  return unsettable === undefined ? undefined : refuse('setting-refused', unsettable);
}

/** What is wrong with a signed outcome, regardless of when it is used. */
function findUnsound(
  licenses: CheckedLicenses,
  admitted: Admitted,
  signed: SignedLicense,
): Refused | undefined {
  const misstated = licenses.isDrafted(signed.license)
    ? undefined
    : findMisstated(admitted, signed);
  if (misstated !== undefined) return misstated;
  if (!isRegistered(admitted, signed.approved)) {
    const detail = 'the outcome was approved for other registered relations or columns';
    return refuse('registration-mismatch', detail);
  }
  return undefined;
}

/** Checks an outcome's constraints and the text that the approver read. */
function findMisstated(
  admitted: Admitted,
  { license, approved }: SignedLicense,
): Refused | undefined {
  const unusable = findUnusable(approved);
  if (unusable !== undefined) return refuse('constraint-invalid', storableText(admitted, unusable));
  const rendering = renderingDigest(approved.salt, renderLicense(license, approved));
  if (rendering === license.rendering) return undefined;
  const detail = 'the approver signed another text than this license renders to';
  return refuse('rendering-mismatch', detail);
}

/** Checks that the outcome is small enough to be sent, and within the issuer's limits. */
function checkExtent(
  { admitted, signed }: Attempt,
  { limits }: Policy['issuers'][string],
): Refused | undefined {
  const { license, approved } = signed;
  const isHeld = admitted.adapter.capability === 'PROMOTABLE';
  const oversized = isHeld ? undefined : findOversized(approved.effects);
  if (oversized !== undefined)
    return refuse('too-many-effects', `${oversized}; approve fewer at a time`);
  if (limits === undefined) return undefined;
  return asRefused(findExceeded(limits, license, approved) ?? findOverlong(limits, license));
}

/**
 * Why the constraints of an outcome cannot be evaluated; undefined if they can. Called only after
 * the signature was checked.
 */
function findUnusable({ effects }: Approved): string | undefined {
  try {
    checkCells(effects);
    return undefined;
  } catch (error) {
    if (isFault(error, 'ERR_EM_MANIFEST_INVALID')) return error.message;
    throw error;
  }
}

/**
 * Whether the outcome was approved for the current registration. Parsed records usually list their
 * keys in canonical order, so `JSON.stringify` is tried first.
 */
export function isRegistered(
  { registrationText }: Pick<Admitted, 'registrationText'>,
  { registration }: Pick<Approved, 'registration'>,
): boolean {
  if (JSON.stringify(registration) === registrationText) return true;
  return canonical(registration) === registrationText;
}

/**
 * Checks that the license may be used now. The final gate checks this last, because the other
 * checks take time.
 */
export function checkTime(deployment: Deployment, attempt: Attempt): Refused | undefined {
  const { issuer, notBefore, expiresAt } = attempt.signed.license;
  const now = nowInstant(deployment);
  if (now < notBefore) return refuse('not-yet-valid', `the license is valid from ${notBefore}`);
  if (now >= expiresAt)
    return refuse('expired', `the license expired at ${expiresAt}; sign a new one`);
  const limits = deployment.policy.issuers[issuer]?.limits;
  return asRefused(limits && findUntimely(limits, deployment.clock.now()));
}

function asRefused(exceeded: Refusal | undefined): Refused | undefined {
  return exceeded && refuse(exceeded.reason, exceeded.detail);
}

/** An outcome and the terms of its approval, signed or not. */
export interface Stated {
  readonly admitted: Admitted;
  readonly signed: { readonly license: Proposal['draft']; readonly approved: Approved };
}

/**
 * Checks the deployment that an approval was made for, and the action if it names one. Both may
 * change after signing, so they are checked before the claim and again at the final gate. A task
 * has no action, and needs a license that is not bound to one.
 */
export function checkPresupposed(
  deployment: Deployment,
  { admitted, signed }: Stated,
  action: unknown,
): Refused | undefined {
  const { license, approved } = signed;
  const { identity } = admitted.adapter;
  const isSame = isSameIdentity(identity, admitted.identity);
  if (!isSame || admitted.identityDigest !== license.identity) {
    const detail = `the license was signed for another database, another version of its server or another adapter code; here it is ${identity.kind}`;
    return refuse('adapter-changed', detail);
  }
  if (deployment.policyDigest !== license.policy) {
    const detail = 'the issuers or their limits changed since approval; prepare and sign again';
    return refuse('policy-changed', detail);
  }
  if (admitted.frameDigest !== license.frame) {
    const detail =
      'registration, channels or runtime code changed since approval; prepare and sign again';
    return refuse('frame-changed', detail);
  }
  if (license.action === undefined) return undefined;
  if (action === undefined) return refuse('other-action', BOUND_TO_ONE);
  const tried = admitted.adapter.describeAction(action);
  if (actionDigest(tried, approved.salt) === license.action) return undefined;
  const detail = withTried(admitted, 'the license is bound to another action', tried);
  return refuse('other-action', detail);
}

const BOUND_TO_ONE =
  'the license is bound to one action, and the calls of a task are not known in advance; run that action with execute';

/** Refuses if a later plan was announced for the task. */
export function checkPlan({ license }: Attempt, { announced }: Standing): Refused | undefined {
  const { task, planRevision } = license;
  if (announced === undefined || announced <= planRevision) return undefined;
  const detail = `plan revision ${announced} replaced ${planRevision} of task "${task}"`;
  return refuse('plan-superseded', detail);
}

function isSameIdentity(now: Admitted['identity'], then: Admitted['identity']): boolean {
  return now.kind === then.kind && now.backend === then.backend && now.code === then.code;
}

/** Digest of the declared state and of the application's revision of it. */
export function taskStateDigest(
  approved: Approved,
  readings: readonly StateReading[],
  revision: string | undefined,
): Digest {
  return digestText('effectmatch/task-state/v1', taskStateText(approved, readings, revision));
}

/** Checks that the declared state is as it was at approval, and that every precondition holds. */
export function checkState(
  attempt: Pick<Stated, 'signed'>,
  readings: readonly StateReading[],
  revision: string | undefined,
): Refused | undefined {
  const { approved, license } = attempt.signed;
  const broken = checkRequired(approved, readings);
  if (broken !== undefined) return broken;
  if (taskStateDigest(approved, readings, revision) === license.taskState) return undefined;
  const detail = 'the state this approval was based on has changed; prepare and sign again';
  return refuse('stale-state', detail);
}

/** Checks that every precondition of an outcome holds. */
export function checkRequired(
  approved: Approved,
  readings: readonly StateReading[],
): Refused | undefined {
  const broken = brokenRequirements(approved, readings)[0];
  if (broken === undefined) return undefined;
  const what = storableBroken(approved, broken);
  return refuse('precondition-broken', `${what}; the approval is stale`);
}

/** Describes what does not hold, for the journal. Names only columns if values are not stored. */
function storableBroken({ registration }: Approved, broken: BrokenRequirement): string {
  if (registration.values === 'plain') return describeBroken(broken);
  const { target, key, row } = broken.requirement;
  return `what was required of ${target} (${Object.keys(row ?? key).join(', ')}) no longer holds`;
}
