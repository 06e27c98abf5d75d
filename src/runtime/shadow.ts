import { digestRecord } from '../crypto/digest.ts';
import { EffectMatchError } from '../errors.ts';
import type { Effect } from '../protocol/effect.ts';
import { approvedRecord } from '../protocol/manifest.ts';
import { prepareApproved } from '../protocol/match.ts';
import type { OccurrenceId } from '../protocol/record.ts';
import { type Residue, storableResidue } from '../protocol/residue.ts';
import { type Shadow, shadowRecord } from '../protocol/shadow.ts';
import { stateReads } from '../protocol/state.ts';
import { readAction } from './action.ts';
import { observedDigest, recordedOutcome, storableFault } from './attempt.ts';
import type { Refusal } from './authority.ts';
import { asOpenBoundary } from './boundary.ts';
import {
  type AdmittedPromotable,
  type Deployment,
  isPromotable,
  nowInstant,
} from './deployment.ts';
import type { ExecuteOptions } from './execute.ts';
import { type Glimpse, rehearseOnce } from './rehearse.ts';
import { type Comparison, openComparison, type ShadowDraft } from './shadow-basis.ts';

export type { ShadowDraft };

/** What would have been decided, as it was recorded, and what the rehearsal showed. */
export interface Shadowed {
  readonly record: Shadow;
  /**
   * The changes that were seen, also where they are not what was approved; undefined where nothing
   * could be seen.
   */
  readonly seen: readonly Effect[] | undefined;
  /** What the rollback did not take back. */
  readonly residue: readonly Residue[];
}

/**
 * Shadow mode: rehearses the action once, always discards it, compares what was seen with an
 * approval, and records what would have been decided, in a kind of its own. The application writes
 * by its own path, before or after, whatever this says. No license is spent, and there is no way
 * from here to anything durable in the backend.
 *
 * A backend that fails is an answer here too (`unknown`), so that adopting this cannot stop what it
 * only watches. Thrown are mistakes of the caller, and a store that cannot record.
 */
export async function shadow(
  deployment: Deployment,
  approval: unknown,
  untrustedAction: unknown,
  options: ExecuteOptions = {},
): Promise<Shadowed> {
  const comparison = openComparison(deployment, approval, options.revision);
  const { admitted, basis, task, license } = comparison;
  if (!isPromotable(admitted)) {
    throw new EffectMatchError(
      'ERR_EM_SHADOW_REFUSED',
      `adapter "${admitted.name}" cannot hold a change back, so nothing can be rehearsed beside production; nothing was sent`,
    );
  }
  const judged = await judge(deployment, admitted, comparison, untrustedAction).catch(
    (error: unknown) => asUnknown(admitted, error),
  );
  const residue = storableResidue(judged.residue ?? [], admitted.registration.values);
  const base = {
    version: 1 as const,
    occurrence: `occ_${deployment.ids.hex(20)}` as OccurrenceId,
    basis,
    adapter: admitted.name,
    task,
    ...(license !== undefined && { license }),
    contract: deployment.contract,
    observer: admitted.identityDigest,
    recordedAt: nowInstant(deployment),
    ...(residue.length > 0 && { residue }),
  };
  const sealed = deployment.sealer.seal(
    shadowRecord,
    shadowRecord.parse({ ...base, ...judged.would }),
  );
  await deployment.ledgers.recordShadow(sealed);
  return { record: sealed.record, seen: judged.seen, residue: judged.residue ?? [] };
}

interface Judged {
  readonly would: object;
  readonly residue?: readonly Residue[] | undefined;
  readonly seen: readonly Effect[] | undefined;
}

/**
 * The gates in the order of the execution path, as far as they can be looked at without passing
 * any.
 */
