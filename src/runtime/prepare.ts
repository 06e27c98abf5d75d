import { misnamedOption, type OptionNames } from '../contract/options.ts';
import { actionDigest, digestRecord, renderingDigest } from '../crypto/digest.ts';
import { parseProposal } from '../crypto/proposal.ts';
import { EffectMatchError, errorsOf } from '../errors.ts';
import { approvedOutcome } from '../protocol/approve.ts';
import { draftManifest, type ManifestDraft } from '../protocol/draft.ts';
import type { StateRead, StateReading } from '../protocol/effect.ts';
import {
  findContradictions,
  findImpossible,
  foreseeable,
  foreseeingRead,
} from '../protocol/foresee.ts';
import type { Source } from '../protocol/frame.ts';
import type { Proposal } from '../protocol/license.ts';
import { findOversized } from '../protocol/limits.ts';
import { type Approved, approvedRecord, type Manifest } from '../protocol/manifest.ts';
import { MAX_BY, MAX_REASON, noteOf } from '../protocol/note.ts';
import { isName } from '../protocol/record.ts';
import { renderLicense } from '../protocol/render-license.ts';
import { brokenRequirements, describeBroken, stateReads } from '../protocol/state.ts';
import type { Value } from '../protocol/value.ts';
import { taskStateDigest } from './authority.ts';
import { warnOfBoundary } from './boundary.ts';
import { type Admitted, adapterNamed, type Deployment } from './deployment.ts';
import { demandSettable } from './settings.ts';

/** The approval that an application asks for. */
export interface PrepareRequest extends ManifestDraft {
  /** Work that a commit may release, by name. A commit releases nothing else. */
  readonly continuations?: readonly string[] | undefined;
  /**
   * The `continuations` that may be released on a match of registered fields alone, which does not
   * show who wrote them. Not needed for backends that compare more.
   */
  readonly fieldMatch?: readonly string[] | undefined;
  /** Binds the license to this action. Without it, any action with the approved outcome may run. */
  readonly action?: unknown;
  /** The application's revision of the task state. The execution must present the same one. */
  readonly revision?: string | undefined;
  /** How many executions the license allows. The default is one. */
  readonly occurrences?: number | undefined;
  /** Who asks, for the approver to read. It is shown as unverified and is not signed. */
  readonly requestedBy?: string | undefined;
  /** Why, also shown as unverified and not signed. */
  readonly reason?: string | undefined;
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
  requestedBy: true,
  reason: true,
};

/** Where a request came from, if not from the application itself. */
interface Origin {
  readonly source: Source;
  /** The operation whose contract computed the effects. */
  readonly operation?: string;
  /**
   * The state that the effects were computed from: the readings for all `stateReads`, or for the
   * last of them. They replace a second read, so a row that changed in between makes the approval
   * stale, not wrong.
   */
  readonly readings?: readonly StateReading[];
}

/**
 * Normalises the manifest to the backend's types, reads the declared state, refuses what cannot
 * succeed, and renders the text to sign. An async function would hold on to its arguments, and to a
 * million effects with them, so each form of the effects is handed on here and forgotten.
 */
export function prepare(
  deployment: Deployment,
  request: PrepareRequest,
  origin: Origin = { source: 'manifest' },
): Promise<Proposal> {
  try {
    const { draft, ...asked } = checkRequest(request);
    const stated = draftManifest(draft);
    const { task, planRevision } = stated;
    const admitted = adapterNamed(deployment, stated.adapter);
    demandSettable(admitted, stated.settings);
    const approving = approve(deployment, admitted, stated);
    return propose(deployment, admitted, { ...asked, ...origin, task, planRevision }, approving);
  } catch (error) {
    return Promise.reject(error);
  }
}

type Asked = Origin &
  Pick<PrepareRequest, 'task' | 'planRevision'> &
  Omit<ReturnType<typeof checkRequest>, 'draft'>;

async function propose(
  deployment: Deployment,
  admitted: Admitted,
  asked: Asked,
  approving: Promise<Approved>,
): Promise<Proposal> {
  const { task, planRevision, source, operation, revision } = asked;
  const approved = await approving;
  const readings = await readState(admitted, approved, asked);
  const action = describeBound(admitted, asked.action);
  const terms = {
    task,
    planRevision,
    source,
    occurrences: asked.occurrences,
    continuations: asked.continuations,
    ...(asked.fieldMatch.length > 0 && { fieldMatch: asked.fieldMatch }),
    ...(operation !== undefined && { operation }),
    ...(revision !== undefined && { revision }),
    ...(action !== undefined && { action: actionDigest(action, approved.salt) }),
  };
  const rendering = renderLicense(terms, approved);
  // A rehearsal has just been certified.
  const warnings = source === 'rehearsed' ? [] : await warnOfBoundary(admitted);
  const note = noteOf({ warnings, by: asked.requestedBy, reason: asked.reason, action });
  const proposal = parseProposal({
    draft: {
      version: 1,
      ...terms,
      taskState: taskStateDigest(approved, readings, revision),
      adapter: admitted.name,
      identity: admitted.identityDigest,
      approved: digestRecord(approvedRecord, approved),
      rendering: renderingDigest(approved.salt, rendering),
      policy: deployment.policyDigest,
      frame: admitted.frameDigest,
    },
    approved,
    rendering,
    ...(note !== undefined && { note }),
  });
  await announce(deployment, task, planRevision);
  deployment.licenses.addDraft(proposal.draft);
  return proposal;
}

