import type { Survey } from '../contract/adapter.ts';
import type { Certificate, Claim } from '../contract/proof.ts';
import { digestRecord, digestText } from '../crypto/digest.ts';
import { isFault } from '../errors.ts';
import { certificateRecord, type Outlet, outletsFor, unclassified } from '../protocol/boundary.ts';
import { canonical } from '../protocol/canon.ts';
import type { StateRead } from '../protocol/effect.ts';
import type { Digest } from '../protocol/record.ts';
import { type Refused, refuse } from './attempt.ts';
import type { Admitted, Deployment } from './deployment.ts';

/** A certificate, and the survey of which it contains only digests. */
export type Certification =
  | { readonly kind: 'certified'; readonly certificate: Certificate; readonly survey: Survey }
  | Refused;

/**
 * What will be run. The calls of a task are not known in advance: its action is undefined, so only
 * its reads count, and {@link refuseReached} checks each call against the survey.
 */
export interface PlannedRun {
  readonly action: unknown;
  readonly reads: readonly StateRead[];
}

/** The survey for one operation: open outlets that it cannot reach count as denied. */
function surveyFor({ adapter }: Admitted, survey: Survey, operation: PlannedRun): Survey {
  const { action, reads } = operation;
  if (unclassified(survey).length === 0) return survey;
  const reached = adapter.reachOf?.(survey, action, reads);
  return { ...survey, outlets: outletsFor(survey, reached) };
}

/** Why a call must not run under the survey that its task was certified by. */
export function refuseReached(
  admitted: Admitted,
  survey: Survey,
  operation: PlannedRun,
): Refused | undefined {
  return refuseOpen(surveyFor(admitted, survey, operation));
}

function refuseOpen(survey: Survey): Refused | undefined {
  const open = unclassified(survey);
  return open.length === 0 ? undefined : refuse('outlet-unclassified', describeOutlets(open));
}

/**
 * Surveys the live backend and certifies it for this claim. Refuses if the operation reaches an
 * unclassified outlet.
 */
export async function certify(
  deployment: Deployment,
  admitted: Admitted,
  claim: Claim,
  operation: PlannedRun,
  surveying = admitted.adapter.survey(),
): Promise<Certification> {
  // Copied for the comparison with the next survey: an adapter may return the same object again.
  const survey = { ...(await surveying) };
  const scoped = surveyFor(admitted, survey, operation);
  const refused = refuseOpen(scoped);
  if (refused !== undefined) return refused;
  const outlets = await keepOutlets(deployment, scoped);
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
  const digest = digestRecord(certificateRecord, record);
  const certificate = { record, digest, credentials } as Certificate;
  return { kind: 'certified', certificate, survey };
}

const BOUND = ['backend', 'executor', 'configuration', 'credentials', 'enforcement'] as const;

/** Whether a later survey would give the same certificate. */
export function isConfirmed(
  admitted: Admitted,
  { record }: Certificate,
  operation: PlannedRun,
  { before, now }: { readonly before: Survey; readonly now: Survey },
): boolean {
  const scoped = surveyFor(admitted, now, operation);
  if (BOUND.some((part) => before[part] !== now[part]) || unclassified(scoped).length > 0)
    return false;
  const isSameList = before.outlets === now.outlets && Object.isFrozen(now.outlets);
  return isSameList || digestOutlets(scoped) === record.outlets;
}

const kept = new WeakMap<
  readonly Outlet[],
  { readonly ledgers: unknown; readonly digest: Digest }
>();

/**
 * Stores the list of outlets once, under its digest. A frozen list that was stored before is not
 * hashed again.
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

/** Lists the outlets that prevent certification, and why each is reachable. */
function describeOutlets(outlets: readonly Outlet[]): string {
  return outlets.map((outlet) => `${outlet.outlet}: ${outlet.by}`).join('; ');
}

/**
 * Warns an approver about open outlets, because executions are refused until they are closed. Empty
 * if every outlet is observed or denied.
 */
export async function warnOfBoundary({ name, adapter }: Admitted): Promise<readonly string[]> {
  const survey = await adapter.survey();
  const open = unclassified(survey);
  if (open.length === 0) return [];
  const fixes = new Map(survey.remedies?.map(({ outlet, fix }) => [outlet, fix.join('; ')]));
  const listed = open.slice(0, CHANGES_MAX).map(({ outlet, by }) => {
    const fix = fixes.get(outlet);
    return fix === undefined ? `${outlet}: ${by}` : `${outlet}: ${by} Close it: ${fix}`;
  });
  const more = open.length > listed.length ? [`and ${open.length - listed.length} more`] : [];
  const refused = open.every(({ behind }) => behind !== undefined)
    ? 'executions that reach what is open are refused'
    : 'every execution is refused';
  const what = `the boundary of ${name} is open, and until it is closed ${refused}`;
  const text = `${what}: ${[...listed, ...more].join('; ')}. \`effectmatch doctor\` lists it`;
  return [text.slice(0, 4000).toWellFormed()];
}

/**
 * Turns `ERR_EM_BOUNDARY_OPEN` into a refusal: the adapter reads and casts nothing behind an open
 * boundary. Rethrows other errors.
 */
export function asOpenBoundary(error: unknown): Refused {
  if (!isFault(error, 'ERR_EM_BOUNDARY_OPEN')) throw error;
  return refuse('outlet-unclassified', error.message);
}

const CHANGES_MAX = 12;

/**
 * Explains to the final gate how the boundary differs from the certified one: what changed, and
 * what is open because of it. The gate refuses even if no explanation is available.
 */
export async function describeChange(
  adapter: Admitted['adapter'],
  before: Survey,
  after: Survey,
): Promise<string> {
  const explained = await explain(adapter, before, after).catch(() => []);
  const changes = explained.length > 0 ? explained : compareSurveys(before, after);
  const listed = changes.slice(0, CHANGES_MAX);
  const more = changes.length > listed.length ? [`and ${changes.length - listed.length} more`] : [];
  const open = unclassified(after);
  const opened = open.length > 0 ? `. Now open: ${describeOutlets(open)}` : '';
  return `the backend changed while the candidate was held; certify again. Changed: ${[...listed, ...more].join('; ')}${opened}`;
}

async function explain(
  adapter: Admitted['adapter'],
  before: Survey,
  after: Survey,
): Promise<readonly string[]> {
  return (await adapter.explainChange?.(before, after)) ?? [];
}

/** The outlets that differ; if none do, the part of the certificate that changed. */
function compareSurveys(before: Survey, after: Survey): readonly string[] {
  const dispositions = ({ outlets }: Survey) =>
    new Map(outlets.map(({ outlet, disposition, by }) => [outlet, `${disposition} (${by})`]));
  const was = dispositions(before);
  const is = dispositions(after);
  const outlets = [...new Set([...was.keys(), ...is.keys()])]
    .filter((outlet) => was.get(outlet) !== is.get(outlet))
    .map((outlet) => `${outlet}: ${was.get(outlet) ?? 'not there'} → ${is.get(outlet) ?? 'gone'}`);
  if (outlets.length > 0) return outlets;
  const changed = BOUND.filter((part) => before[part] !== after[part]);
  return changed.map((part) => `the backend's ${part} changed`);
}
