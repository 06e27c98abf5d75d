import type { Evidence, PromotableAdapter, Staged } from '../contract/adapter.ts';
import type { Claim } from '../contract/proof.ts';
import type { Sealed } from '../contract/seal.ts';
import { digestRecord } from '../crypto/digest.ts';
import { EffectMatchError } from '../errors.ts';
import { approvedOutcome } from '../protocol/approve.ts';
import { type ClaimRecord, claimRecord } from '../protocol/binding.ts';
import { canonical } from '../protocol/canon.ts';
import { draftManifest, type ManifestDraft } from '../protocol/draft.ts';
import type { ApprovedEffect, Effect, StateRead, StateReading } from '../protocol/effect.ts';
import type { Proposal } from '../protocol/license.ts';
import type { Manifest } from '../protocol/manifest.ts';
import { prepareApproved } from '../protocol/match.ts';
import { establish, type Observation } from '../protocol/observation.ts';
import { classify } from '../protocol/outcome.ts';
import type { Digest, ExecutionId, OccurrenceId } from '../protocol/record.ts';
import { explainRehearsals } from '../protocol/rehearsal.ts';
import { renderDiff } from '../protocol/render.ts';
import { joinResidue, type Residue, renderResidue } from '../protocol/residue.ts';
import type { SessionSettings } from '../protocol/settings.ts';
import { stateReads } from '../protocol/state.ts';
import { type Certification, certify, type PlannedRun } from './boundary.ts';
import {
  type AdmittedPromotable,
  adapterNamed,
  type Deployment,
  isPromotable,
  nowInstant,
  provingContext,
} from './deployment.ts';
import { prepare } from './prepare.ts';
import { proveService } from './prove.ts';
import { demandSettable, findRefusedSetting } from './settings.ts';

/** What to rehearse, and what else the approval depends on. */
export interface PlanRequest extends Omit<ManifestDraft, 'effects'> {
  readonly action: unknown;
  readonly continuations?: readonly string[];
  /** The application's revision of the task state. The execution must present the same one. */
  readonly revision?: string;
  /** Who asks, for the approver to read. It is shown as unverified and is not signed. */
  readonly requestedBy?: string;
  /** Why, also shown as unverified and not signed. */
  readonly reason?: string;
}

/** What a plan reports in addition to the proposal. */
export interface PlanOptions {
  /** Called with what the rollbacks could not undo, if there is anything. */
  readonly onResidue?: (residue: readonly Residue[]) => void;
}

/**
 * Plan and approve: runs the action twice in a certified stage that is discarded each time, and
 * proposes what both runs did, with `generated` and `now` for values that the backend's evidence
 * explains. An approver who signs the proposal approves exactly that outcome of exactly this
 * action. Nothing is signed here.
 */
export async function rehearse(
  deployment: Deployment,
  request: PlanRequest,
  options: PlanOptions = {},
): Promise<Proposal> {
  const { action: untrusted, continuations, revision, requestedBy, reason, ...draft } = request;
  const stated = draftManifest({ ...draft, effects: [] });
  const admitted = promotableNamed(deployment, stated.adapter);
  const { adapter } = admitted;
  const { settings } = stated;
  demandSettable(admitted, settings);
  const action = adapter.parseAction(untrusted);
  const reads = stateReads(await adapter.normalise(stated));

  const what = { task: stated.task, action, reads, settings };
  const first = demandComplete(await rehearseOnce(deployment, admitted, what));
  const second = demandComplete(await rehearseOnce(deployment, admitted, what));
  const residue = joinResidue(first.evidence.residue, second.evidence.residue);
  if (residue.length > 0) options.onResidue?.(residue);
  if (canonical(first.readings) !== canonical(second.readings)) {
    throw rolledBack('the declared state changed between the two rehearsals; plan again', residue);
  }
  const runs = [first, second].map(({ effects, evidence }) => ({ effects, ...evidence })) as [
    Run,
    Run,
  ];
  const explained = explainRehearsals(...runs, adapter.registration);
  if (explained.kind === 'unexplained') {
    throw rolledBack(
      `two rehearsals of the same action differ:\n  ${explained.differences.join('\n  ')}`,
      residue,
    );
  }
  const effects = explained.effects;
  await verifyExplanation(adapter, { stated, effects, runs });
  const origin = { source: 'rehearsed', readings: first.readings } as const;
  return prepare(deployment, { ...request, effects }, origin);
}

/** The adapter with this name. Throws unless actions can be rehearsed on it. */
export function promotableNamed(deployment: Deployment, name: string): AdmittedPromotable {
  const admitted = adapterNamed(deployment, name);
  if (isPromotable(admitted)) return admitted;
  throw refused(`adapter "${name}" cannot hold a change back, so nothing can be rehearsed on it`);
}

type Run = Evidence & { readonly effects: readonly Effect[] };

/** The result of one rehearsal. */
export type RehearsalResult =
  | { readonly kind: 'uncertified'; readonly detail: string }
  | Extract<Staged, { kind: 'failed' }>
  | {
      readonly kind: 'observed';
      readonly observation: Observation;
      readonly evidence: Evidence;
      /** Declared state beneath the candidate, which the effects started from. */
      readonly readings: readonly StateReading[];
    };

/** The action to rehearse, and its settings. */
interface RehearsedAction {
  readonly task: string;
  readonly action: unknown;
  readonly reads: readonly StateRead[];
  readonly settings: SessionSettings | undefined;
}

