import { misnamedOption, type OptionNames } from '../contract/options.ts';
import { digestRecord, renderingDigest } from '../crypto/digest.ts';
import { parseProposal } from '../crypto/proposal.ts';
import { EffectMatchError } from '../errors.ts';
import { approvedOutcome } from '../protocol/approve.ts';
import { draftManifest, type ManifestDraft } from '../protocol/draft.ts';
import type { StateReading } from '../protocol/effect.ts';
import type { Source } from '../protocol/frame.ts';
import type { Proposal } from '../protocol/license.ts';
import { findOversized } from '../protocol/limits.ts';
import { type Approved, approvedRecord, type Manifest } from '../protocol/manifest.ts';
import { isName } from '../protocol/record.ts';
import { renderLicense } from '../protocol/render-license.ts';
import { brokenRequirements, describeBroken, stateReads } from '../protocol/state.ts';
import { actionDigest, taskStateDigest } from './authority.ts';
import { type Admitted, adapterNamed, type Deployment } from './deployment.ts';
import { findRefusedSetting } from './settings.ts';

/** What an application asks to have approved. */
export interface PrepareRequest extends ManifestDraft {
  /** Work that a commit may release, by name. Nothing else is ever released by it. */
  readonly continuations?: readonly string[] | undefined;
  /**
   * The `continuations` that may be released on a match of registered fields alone, which does not
   * show who wrote those fields. Not needed for backends that compare more.
   */
  readonly fieldMatch?: readonly string[] | undefined;
  /**
   * Binds the license to this one action; without it any action with the approved outcome may run.
   */
  readonly action?: unknown;
  /** The application's own revision of the task state; the execution must present the same. */
  readonly revision?: string | undefined;
  /** How many executions the license buys; one unless said otherwise. */
  readonly occurrences?: number | undefined;
}

const REQUEST: OptionNames<PrepareRequest> = {
  adapter: true,
  task: true,
  planRevision: true,
  effects: true,
  requires: true,
  watch: true,
  set: true,
  continuations: true,
  fieldMatch: true,
  action: true,
  revision: true,
  occurrences: true,
};

/** What a source of approvals adds to a request that an application wrote itself. */
interface Origin {
  readonly source: Source;
  /** The operation whose contract computed the effects. */
  readonly operation?: string;
  /**
   * What the effects were computed from: the readings of `stateReads`, or of the last of them. They
   * take the place of a second read, so that a row that changed in between makes the approval stale
   * and not wrong.
   */
  readonly readings?: readonly StateReading[];
}

/**
 * Normalises the manifest by the backend's own types, reads the declared state, and renders what
 * there is to sign.
 */
export async function prepare(
  deployment: Deployment,
  request: PrepareRequest,
  origin: Origin = { source: 'manifest' },
): Promise<Proposal> {
  const {
    continuations,
    fieldMatch,
    action,
    revision,
    occurrences = 1,
    ...draft
  } = checkRequest(request);
  const { source, operation, readings: known = [] } = origin;
  const stated = draftManifest(draft);
  const { task, planRevision } = stated;
  const admitted = adapterNamed(deployment, stated.adapter);
  const unsettable = findRefusedSetting(admitted, stated.settings);
  if (unsettable !== undefined) throw invalid(unsettable);
  const approved = await approve(deployment, admitted, stated);
  const reads = stateReads(approved);
  const unread = reads.slice(0, reads.length - known.length);
  const readings = [...(await admitted.adapter.read(unread)), ...known];
  const broken = brokenRequirements(approved, readings)[0];
  if (broken !== undefined)
    throw invalid(`a requirement does not hold now: ${describeBroken(broken)}`);
  const bound = action === undefined ? undefined : admitted.adapter.parseAction(action);
  const terms = {
    task,
    planRevision,
    source,
    occurrences,
    continuations,
    ...(fieldMatch.length > 0 && { fieldMatch }),
    ...(operation !== undefined && { operation }),
    ...(revision !== undefined && { revision }),
    ...(action !== undefined && { action: actionDigest(admitted, bound, approved.salt) }),
  };
  const rendering = renderLicense(terms, approved);
  const proposal = parseProposal({
    draft: {
      version: 1,
      ...terms,
      taskState: taskStateDigest(approved, readings, revision),
      adapter: stated.adapter,
      identity: admitted.identityDigest,
      approved: digestRecord(approvedRecord, approved),
      rendering: renderingDigest(approved.salt, rendering),
      policy: deployment.policyDigest,
      frame: admitted.frameDigest,
    },
    approved,
    rendering,
  });
  await announce(deployment, task, planRevision);
  return proposal;
}

function checkRequest(request: PrepareRequest) {
  const unknown = misnamedOption(request, REQUEST);
  if (unknown !== undefined) throw invalid(`the request: ${unknown}`);
  const { continuations = [], fieldMatch = [] } = request;
  if (!Array.isArray(continuations)) throw invalid('continuations must be a list of names');
  const misnamed = continuations.find((name) => !isName(name));
  if (misnamed !== undefined) {
    const form =
      'a name has 1 to 128 letters, digits and . _ : / @ -, and begins with a letter or digit';
    throw invalid(`${JSON.stringify(misnamed)} cannot name a continuation: ${form}`);
  }
  const stray = Array.isArray(fieldMatch)
    ? fieldMatch.find((name) => !continuations.includes(name))
    : 'it';
  if (stray !== undefined)
    throw invalid(`fieldMatch names "${stray}", which is not a continuation`);
  return { ...request, continuations: [...continuations], fieldMatch: [...fieldMatch] };
}

/**
 * The outcome in the backend's own terms. What could not be requested is refused before signing.
 */
async function approve(
  deployment: Deployment,
  { adapter }: Admitted,
  stated: Manifest,
): Promise<Approved> {
  const manifest = await adapter.normalise(stated);
  const approved = approvedOutcome(manifest, adapter.registration, deployment.ids.hex(16));
  if (adapter.capability === 'PROMOTABLE') return approved;
  const oversized = findOversized(approved.effects);
  if (oversized !== undefined) throw invalid(`${oversized}; approve fewer`);
  if (adapter.capability === 'MEDIATED') adapter.buildRequest(approved, {});
  return approved;
}

async function announce(deployment: Deployment, task: string, planRevision: number): Promise<void> {
  const announced = await deployment.ledgers.announcePlan(task, planRevision);
  if (announced <= planRevision) return;
  throw new EffectMatchError(
    'ERR_EM_PLAN_SUPERSEDED',
    `plan revision ${announced} of task "${task}" was announced, and this is ${planRevision}: ` +
      'a license for it could not be used; prepare the announced revision or a later one',
  );
}

function invalid(message: string): EffectMatchError {
  return new EffectMatchError('ERR_EM_MANIFEST_INVALID', message);
}
