import { parseProposal } from '../crypto/proposal.ts';
import { parseSignedLicense } from '../crypto/signature.ts';
import { stateReads } from '../protocol/state.ts';
import { type Refusal, readAction } from './attempt.ts';
import {
  checkLicense,
  checkPresupposed,
  checkState,
  openAttempt,
  type Stated,
} from './authority.ts';
import { adapterNamed, type Deployment } from './deployment.ts';

/** What is checked about an approval before it is used. */
export interface CheckOptions {
  /** The application's own revision of the task state, where the approval was bound to one. */
  readonly revision?: string;
}

/**
 * Why an execution under this license would be refused now, as far as that can be said without
 * claiming it; undefined if nothing is in the way. Records and spends nothing.
 */
export async function checkSigned(
  deployment: Deployment,
  license: unknown,
  action: unknown,
  { revision }: CheckOptions = {},
): Promise<Refusal | undefined> {
  const signed = parseSignedLicense(license);
  const admitted = adapterNamed(deployment, signed.license.adapter);
  const attempt = openAttempt(deployment, admitted, signed);
  const parsed = readAction(admitted, action);
  if (parsed.kind === 'refused') return parsed.refusal;
  return (
    checkLicense(deployment, attempt, parsed.action) ??
    (await findChange(deployment, attempt, parsed.action, revision))
  );
}

/**
 * Why a proposal is out of date: the deployment or the state that it was made for has changed;
 * undefined if neither has.
 */
export async function checkProposal(
  deployment: Deployment,
  proposal: unknown,
  action: unknown,
  { revision }: CheckOptions = {},
): Promise<Refusal | undefined> {
  const { draft, approved } = parseProposal(proposal);
  const admitted = adapterNamed(deployment, draft.adapter);
  const parsed = readAction(admitted, action);
  if (parsed.kind === 'refused') return parsed.refusal;
  const stated = { admitted, signed: { license: draft, approved } };
  return await findChange(deployment, stated, parsed.action, revision);
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
