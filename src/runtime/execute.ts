import { deadlineIn } from '../contract/clock.ts';
import { parseSignedLicense } from '../crypto/signature.ts';
import type { SignedLicense } from '../protocol/license.ts';
import type { Terminal } from '../protocol/terminal.ts';
import { claimAuthority, openAttempt } from './authority.ts';
import { certify, describeOutlets } from './boundary.ts';
import { type AdmittedRemote, adapterNamed, type Deployment, isPromotable, provingContext } from './deployment.ts';
import { finish, rejection } from './finish.ts';
import { executePromotable } from './promotable.ts';
import { isProven } from './prove.ts';
import { executeRemote } from './remote.ts';
import { endingOf, traced } from './telemetry.ts';

/** What an execution may bring besides license and action. */
export interface ExecuteOptions {
  /** The application's own revision of the task state, where the approval was bound to one. */
  readonly revision?: string;
}

/**
 * Algorithm 1: validate and claim, certify, then the path of the adapter's capability. Every return has recorded a
 * terminal. A throw after the claim leaves the occurrence spent and dependents halted: recovery decides, never a
 * retry here.
 */
export async function execute(
  deployment: Deployment,
  license: unknown,
  untrustedAction: unknown,
  options?: ExecuteOptions,
): Promise<Terminal> {
  const signed = parseSignedLicense(license);
  const { adapter } = signed.license;
  const activity = { kind: 'execute', ...(deployment.adapters.has(adapter) && { adapter }) } as const;
  return await traced(deployment, activity, (own) => executeLicense(own, signed, untrustedAction, options), endingOf);
}

async function executeLicense(
  deployment: Deployment,
  signed: SignedLicense,
  untrustedAction: unknown,
  options?: ExecuteOptions,
): Promise<Terminal> {
  const admitted = adapterNamed(deployment, signed.license.adapter);
  const action = admitted.adapter.parseAction(untrustedAction);
  const opened = openAttempt(deployment, admitted, signed);
  const revision = options?.revision;

  const leased = deadlineIn(deployment.clock, deployment.leaseMs);
  const authority = await claimAuthority(deployment, opened, { action, revision });
  if (authority.kind === 'refused') {
    return finish(deployment, rejection(deployment, opened, 'authority', authority.refusal));
  }
  const { attempt, claim } = authority;
  using _lease = deployment.leases.keep(attempt, leased);

  const boundary = await certify(deployment, admitted, claim);
  if (boundary.kind === 'refused') {
    const refusal = { reason: 'outlet-unclassified', detail: describeOutlets(boundary.outlets) };
    return finish(deployment, rejection(deployment, attempt, 'boundary', refusal, { claim: claim.digest }));
  }
  if (!(await isProven(provingContext(deployment, admitted.name), admitted.adapter))) {
    const detail = 'the credential changed since the service was tried, and with this one it was not';
    const refusal = { reason: 'service-unproven', detail };
    return finish(deployment, rejection(deployment, attempt, 'boundary', refusal, { claim: claim.digest }));
  }
  deployment.reached('path:certified');

  const { certificate, survey } = boundary;
  const established = { attempt, claim, certificate, survey, action, revision };
  return isPromotable(admitted)
    ? await executePromotable(deployment, admitted, established)
    : await executeRemote(deployment, admitted as AdmittedRemote, established);
}
