import type { Survey } from '../contract/adapter.ts';
import { parseSignedLicense } from '../crypto/signature.ts';
import type { SignedLicense } from '../protocol/license.ts';
import { describeDecided } from '../protocol/marker.ts';
import type { OccurrenceId } from '../protocol/record.ts';
import type { Terminal } from '../protocol/terminal.ts';
import {
  type Attempt,
  faultOf,
  type Refusal,
  type Refused,
  readAction,
  refuse,
} from './attempt.ts';
import { admitSigned, claimAuthority, openAttempt } from './authority.ts';
import { type Certification, certify } from './boundary.ts';
import {
  type Admitted,
  type AdmittedRemote,
  adapterNamed,
  type Deployment,
  isPromotable,
  isTriedLater,
  provingContext,
} from './deployment.ts';
import { finish, rejection } from './finish.ts';
import type { Established, TaskHost } from './gate.ts';
import { type Executed, executePromotable } from './promotable.ts';
import { isProven } from './prove.ts';
import { executeRemote } from './remote.ts';
import { Tries } from './restage.ts';
import { openMarker } from './settle.ts';
import { endingOf, traced } from './telemetry.ts';

/** Options of an execution. */
export interface ExecuteOptions {
  /** The application's revision of the task state, if the approval was bound to one. */
  readonly revision?: string;
}

/**
 * Algorithm 1: validate and claim, certify, then take the path of the adapter's capability. Every
 * return has recorded a terminal, even if the backend or an adapter threw; only refusals without a
 * claim that repeat too often are not recorded. If this throws after the claim, the ledger could
 * not record: the occurrence is spent and dependents are halted. Recovery can decide at once;
 * nothing is retried here. An async function would hold on to its arguments, and to the text of a
 * million effects with them.
 */
export function execute(
  deployment: Deployment,
  license: unknown,
  untrustedAction: unknown,
  options: ExecuteOptions = {},
): Promise<Executed> {
  const submitted = { kind: 'action', untrusted: untrustedAction } as const;
  return Promise.try(() =>
    executeSigned(deployment, parseSignedLicense(license), submitted, options),
  );
}

/** What runs under a license: an action, or the calls of a task as they arrive. */
export type Submitted =
  | { readonly kind: 'action'; readonly untrusted: unknown }
  | { readonly kind: 'task'; readonly host: TaskHost };

/** Options for executing one occurrence; by default the next unspent one. */
export interface OccurrenceOptions extends ExecuteOptions {
  readonly occurrence?: OccurrenceId;
}

/**
 * The same for a parsed license. If the named occurrence is already spent, returns the refusal
 * without recording it.
 */
export function executeSigned(
  deployment: Deployment,
  signed: SignedLicense,
  submitted: Submitted,
  options: OccurrenceOptions,
): Promise<Executed> {
  const { adapter } = signed.license;
  const activity = {
    kind: submitted.kind === 'task' ? 'task' : 'execute',
    ...(deployment.adapters.has(adapter) && { adapter }),
  } as const;
  const run = (reporting: Deployment) => executeLicense(reporting, signed, submitted, options);
  return traced(deployment, activity, run, endingOf);
}

async function executeLicense(
  deployment: Deployment,
  signed: SignedLicense,
  submitted: Submitted,
  { revision, occurrence }: OccurrenceOptions,
): Promise<Executed> {
  const admitted = adapterNamed(deployment, signed.license.adapter);
  const opened = openAttempt(deployment, admitted, signed, occurrence);

  // Check the signature first: parsing an action takes time, and anyone can present a license.
  const presented = admitSigned(deployment, opened);
  if (presented.kind === 'refused')
    return await finishUnclaimed(deployment, opened, 'authority', presented);

  const parsed = readSubmitted(admitted, submitted);
  if (parsed.kind === 'refused') return await finishUnclaimed(deployment, opened, 'action', parsed);
  const { action } = parsed;
  const host = submitted.kind === 'task' ? submitted.host : undefined;

  const request = { action, revision, occurrence };
  const authority = await claimAuthority(deployment, presented.attempt, request);
  if (authority.kind === 'refused') {
    const { reason } = authority;
    if (occurrence !== undefined && reason === 'spent')
      return rejection(deployment, opened, 'authority', authority);
    const isOther = reason === 'other-action';
    const earlier = isOther ? undefined : await findCommitted(deployment, opened);
    return await finishUnclaimed(deployment, opened, 'authority', earlier ?? authority);
  }

  const { attempt, claim, leased, surveying } = authority;
  let isOpen = true;
  try {
    using _lease = deployment.leases.keep(attempt, leased);
    const terminal = await executeClaimed(
      deployment,
      { attempt, claim, action, revision, host },
      surveying,
    );
    isOpen = terminal.kind === 'indeterminate';
    return terminal;
  } finally {
    // If this fails, the lease expires later. The error or the verdict is more useful to the
    // caller.
    if (isOpen)
      await deployment.ledgers.abandon(attempt.occurrence, attempt.execution).catch(() => {});
  }
}

