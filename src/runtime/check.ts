import { parseProposal } from '../crypto/proposal.ts';
import { parseSignedLicense } from '../crypto/signature.ts';
import { findImpossible, foreseeable, foreseeingRead } from '../protocol/foresee.ts';
import type { Approved } from '../protocol/manifest.ts';
import { stateReads } from '../protocol/state.ts';
import { type Refusal, readAction } from './attempt.ts';
import {
  checkLicense,
  checkPresupposed,
  checkState,
  openAttempt,
  type Stated,
} from './authority.ts';
import { type Admitted, adapterNamed, type Deployment } from './deployment.ts';
import { readAll } from './prepare.ts';

/** Options for checking an approval before it is used. */
export interface CheckOptions {
  /** The application's revision of the task state, if the approval was bound to one. */
  readonly revision?: string;
}

/**
 * Why an execution under this license would be refused now, as far as this can be known without a
 * claim, or why this proposal is out of date; undefined if there is no reason. Records and spends
 * nothing.
 */
export async function check(
  deployment: Deployment,
  approval: { readonly license: unknown } | { readonly proposal: unknown },
  action: unknown,
  { revision }: CheckOptions = {},
): Promise<Refusal | undefined> {
  const refusal =
    'license' in approval
      ? await checkSigned(deployment, approval.license, action, revision)
      : await checkProposal(deployment, approval.proposal, action, revision);
  return refusal && { reason: refusal.reason, detail: refusal.detail };
}

async function checkSigned(
  deployment: Deployment,
  license: unknown,
  action: unknown,
  revision: string | undefined,
): Promise<Refusal | undefined> {
  const signed = parseSignedLicense(license);
  const admitted = adapterNamed(deployment, signed.license.adapter);
  const attempt = openAttempt(deployment, admitted, signed);
  const parsed = readChecked(admitted, action);
  if (parsed.kind === 'refused') return parsed;
  return (
    checkLicense(deployment, attempt, parsed.action) ??
    (await findChange(deployment, attempt, parsed.action, revision))
  );
}

/** Parses the action, if there is one: a task has none. */
function readChecked(admitted: Admitted, action: unknown): ReturnType<typeof readAction> {
  return action === undefined ? { kind: 'read', action } : readAction(admitted, action);
}

/** A proposal is out of date if the deployment or the state it was made for has changed. */
async function checkProposal(
  deployment: Deployment,
  proposal: unknown,
  action: unknown,
  revision: string | undefined,
): Promise<Refusal | undefined> {
  const { draft, approved } = parseProposal(proposal);
  const admitted = adapterNamed(deployment, draft.adapter);
  const parsed = readChecked(admitted, action);
  if (parsed.kind === 'refused') return parsed;
  const stated = { admitted, signed: { license: draft, approved } };
  const change = await findChange(deployment, stated, parsed.action, revision);
  return change ?? (await findOutdated(admitted, approved));
}

/** Checks that the rows are still the ones that the changes start from, if they can be read. */
async function findOutdated(
  { adapter }: Admitted,
  approved: Approved,
): Promise<Refusal | undefined> {
  const foreseen = adapter.readsMany === true ? foreseeable(approved) : [];
  const reads = foreseen.map(foreseeingRead);
  // A registered table may have rows that only an execution may read.
  const found = await readAll(adapter, reads).catch(() => []);
  const [impossible] = findImpossible(approved, foreseen, found);
  return impossible === undefined ? undefined : { reason: 'stale-state', detail: impossible };
}

async function findChange(
  deployment: Deployment,
  stated: Stated,
  action: unknown,
  revision: string | undefined,
): Promise<Refusal | undefined> {
  const presupposed = checkPresupposed(deployment, stated, action);
  if (presupposed !== undefined) return presupposed;
  const readings = await stated.admitted.adapter.read(stateReads(stated.signed.approved));
  return checkState(stated, readings, revision);
}
