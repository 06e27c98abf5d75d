import type { Claim } from '../contract/proof.ts';
import { parseSignedLicense } from '../crypto/signature.ts';
import type { SignedLicense } from '../protocol/license.ts';
import type { OccurrenceId } from '../protocol/record.ts';
import type { Terminal } from '../protocol/terminal.ts';
import { readAction } from './action.ts';
import { type Attempt, faultOf } from './attempt.ts';
import { claimAuthority, openAttempt, type Refusal } from './authority.ts';
import { type Boundary, certify, describeOutlets } from './boundary.ts';
import {
  type Admitted,
  type AdmittedRemote,
  adapterNamed,
  type Deployment,
  isPromotable,
  provingContext,
} from './deployment.ts';
import { finish, rejection } from './finish.ts';
import type { Established } from './gate.ts';
import { executePromotable } from './promotable.ts';
import { isProven } from './prove.ts';
import { executeRemote } from './remote.ts';
import { admitSigned } from './signed.ts';
import { endingOf, traced } from './telemetry.ts';

/** What an execution may bring besides license and action. */
export interface ExecuteOptions {
  /** The application's own revision of the task state, where the approval was bound to one. */
  readonly revision?: string;
}

/**
 * Algorithm 1: validate and claim, certify, then the path of the adapter's capability. Every return
 * has recorded a terminal, also where the backend or an adapter threw. A throw after the claim is a
 * ledger that could not record: it leaves the occurrence spent and dependents halted, and recovery
 * decides at once, never a retry here.
 */
export async function execute(
  deployment: Deployment,
  license: unknown,
  untrustedAction: unknown,
  options?: ExecuteOptions,
): Promise<Terminal> {
  return await executeSigned(deployment, parseSignedLicense(license), untrustedAction, options);
}

/**
 * The same for a license that was read. With `occurrence`, only that execution of the license is
 * claimed, and that another process has claimed it is answered without being recorded.
 */
export async function executeSigned(
  deployment: Deployment,
  signed: SignedLicense,
  untrustedAction: unknown,
  options?: ExecuteOptions & { readonly occurrence?: OccurrenceId },
): Promise<Terminal> {
  const { adapter } = signed.license;
  const activity = {
    kind: 'execute',
    ...(deployment.adapters.has(adapter) && { adapter }),
  } as const;
  return await traced(
    deployment,
    activity,
    (own) => executeLicense(own, signed, untrustedAction, options),
    endingOf,
  );
}

async function executeLicense(
  deployment: Deployment,
  signed: SignedLicense,
  untrustedAction: unknown,
  options: ExecuteOptions & { readonly occurrence?: OccurrenceId } = {},
): Promise<Terminal> {
  const admitted = adapterNamed(deployment, signed.license.adapter);
  const { revision, occurrence } = options;
  const opened = openAttempt(deployment, admitted, signed, occurrence);
  // First of all: to read an action takes time, and anybody can present something.
  const presented = admitSigned(deployment, opened);
  if (presented.kind === 'refused')
    return finishUnclaimed(deployment, opened, 'authority', presented.refusal);
  const parsed = readAction(admitted, untrustedAction);
  if (parsed.kind === 'refused')
    return finishUnclaimed(deployment, opened, 'action', parsed.refusal);
  const { action } = parsed;

  const authority = await claimAuthority(deployment, presented.attempt, {
    action,
    revision,
    occurrence,
  });
  if (
    authority.kind === 'refused' &&
    occurrence !== undefined &&
    authority.refusal.reason === 'spent'
  )
    return rejection(deployment, opened, 'authority', authority.refusal);
  if (authority.kind === 'refused')
    return finishUnclaimed(deployment, opened, 'authority', authority.refusal);
  const { attempt, claim, leased } = authority;
  let open = true;
  try {
    using _lease = deployment.leases.keep(attempt, leased);
    const terminal = await executeClaimed(deployment, { attempt, claim, action, revision });
    open = terminal.kind === 'indeterminate';
    return terminal;
  } finally {
    // What was thrown, or the verdict, says more than a lease that only runs out later.
    if (open)
      await deployment.ledgers.abandon(attempt.occurrence, attempt.execution).catch(() => {});
  }
}

/** A refusal that spends nothing. Of many the first are kept, and all are answered. */
async function finishUnclaimed(
  deployment: Deployment,
  attempt: Attempt,
  at: 'action' | 'authority',
  refusal: Refusal,
): Promise<Terminal> {
  const isKept = await deployment.refusals.keeps(attempt.occurrence, refusal.reason);
  if (isKept) return finish(deployment, rejection(deployment, attempt, at, refusal));
  const detail = `${refusal.detail.slice(0, 3900)} (not recorded: too many refusals like it were)`;
  return rejection(deployment, attempt, at, { ...refusal, detail });
}

async function executeClaimed(
  deployment: Deployment,
  claimed: Omit<Established, 'certificate' | 'survey'>,
): Promise<Terminal> {
  const { attempt, claim } = claimed;
  const { admitted } = attempt;
  const boundary = await closeBoundary(deployment, admitted, claim).catch((error: unknown) => ({
    kind: 'refused' as const,
    refusal: faultOf(admitted, error),
  }));
  if (boundary.kind === 'refused') {
    // Nothing was staged or sent yet, so that nothing can have become durable.
    return finish(
      deployment,
      rejection(deployment, attempt, 'boundary', boundary.refusal, { claim: claim.digest }),
    );
  }
  deployment.reached('path:certified');

  const { certificate, survey } = boundary;
  const established = { ...claimed, certificate, survey };
  return isPromotable(admitted)
    ? await executePromotable(deployment, admitted, established)
    : await executeRemote(deployment, admitted as AdmittedRemote, established);
}

type Closed =
  | Extract<Boundary, { kind: 'certified' }>
  | { readonly kind: 'refused'; readonly refusal: Refusal };

/** Certifies, and asks whether a live service was tried with the credential that was certified. */
async function closeBoundary(
  deployment: Deployment,
  admitted: Admitted,
  claim: Claim,
): Promise<Closed> {
  const boundary = await certify(deployment, admitted, claim);
  if (boundary.kind === 'refused') {
    const detail = describeOutlets(boundary.outlets);
    return { kind: 'refused', refusal: { reason: 'outlet-unclassified', detail } };
  }
  if (await isProven(provingContext(deployment, admitted.name), admitted.adapter)) return boundary;
  const detail = 'the credential changed since the service was tried, and with this one it was not';
  return { kind: 'refused', refusal: { reason: 'service-unproven', detail } };
}
