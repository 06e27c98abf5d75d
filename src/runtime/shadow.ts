import { digestRecord, occurrencesOf } from '../crypto/digest.ts';
import { EffectMatchError } from '../errors.ts';
import { approvedOutcome } from '../protocol/approve.ts';
import { draftManifest, type ManifestDraft } from '../protocol/draft.ts';
import type { Effect, StateReading } from '../protocol/effect.ts';
import { type Approved, approvedRecord } from '../protocol/manifest.ts';
import { prepareApproved } from '../protocol/match.ts';
import type { Digest, OccurrenceId } from '../protocol/record.ts';
import { type Residue, storableResidue } from '../protocol/residue.ts';
import { type Basis, type Shadow, shadowRecord } from '../protocol/shadow.ts';
import { stateReads } from '../protocol/state.ts';
import {
  type Attempt,
  observedDigest,
  type Refusal,
  readAction,
  recordedOutcome,
  storableFault,
} from './attempt.ts';
import { checkPlan, checkRequired, checkState } from './authority.ts';
import { asOpenBoundary } from './boundary.ts';
import { type Examined, examineLicense, examineProposal } from './check.ts';
import {
  type Admitted,
  type AdmittedPromotable,
  adapterNamed,
  type Deployment,
  isPromotable,
  nowInstant,
} from './deployment.ts';
import type { ExecuteOptions } from './execute.ts';
import { type RehearsalResult, rehearseOnce } from './rehearse.ts';

/** An action that has no approval yet. Without `effects` there is nothing to compare with. */
export interface ShadowDraft extends Omit<ManifestDraft, 'effects'> {
  readonly effects?: ManifestDraft['effects'];
}

/** What would have been decided, as recorded, and what the rehearsal showed. */
export interface Shadowed {
  readonly record: Shadow;
  /**
   * The observed changes, even if they differ from the approval; undefined if nothing could be
   * observed.
   */
  readonly seen: readonly Effect[] | undefined;
  /** What the rollback could not undo. */
  readonly residue: readonly Residue[];
}

/**
 * Shadow mode: rehearses the action once, always discards it, compares what it did with an
 * approval, and records what would have been decided, in a separate kind of record. The application
 * writes on its own path, before or after, whatever this says. No license is spent, and nothing
 * here can become durable in the backend.
 *
 * If the backend fails, the result is `unknown`, so that shadow mode cannot stop the application it
 * watches. Only mistakes of the caller and a store that cannot record are thrown.
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
  const { seen, would, residue = [] } = judged;
  const storable = storableResidue(residue, admitted.registration.values);
  const record = shadowRecord.parse({
    version: 1,
    occurrence: `occ_${deployment.ids.hex(20)}` as OccurrenceId,
    basis,
    adapter: admitted.name,
    task,
    ...(license !== undefined && { license }),
    contract: deployment.contract,
    observer: admitted.identityDigest,
    recordedAt: nowInstant(deployment),
    ...(storable.length > 0 && { residue: storable }),
    ...would,
  });
  const sealed = deployment.sealer.seal(shadowRecord, record);
  await deployment.ledgers.recordShadow(sealed);
  return { record: sealed.record, seen, residue };
}

/** What a shadow compares the action with. Only `outcome` needs the backend. */
interface Comparison {
  /** `none`: nothing is approved, and the outcome only declares which state to read. */
  readonly basis: Basis;
  readonly admitted: Admitted;
  readonly task: string;
  /** Digest of the license, if there is one. */
  readonly license?: Digest;
  outcome(): Promise<Approved>;
  checkAuthority(action: unknown): Promise<Refusal | undefined>;
  checkState(outcome: Approved, readings: readonly StateReading[]): Refusal | undefined;
}

/**
 * Accepts a signed license, a proposal or a draft as an object; the first two may also be JSON
 * text.
 */
function openComparison(
  deployment: Deployment,
  approval: unknown,
  revision: string | undefined,
): Comparison {
  const fields = fieldsOf(approval);
  if ('draft' in fields && !('signature' in fields))
    return fromExamined('proposal', examineProposal(deployment, approval), revision);
  if ('signature' in fields || typeof approval === 'string')
    return fromLicense(deployment, approval, revision);
  return fromDraft(deployment, fields as unknown as ShadowDraft);
}

/** Used only to distinguish the kinds: each is then parsed strictly by its own reader. */
function fieldsOf(approval: unknown): object {
  if (typeof approval === 'object' && approval !== null) return approval;
  if (typeof approval !== 'string') {
    throw new EffectMatchError(
      'ERR_EM_USAGE',
      'a shadow needs a license, a proposal or a draft to compare with',
    );
  }
  try {
    const parsed: unknown = JSON.parse(approval);
    return typeof parsed === 'object' && parsed !== null ? parsed : {};
  } catch {
    return {};
  }
}

function fromLicense(
  deployment: Deployment,
  approval: unknown,
  revision: string | undefined,
): Comparison {
  const examined = examineLicense(deployment, approval);
  return {
    ...fromExamined('license', examined, revision),
    license: examined.lineage,
    checkAuthority: async (action) =>
      examined.checkTerms(action) ?? (await checkUnspent(deployment, examined)),
  };
}

function fromExamined(basis: Basis, examined: Examined, revision: string | undefined): Comparison {
  const { admitted, signed, checkTerms } = examined;
  return {
    basis,
    admitted,
    task: signed.license.task,
    outcome: async () => signed.approved,
    checkAuthority: async (action) => checkTerms(action),
    checkState: (_, readings) => checkState(examined, readings, revision),
  };
}

