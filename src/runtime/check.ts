import { parseProposal } from '../crypto/proposal.ts';
import { parseSignedLicense } from '../crypto/signature.ts';
import { findImpossible, foreseeable, foreseeingRead } from '../protocol/foresee.ts';
import { stateReads } from '../protocol/state.ts';
import { type Attempt, type Refusal, readAction } from './attempt.ts';
import {
  checkLicense,
  checkPresupposed,
  checkState,
  openAttempt,
  type Stated,
} from './authority.ts';
import { adapterNamed, type Deployment } from './deployment.ts';
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
  const isSigned = 'license' in approval;
  const examined = isSigned
    ? examineLicense(deployment, approval.license)
    : examineProposal(deployment, approval.proposal);
  const refusal =
    (await findRefusal(examined, action, revision)) ??
    (isSigned ? undefined : await findOutdated(examined));
  return refusal && { reason: refusal.reason, detail: refusal.detail };
}

/** An approval that is examined without being used. */
export interface Examined extends Stated {
  /** Checks everything that does not need the backend. */
  checkTerms(action: unknown): Refusal | undefined;
}

/** Opens a license to examine it. */
export function examineLicense(deployment: Deployment, license: unknown): Attempt & Examined {
  const signed = parseSignedLicense(license);
  const admitted = adapterNamed(deployment, signed.license.adapter);
  const attempt = openAttempt(deployment, admitted, signed);
  return { ...attempt, checkTerms: (action) => checkLicense(deployment, attempt, action) };
}

/**
 * Opens a proposal to examine it. It is out of date if the deployment or the state it was made for
 * has changed.
 */
export function examineProposal(deployment: Deployment, proposal: unknown): Examined {
  const { draft, approved } = parseProposal(proposal);
  const admitted = adapterNamed(deployment, draft.adapter);
  const stated = { admitted, signed: { license: draft, approved } };
  return { ...stated, checkTerms: (action) => checkPresupposed(deployment, stated, action) };
}

async function findRefusal(
  examined: Examined,
  untrusted: unknown,
  revision: string | undefined,
): Promise<Refusal | undefined> {
  const { admitted, signed, checkTerms } = examined;
  // A task has no action.
  const action =
    untrusted === undefined
      ? { kind: 'read' as const, action: undefined }
      : readAction(admitted, untrusted);
  if (action.kind === 'refused') return action;
  const refusal = checkTerms(action.action);
  if (refusal !== undefined) return refusal;
  const readings = await admitted.adapter.read(stateReads(signed.approved));
  return checkState(examined, readings, revision);
}

/** Checks that the rows are still the ones that the changes start from, if they can be read. */
async function findOutdated({ admitted, signed }: Stated): Promise<Refusal | undefined> {
  const { adapter } = admitted;
  const { approved } = signed;
  const foreseen = adapter.readsMany === true ? foreseeable(approved) : [];
  const reads = foreseen.map(foreseeingRead);
  // A registered table may have rows that only an execution may read.
  const found = await readAll(adapter, reads).catch(() => []);
  const [impossible] = findImpossible(approved, foreseen, found);
  return impossible === undefined ? undefined : { reason: 'stale-state', detail: impossible };
}
