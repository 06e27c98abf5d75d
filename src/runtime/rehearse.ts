import type { Evidence, PromotableAdapter } from '../contract/adapter.ts';
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
import { establish } from '../protocol/observation.ts';
import { classify } from '../protocol/outcome.ts';
import type { Digest, ExecutionId, OccurrenceId } from '../protocol/record.ts';
import { explainRehearsals } from '../protocol/rehearsal.ts';
import { renderDiff } from '../protocol/render.ts';
import { stateReads } from '../protocol/state.ts';
import { certify, describeOutlets } from './boundary.ts';
import { type AdmittedPromotable, adapterNamed, type Deployment, isPromotable, nowInstant } from './deployment.ts';
import { prepare } from './prepare.ts';

/** What to rehearse, and what the approval shall depend on besides. */
export interface PlanRequest extends Omit<ManifestDraft, 'effects'> {
  readonly action: unknown;
  readonly continuations?: readonly string[];
  /** The application's own revision of the task state; the execution must present the same. */
  readonly revision?: string;
}

/**
 * Plan and approve: runs the action twice in a certified stage that is discarded each time, and proposes what both
 * runs showed, with `generated` and `now` where the backend's evidence explains a value. Whoever signs it signs exactly
 * that, for exactly this action; nothing is ever signed here.
 */
export async function rehearse(deployment: Deployment, request: PlanRequest): Promise<Proposal> {
  const { action: untrustedAction, continuations = [], revision, ...draft } = request;
  const stated = draftManifest({ ...draft, effects: [] });
  const admitted = adapterNamed(deployment, stated.adapter);
  if (!isPromotable(admitted)) {
    throw refused(`adapter "${stated.adapter}" cannot hold a change back, so nothing can be rehearsed on it`);
  }
  const { adapter } = admitted;
  const action = adapter.parseAction(untrustedAction);
  const reads = stateReads(await adapter.normalise(stated));

  const first = await rehearseOnce(deployment, admitted, { stated, action, reads });
  const second = await rehearseOnce(deployment, admitted, { stated, action, reads });
  if (canonical(first.readings) !== canonical(second.readings)) {
    throw refused('the declared state changed between the two rehearsals; plan again');
  }
  const runs = [first, second].map(({ effects, evidence }) => ({ effects, ...evidence })) as [Run, Run];
  const explained = explainRehearsals(...runs, adapter.registration);
  if (explained.kind === 'unexplained') {
    throw refused(`two rehearsals of the same action differ: ${explained.differences.join('; ')}`);
  }
  const effects = explained.effects;
  await verifyExplanation(adapter, { stated, effects, runs });
  return prepare(
    deployment,
    {
      ...draft,
      effects,
      action: untrustedAction,
      continuations,
      revision,
    },
    { source: 'rehearsed', readings: first.readings },
  );
}

type Run = Evidence & { readonly effects: readonly Effect[] };

interface Rehearsed {
  readonly effects: readonly Effect[];
  readonly evidence: Evidence;
  /** Declared state beneath the candidate: what the effects were made from. */
  readonly readings: readonly StateReading[];
}

/** One rehearsal. The stage never leaves this function, and `discard` is the only way in which it can end here. */
async function rehearseOnce(
  deployment: Deployment,
  admitted: AdmittedPromotable,
  what: { readonly stated: Manifest; readonly action: unknown; readonly reads: readonly StateRead[] },
): Promise<Rehearsed> {
  const { adapter } = admitted;
  const claim = mintRehearsalClaim(deployment, admitted, what.stated);
  const boundary = await certify(deployment, admitted, claim);
  if (boundary.kind === 'refused') {
    throw refused(`the boundary cannot be certified: ${describeOutlets(boundary.outlets)}`);
  }
  const staged = await adapter.stage(claim, boundary.certificate, what.action, what.reads);
  if (staged.kind === 'failed') throw refused(`the action failed (${staged.reason}): ${staged.detail}`);
  try {
    const evidence = await staged.stage.observe();
    const observation = establish(evidence, adapter.registration, adapter.channels);
    if (observation.kind === 'incomplete') {
      throw refused(`what the action does could not be established: ${observation.gaps.join('; ')}`);
    }
    return { effects: observation.effects, evidence, readings: await staged.stage.read(what.reads) };
  } finally {
    await staged.stage.discard();
  }
}

const NOTHING = '0'.repeat(64) as Digest;

/**
 * A claim that no ledger knows: its occurrence is drawn and not derived from any license, its digests are zero, and its
 * seal opens with no key. So nothing that a stage opened with it could ever promote, recover or release.
 */
function mintRehearsalClaim(deployment: Deployment, admitted: AdmittedPromotable, stated: Manifest): Claim {
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
    task: stated.task,
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

/** The explanation only proposes: the comparison that will judge the execution has to accept both rehearsals. */
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
    const why = outcome.kind === 'DIVERGED' ? (shows ? renderDiff(outcome.diff) : '') : outcome.gaps.join('; ');
    throw refused(`what the rehearsals showed cannot be approved as a whole: ${why}`);
  }
}

function refused(why: string): EffectMatchError<'ERR_EM_REHEARSAL_REFUSED'> {
  return new EffectMatchError('ERR_EM_REHEARSAL_REFUSED', `${why} (nothing was changed)`);
}
