import type { Survey } from '../contract/adapter.ts';
import type { Certificate, Claim } from '../contract/proof.ts';
import { digestRecord, digestText } from '../crypto/digest.ts';
import { EffectMatchError } from '../errors.ts';
import { certificateRecord, type Outlet, unclassified } from '../protocol/boundary.ts';
import { canonical } from '../protocol/canon.ts';
import type { Digest } from '../protocol/record.ts';
import type { Admitted, Deployment } from './deployment.ts';

/** What a survey amounts to, with the survey itself: a certificate holds only digests of it. */
export type Boundary = { readonly survey: Survey } & (
  | { readonly kind: 'certified'; readonly certificate: Certificate }
  | { readonly kind: 'refused'; readonly outlets: readonly Outlet[] }
);

/** Surveys the live backend and certifies it for this claim; one unclassified outlet refuses. */
export async function certify(
  deployment: Deployment,
  admitted: Admitted,
  claim: Claim,
): Promise<Boundary> {
  // A copy, because the next survey is compared with it: an adapter may hand out the same object
  // again.
  const survey = { ...(await admitted.adapter.survey()) };
  const open = unclassified(survey);
  if (open.length > 0) return { kind: 'refused', outlets: open, survey };
  const outlets = await keepOutlets(deployment, survey);
  const record = {
    version: 1 as const,
    occurrence: claim.sealed.record.occurrence,
    identity: admitted.identityDigest,
    backend: survey.backend,
    executor: survey.executor,
    outlets,
    configuration: digestText('effectmatch/configuration/v1', survey.configuration),
    credentials: digestText('effectmatch/credentials/v1', survey.credentials),
    enforcement: digestText('effectmatch/enforcement/v1', survey.enforcement),
  };
  const { credentials } = survey;
  const certificate = {
    record,
    digest: digestRecord(certificateRecord, record),
    credentials,
  } as Certificate;
  return { kind: 'certified', certificate, survey };
}

const BOUND = ['backend', 'executor', 'configuration', 'credentials', 'enforcement'] as const;

/**
 * Whether a later survey would give the same certificate: everything that it binds is as it was.
 */
export function isConfirmed({ record }: Certificate, before: Survey, now: Survey): boolean {
  if (BOUND.some((part) => before[part] !== now[part]) || unclassified(now).length > 0)
    return false;
  return (
    (before.outlets === now.outlets && Object.isFrozen(now.outlets)) ||
    digestOutlets(now) === record.outlets
  );
}

const kept = new WeakMap<
  readonly Outlet[],
  { readonly ledgers: unknown; readonly digest: Digest }
>();

/**
 * The list behind a certificate is kept once under its digest; a frozen list seen before costs
 * nothing more.
 */
async function keepOutlets(deployment: Deployment, survey: Survey): Promise<Digest> {
  const known = kept.get(survey.outlets);
  if (known !== undefined && known.ledgers === deployment.ledgers) return known.digest;
  const digest = digestOutlets(survey);
  await deployment.ledgers.keep(digest, canonical(survey.outlets));
  if (Object.isFrozen(survey.outlets))
    kept.set(survey.outlets, { ledgers: deployment.ledgers, digest });
  return digest;
}

function digestOutlets({ outlets }: Survey): Digest {
  return digestText('effectmatch/outlets/v1', canonical(outlets));
}

/** Names what keeps a boundary from being certified, and why each is reachable. */
export function describeOutlets(outlets: readonly Outlet[]): string {
  return outlets.map((outlet) => `${outlet.outlet}: ${outlet.by}`).join('; ');
}

/**
 * An adapter that reads and casts nothing behind an open boundary says so: a refusal here. Other
 * errors stay errors.
 */
export function asOpenBoundary(error: unknown): {
  readonly reason: string;
  readonly detail: string;
} {
  if (!(error instanceof EffectMatchError) || error.code !== 'ERR_EM_BOUNDARY_OPEN') throw error;
  return { reason: 'outlet-unclassified', detail: error.message };
}