/**
 * Parses the action with its adapter. A task has no action, and needs a backend that takes calls.
 */
function readSubmitted(
  admitted: Admitted,
  submitted: Submitted,
): { readonly kind: 'read'; readonly action: unknown } | Refused {
  if (submitted.kind === 'action') return readAction(admitted, submitted.untrusted);
  if (isPromotable(admitted) && admitted.adapter.hold !== undefined)
    return { kind: 'read', action: undefined };
  const detail = `"${admitted.name}" cannot hold a candidate for many calls; use execute`;
  return refuse('task-unsupported', detail);
}

/**
 * Finds a commit of this license that is in the backend but not in this ledger: another machine
 * made it, or the ledger was restored. Refusing with "expired" instead would lead to a second
 * signature.
 */
async function findCommitted(
  deployment: Deployment,
  { admitted, occurrence, license }: Attempt,
): Promise<Refusal | undefined> {
  if (!isPromotable(admitted) || license.occurrences > 1) return undefined;
  if ((await deployment.ledgers.holder(occurrence)) !== undefined) return undefined;
  const stored = await admitted.adapter.markers.find(occurrence).catch(() => undefined);
  const found = stored && openMarker(deployment, stored);
  if (found?.kind !== 'valid' || found.record.disposition !== 'committed') return undefined;
  return describeDecided('committed');
}

/**
 * A refusal that spends nothing. Only the first of many similar ones are recorded; each is
 * returned.
 */
async function finishUnclaimed(
  deployment: Deployment,
  attempt: Attempt,
  at: 'action' | 'authority',
  refusal: Refusal,
): Promise<Terminal> {
  const isKept = await deployment.refusals.keeps(attempt.occurrence, refusal.reason);
  if (isKept) return await finish(deployment, rejection(deployment, attempt, at, refusal));
  const detail = `${refusal.detail.slice(0, 3900)} (not recorded: too many refusals like it were)`;
  return rejection(deployment, attempt, at, { ...refusal, detail });
}

async function executeClaimed(
  deployment: Deployment,
  claimed: Omit<Established, 'certificate' | 'survey'>,
  firstSurvey: Promise<Survey> | undefined,
): Promise<Executed> {
  const { admitted } = claimed.attempt;
  const tries = new Tries(deployment);
  for (;;) {
    const surveying = tries.failed.length === 0 ? firstSurvey : undefined;
    const boundary = await closeBoundary(deployment, claimed, surveying).catch((error: unknown) =>
      faultOf(admitted, error),
    );
    if (boundary.kind === 'refused') {
      // Nothing was staged or sent, so nothing can have become durable.
      const { attempt, claim } = claimed;
      const known = { claim: claim.digest, residue: tries.residue([]), tries: tries.failed };
      return await finish(deployment, rejection(deployment, attempt, 'boundary', boundary, known));
    }
    deployment.reached('path:certified');

    const { certificate, survey } = boundary;
    const established = { ...claimed, certificate, survey };
    if (!isPromotable(admitted))
      return await executeRemote(deployment, admitted as AdmittedRemote, established);
    const executed = await executePromotable(deployment, admitted, established, tries);
    if (executed.kind !== 'prevented') return executed;
  }
}

/**
 * Certifies the boundary, and checks that a live service was tried with the certified credential.
 */
async function closeBoundary(
  deployment: Deployment,
  claimed: Omit<Established, 'certificate' | 'survey'>,
  surveying: Promise<Survey> | undefined,
): Promise<Certification> {
  const { claim, attempt, action } = claimed;
  const { admitted, reads } = attempt;
  const boundary = await certify(deployment, admitted, claim, { action, reads }, surveying);
  if (boundary.kind === 'refused' || !isTriedLater(admitted.adapter)) return boundary;
  if (await isProven(provingContext(deployment, admitted.name), admitted.adapter)) return boundary;
  const detail = 'the credential changed since the service was tried, and with this one it was not';
  return refuse('service-unproven', detail);
}