async function judge(
  deployment: Deployment,
  admitted: AdmittedPromotable,
  comparison: Comparison,
  untrustedAction: unknown,
): Promise<Judged> {
  const parsed = readAction(admitted, untrustedAction);
  if (parsed.kind === 'refused') return rejected('action', parsed.refusal);
  const { action } = parsed;
  const approval = await comparison.resolve().catch(asOpenBoundary);
  if ('reason' in approval) return rejected('boundary', approval);
  const approved = approval.approved && {
    approved: digestRecord(approvedRecord, approval.approved),
  };
  const stale = await approval.checkAuthority(action);
  if (stale !== undefined) return rejected('authority', stale, approved);

  const reads = stateReads(approval.declared);
  const glimpse = await rehearseOnce(deployment, admitted, {
    task: comparison.task,
    action,
    reads,
  });
  if (glimpse.kind === 'uncertified') {
    return rejected(
      'boundary',
      { reason: 'outlet-unclassified', detail: glimpse.detail },
      approved,
    );
  }
  if (glimpse.kind === 'failed')
    return { ...rejected('stage', glimpse, approved), residue: glimpse.residue };
  const { residue } = glimpse.evidence;
  const moved = approval.checkState(glimpse.readings);
  if (moved !== undefined)
    return { ...rejected('authority', moved, approved, seenIn(glimpse)), residue };
  const judged =
    approval.approved === undefined
      ? propose(deployment, admitted, glimpse)
      : compare(deployment, admitted, glimpse, approval.approved);
  return { ...judged, residue };
}

type Seen = Extract<Glimpse, { kind: 'seen' }>;
type ApprovedOutcome = ReturnType<typeof approvedRecord.parse>;

function seenIn({ observation }: Seen): readonly Effect[] | undefined {
  return observation.kind === 'complete' ? observation.effects : undefined;
}

function compare(
  deployment: Deployment,
  admitted: AdmittedPromotable,
  glimpse: Seen,
  outcome: ApprovedOutcome,
): Judged {
  const approved = { approved: digestRecord(approvedRecord, outcome) };
  const found = deployment.classify(
    prepareApproved(outcome),
    glimpse.observation,
    glimpse.evidence,
  );
  const seen = seenIn(glimpse);
  if (found.kind === 'EXACT') {
    const observed = observedDigest(deployment, admitted, found.effects);
    return { would: { would: 'commit', observed, ...approved }, seen };
  }
  const refusal =
    found.kind === 'DIVERGED'
      ? { reason: 'diverged', detail: 'the outcome that was seen is not the approved one' }
      : {
          reason: 'incomplete',
          detail: `the outcome could not be established: ${found.gaps.join('; ')}`,
        };
  const recorded = { outcome: recordedOutcome(deployment, admitted, found), ...approved };
  return rejected('comparison', refusal, recorded, seen);
}

/** Nobody approved anything yet: what was seen is what there would be to approve. */
function propose(deployment: Deployment, admitted: AdmittedPromotable, glimpse: Seen): Judged {
  const { observation } = glimpse;
  if (observation.kind === 'incomplete') {
    const detail = `the outcome could not be established: ${observation.gaps.join('; ')}`;
    return rejected('comparison', { reason: 'incomplete', detail });
  }
  const { effects } = observation;
  const counts = new Map<string, { target: string; op: Effect['op']; count: number }>();
  for (const { target, op } of effects) {
    const entry = counts.get(`${op} ${target}`) ?? { target, op, count: 0 };
    counts.set(`${op} ${target}`, { ...entry, count: entry.count + 1 });
  }
  const observed = observedDigest(deployment, admitted, effects);
  return { would: { would: 'propose', observed, seen: [...counts.values()] }, seen: effects };
}

function rejected(
  at: string,
  refusal: Refusal,
  known: object = {},
  seen?: readonly Effect[],
): Judged {
  const detail = refusal.detail.slice(0, 4000).toWellFormed();
  return { would: { would: 'reject', at, reason: refusal.reason, detail, ...known }, seen };
}

/**
 * A fault of the backend or the approval is recorded; a broken invariant and what nobody expected
 * stay loud.
 */
function asUnknown(admitted: AdmittedPromotable, error: unknown): Judged {
  if (!(error instanceof EffectMatchError) || error.code === 'ERR_EM_INVARIANT') throw error;
  return {
    would: { would: 'unknown', code: error.code, detail: storableFault(admitted, error) },
    seen: undefined,
  };
}