/** The description of the action that the license is bound to, if any. */
function describeBound({ adapter }: Admitted, action: unknown): Value | undefined {
  return action === undefined ? undefined : adapter.describeAction(adapter.parseAction(action));
}

/** The number of rows read at once. */
const ROWS_AT_ONCE = 10_000;

/**
 * Reads the state that the approval depends on. If the backend can, reads the rows to change in the
 * same call, and refuses an outcome that they rule out.
 */
async function readState(
  { adapter }: Admitted,
  approved: Approved,
  { source, readings: known = [] }: Origin,
): Promise<readonly StateReading[]> {
  const contradictions = findContradictions(approved);
  if (contradictions.length > 0) throw impossible(contradictions);
  const reads = stateReads(approved);
  const unread = reads.slice(0, reads.length - known.length);
  const isChecked = adapter.readsMany === true && source !== 'rehearsed';
  const foreseen = isChecked ? foreseeable(approved) : [];
  const first = foreseen.slice(0, ROWS_AT_ONCE);
  const rows = first.map(foreseeingRead);
  const found = await readAll(adapter, [...unread, ...rows]).catch(async (error: unknown) => {
    // A registered table may have rows that only an execution may read.
    if (rows.length === 0 || !isInvalid(error)) throw error;
    return await adapter.read(unread);
  });
  const readings = [...found.slice(0, unread.length), ...known];
  const broken = brokenRequirements(approved, readings)[0];
  if (broken !== undefined)
    throw invalid(`a requirement does not hold now: ${describeBroken(broken)}`);
  const ruledOut = [...findImpossible(approved, first, found.slice(unread.length))];
  const isReadable = found.length === unread.length + rows.length;
  for (let at = ROWS_AT_ONCE; isReadable && at < foreseen.length; at += ROWS_AT_ONCE) {
    const part = foreseen.slice(at, at + ROWS_AT_ONCE);
    const read = adapter.read(part.map(foreseeingRead));
    const now = await read.catch((error: unknown) => {
      if (!isInvalid(error)) throw error;
      return [];
    });
    for (const why of findImpossible(approved, part, now)) ruledOut.push(why);
  }
  if (ruledOut.length > 0) throw impossible(ruledOut);
  return readings;
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
  for (const field of ['requestedBy', 'reason'] as const) checkSaid(field, request[field]);
  const { action, revision, occurrences = 1, requestedBy, reason, ...rest } = request;
  const { continuations: _, fieldMatch: __, ...draft } = rest;
  return {
    draft,
    action,
    revision,
    occurrences,
    requestedBy,
    reason,
    continuations: [...continuations],
    fieldMatch: [...fieldMatch],
  };
}

/** Text that the approver reads as the agent's must be well-formed and short enough to read. */
function checkSaid(field: 'requestedBy' | 'reason', said: unknown): void {
  const most = field === 'reason' ? MAX_REASON : MAX_BY;
  const isText = typeof said === 'string' && said.isWellFormed();
  if (said === undefined || (isText && said.length > 0 && said.length <= most)) return;
  throw invalid(`${field} must be text of 1 to ${most} characters`);
}

/** Normalises the outcome for the backend. Refuses before signing what could not be requested. */
function approve(
  deployment: Deployment,
  { adapter }: Admitted,
  stated: Manifest,
): Promise<Approved> {
  return adapter.normalise(stated).then((manifest) => {
    const approved = approvedOutcome(manifest, adapter.registration, deployment.ids.hex(16));
    if (adapter.capability === 'PROMOTABLE') return approved;
    const oversized = findOversized(approved.effects);
    if (oversized !== undefined) throw invalid(`${oversized}; approve fewer`);
    if (adapter.capability === 'MEDIATED') adapter.buildRequest(approved, {});
    return approved;
  });
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

/** Reads any number of rows in the order asked, a bounded number at a time. */
export async function readAll(
  adapter: Admitted['adapter'],
  reads: readonly StateRead[],
): Promise<readonly StateReading[]> {
  const found = [await adapter.read(reads.slice(0, ROWS_AT_ONCE))];
  for (let at = ROWS_AT_ONCE; at < reads.length; at += ROWS_AT_ONCE)
    found.push(await adapter.read(reads.slice(at, at + ROWS_AT_ONCE)));
  return found.flat();
}

function isInvalid(error: unknown): boolean {
  return error instanceof EffectMatchError && error.code === 'ERR_EM_MANIFEST_INVALID';
}

const LISTED_MAX = 5;

function impossible(why: readonly string[]): EffectMatchError<'ERR_EM_OUTCOME_IMPOSSIBLE'> {
  const listed = why.slice(0, LISTED_MAX);
  if (why.length > LISTED_MAX) listed.push(`and ${why.length - LISTED_MAX} more`);
  return new EffectMatchError(
    'ERR_EM_OUTCOME_IMPOSSIBLE',
    `no execution could have this outcome: ${listed.join('; ')}`,
  );
}

const invalid = errorsOf('ERR_EM_MANIFEST_INVALID');