/** Checks whether a claim would be refused, by reading only: nothing is claimed. */
async function checkUnspent(
  deployment: Deployment,
  attempt: Attempt,
): Promise<Refusal | undefined> {
  const { license, lineage } = attempt;
  const superseded = checkPlan(attempt, await deployment.ledgers.standing(license.task, attempt));
  if (superseded !== undefined) return superseded;
  for (const occurrence of occurrencesOf(license, lineage))
    if ((await deployment.ledgers.holder(occurrence)) === undefined) return undefined;
  return { reason: 'spent', detail: 'every execution that this license buys has been claimed' };
}

/**
 * Normalises a draft as for an approval, but announces no plan: it must not supersede one in use.
 */
function fromDraft(deployment: Deployment, draft: ShadowDraft): Comparison {
  const hasEffects = draft.effects !== undefined;
  const stated = draftManifest({ ...draft, effects: hasEffects ? draft.effects : [] });
  const admitted = adapterNamed(deployment, stated.adapter);
  return {
    basis: hasEffects ? 'manifest' : 'none',
    admitted,
    task: stated.task,
    async outcome() {
      const manifest = await admitted.adapter.normalise(stated);
      return approvedOutcome(manifest, admitted.registration, deployment.ids.hex(16));
    },
    checkAuthority: async () => undefined,
    checkState: checkRequired,
  };
}

interface Judged {
  readonly would: object;
  readonly residue?: readonly Residue[] | undefined;
  readonly seen?: readonly Effect[] | undefined;
}

/** Checks the gates in the order of the execution path, as far as possible without passing any. */
async function judge(
  deployment: Deployment,
  admitted: AdmittedPromotable,
  comparison: Comparison,
  untrustedAction: unknown,
): Promise<Judged> {
  const parsed = readAction(admitted, untrustedAction);
  if (parsed.kind === 'refused') return rejected('action', parsed);
  const { action } = parsed;
  const outcome = await comparison.outcome().catch(asOpenBoundary);
  if ('reason' in outcome) return rejected('boundary', outcome);
  const isApproved = comparison.basis !== 'none';
  const approved = isApproved ? { approved: digestRecord(approvedRecord, outcome) } : {};
  const stale = await comparison.checkAuthority(action);
  if (stale !== undefined) return rejected('authority', stale, approved);

  const { settings } = outcome;
  const what = { task: comparison.task, action, reads: stateReads(outcome), settings };
  const rehearsal = await rehearseOnce(deployment, admitted, what);
  if (rehearsal.kind === 'uncertified') {
    const refusal = { reason: 'outlet-unclassified', detail: rehearsal.detail };
    return rejected('boundary', refusal, approved);
  }
  if (rehearsal.kind === 'failed')
    return { ...rejected('stage', rehearsal, approved), residue: rehearsal.residue };

  const { observation, evidence, readings } = rehearsal;
  const seen = observation.kind === 'complete' ? observation.effects : undefined;
  const moved = comparison.checkState(outcome, readings);
  const would =
    moved !== undefined
      ? rejected('authority', moved, approved)
      : isApproved
        ? compare(deployment, admitted, rehearsal, outcome)
        : propose(deployment, admitted, rehearsal);
  return { ...would, seen, residue: evidence.residue };
}

type Observed = Extract<RehearsalResult, { kind: 'observed' }>;

function compare(
  deployment: Deployment,
  admitted: AdmittedPromotable,
  { observation, evidence }: Observed,
  approval: Approved,
): Judged {
  const approved = digestRecord(approvedRecord, approval);
  const found = deployment.classify(prepareApproved(approval), observation, evidence);
  if (found.kind === 'EXACT') {
    const observed = observedDigest(deployment, admitted, found.effects);
    return { would: { would: 'commit', observed, approved } };
  }
  const outcome = recordedOutcome(deployment, admitted, found);
  if (found.kind === 'INDETERMINATE') return incomplete(found.gaps, { outcome, approved });
  const detail = 'the outcome that was seen is not the approved one';
  return rejected('comparison', { reason: 'diverged', detail }, { outcome, approved });
}

/** Without an approval, proposes what was observed. */
function propose(
  deployment: Deployment,
  admitted: AdmittedPromotable,
  { observation }: Observed,
): Judged {
  if (observation.kind === 'incomplete') return incomplete(observation.gaps);
  const { effects } = observation;
  const counts = Map.groupBy(effects, ({ op, target }) => `${op} ${target}`);
  const seen = [...counts.values()].flatMap((same) =>
    same.slice(0, 1).map(({ target, op }) => ({ target, op, count: same.length })),
  );
  const observed = observedDigest(deployment, admitted, effects);
  return { would: { would: 'propose', observed, seen } };
}

function incomplete(gaps: readonly string[], known: object = {}): Judged {
  const detail = `the outcome could not be established: ${gaps.join('; ')}`;
  return rejected('comparison', { reason: 'incomplete', detail }, known);
}

function rejected(at: string, { reason, detail }: Refusal, known: object = {}): Judged {
  const stored = detail.slice(0, 4000).toWellFormed();
  return { would: { would: 'reject', at, reason, detail: stored, ...known } };
}

/**
 * Records faults of the backend or the approval; rethrows broken invariants and unexpected errors.
 */
function asUnknown(admitted: AdmittedPromotable, error: unknown): Judged {
  if (!(error instanceof EffectMatchError) || error.code === 'ERR_EM_INVARIANT') throw error;
  const detail = storableFault(admitted, error);
  return { would: { would: 'unknown', code: error.code, detail } };
}