/** One rehearsal. The stage never leaves this function, which always discards it. */
export async function rehearseOnce(
  deployment: Deployment,
  admitted: AdmittedPromotable,
  what: RehearsedAction,
): Promise<RehearsalResult> {
  const { adapter } = admitted;
  const { action, reads, settings } = what;
  const unsettable = findRefusedSetting(admitted, settings);
  if (unsettable !== undefined)
    return { kind: 'failed', reason: 'setting-refused', detail: unsettable };
  const proofs = await certifyRehearsal(deployment, admitted, what.task, { action, reads });
  if (proofs.kind === 'uncertified') return proofs;
  const { claim, certificate } = proofs;
  const staged = await adapter.stage(claim, certificate, action, reads, settings);
  if (staged.kind === 'failed') return staged;
  try {
    const evidence = await staged.stage.observe();
    const observation = establish(evidence, admitted.registration, admitted.frame.channels);
    const readings = await staged.stage.read(reads);
    return { kind: 'observed', observation, evidence, readings };
  } finally {
    await staged.stage.discard();
  }
}

/** A claim and a certificate for a candidate that nothing can ever promote. */
export async function certifyRehearsal(
  deployment: Deployment,
  admitted: AdmittedPromotable,
  task: string,
  operation: PlannedRun,
): Promise<
  | (Extract<Certification, { kind: 'certified' }> & { readonly claim: Claim })
  | { readonly kind: 'uncertified'; readonly detail: string }
> {
  const claim = mintRehearsalClaim(deployment, admitted, task);
  const boundary = await certify(deployment, admitted, claim, operation);
  if (boundary.kind === 'refused') return { kind: 'uncertified', detail: boundary.detail };
  const proof = await proveService(provingContext(deployment, admitted.name), admitted.adapter);
  if (proof.kind === 'unproven') return { kind: 'uncertified', detail: proof.why };
  return { ...boundary, claim };
}

interface Rehearsed {
  readonly effects: readonly Effect[];
  readonly evidence: Evidence;
  readonly readings: readonly StateReading[];
}

/** A plan needs everything that an execution needs. */
function demandComplete(rehearsal: RehearsalResult): Rehearsed {
  if (rehearsal.kind === 'uncertified')
    throw refused(`the boundary cannot be certified: ${rehearsal.detail}`);
  if (rehearsal.kind === 'failed') {
    throw rolledBack(
      `the action failed (${rehearsal.reason}): ${rehearsal.detail}`,
      rehearsal.residue,
    );
  }
  const { observation, evidence, readings } = rehearsal;
  if (observation.kind === 'incomplete') {
    throw rolledBack(
      `what the action does could not be established: ${observation.gaps.join('; ')}`,
      evidence.residue,
    );
  }
  return { effects: observation.effects, evidence, readings };
}

const NOTHING = '0'.repeat(64) as Digest;

/**
 * A claim that no ledger knows. Its occurrence is random and belongs to no license, its digests are
 * zero, and no key opens its seal. So nothing can promote, recover or release a stage that was
 * opened with it.
 */
function mintRehearsalClaim(
  deployment: Deployment,
  admitted: AdmittedPromotable,
  task: string,
): Claim {
  const record = claimRecord.parse({
    version: 1,
    occurrence: `occ_${deployment.ids.hex(20)}` as OccurrenceId,
    execution: `exe_${deployment.ids.hex(16)}` as ExecutionId,
    license: NOTHING,
    binding: NOTHING,
    approved: NOTHING,
    adapter: admitted.name,
    identity: admitted.identityDigest,
    backend: admitted.adapter.identity.backend,
    frame: admitted.frameDigest,
    task,
    taskState: NOTHING,
    continuations: [],
    claimedAt: nowInstant(deployment),
  });
  const sealed: Sealed<ClaimRecord> = {
    record,
    text: claimRecord.text(record),
    seal: { key: 'rehearsal', mac: NOTHING },
  };
  return { sealed, digest: digestRecord(claimRecord, record) } as Claim;
}

/**
 * The explanation is only a proposal: the comparison that decides about the execution must accept
 * both rehearsals.
 */
async function verifyExplanation(
  adapter: PromotableAdapter,
  proposed: {
    readonly stated: Manifest;
    readonly effects: readonly ApprovedEffect[];
    readonly runs: readonly Run[];
  },
): Promise<void> {
  const { stated, effects, runs } = proposed;
  const manifest = await adapter.normalise({ ...stated, effects: [...effects] });
  const prepared = prepareApproved(approvedOutcome(manifest, adapter.registration, '0'.repeat(32)));
  for (const run of runs) {
    const outcome = classify(prepared, { kind: 'complete', effects: run.effects }, run);
    if (outcome.kind === 'EXACT') continue;
    const shows = adapter.registration.values === 'plain';
    const why =
      outcome.kind === 'DIVERGED'
        ? shows
          ? renderDiff(outcome.diff)
          : ''
        : outcome.gaps.join('; ');
    throw rolledBack(
      `what the rehearsals showed cannot be approved as a whole: ${why}`,
      joinResidue(...runs.map(({ residue }) => residue)),
    );
  }
}

/** The error for a rehearsal that could not begin. */
export function refused(why: string): EffectMatchError<'ERR_EM_REHEARSAL_REFUSED'> {
  return new EffectMatchError('ERR_EM_REHEARSAL_REFUSED', `${why} (nothing was changed)`);
}

/** The action ran. Rows and files are as before, but sequences are not rolled back. */
function rolledBack(
  why: string,
  residue: readonly Residue[] = [],
): EffectMatchError<'ERR_EM_REHEARSAL_REFUSED'> {
  const left = renderResidue(residue).map((line) => `. ${line}`);
  return new EffectMatchError(
    'ERR_EM_REHEARSAL_REFUSED',
    `${why} (rolled back: no data was changed)${left.join('')}`,
  );
}
