import type { Stage, Staged, StatementResult } from '../contract/adapter.ts';
import type { ConsumedPermit } from '../contract/proof.ts';
import { invariant, isFault } from '../errors.ts';
import { type StoredGenerated, storableGenerated } from '../protocol/generated.ts';
import { exactEffects, type Prepared, prepareApproved } from '../protocol/match.ts';
import { establish } from '../protocol/observation.ts';
import { classify, type Outcome } from '../protocol/outcome.ts';
import type { Digest } from '../protocol/record.ts';
import type { Residue } from '../protocol/residue.ts';
import type { Gate, Terminal } from '../protocol/terminal.ts';
import {
  faultOf,
  observedDigest,
  type Refusal,
  type Refused,
  refuse,
  storableFault,
} from './attempt.ts';
import type { AdmittedPromotable, Deployment } from './deployment.ts';
import { commitment, finish, rejection, type Seen, uncertainty } from './finish.ts';
import { type Established, passStageGate, type TaskHost } from './gate.ts';
import type { Tries } from './restage.ts';
import { settle } from './settle.ts';

/** The recorded end of an execution, with the rows its statements returned if it committed. */
export type Executed = Terminal & {
  /** One entry per statement; absent if none returns rows. Not recorded. */
  readonly results?: readonly StatementResult[];
};

/** One attempt and its progress. */
interface Run {
  readonly deployment: Deployment;
  readonly admitted: AdmittedPromotable;
  readonly established: Established;
  /** The next gate. */
  at: Gate;
  /** The held candidate, if any. */
  stage?: Stage;
  /** What was observed of the attempt. */
  seen: Seen;
  readonly tries: Tries;
}

/** Other transactions prevented the stage. It may be tried again. */
interface Prevented {
  readonly kind: 'prevented';
}

/** A candidate that passed the final gate, with the permit to promote it. */
interface Passed {
  readonly kind: 'passed';
  readonly stage: Stage;
  readonly permit: ConsumedPermit;
  readonly observed: Digest;
  readonly generated: StoredGenerated;
}

/**
 * Algorithm 1, promotable part: inspect the candidate before it is durable, then promote exactly
 * that one. A fault before the promotion is a rejection like any other, once nothing of the
 * candidate remains or its marker is void.
 */
export async function executePromotable(
  deployment: Deployment,
  admitted: AdmittedPromotable,
  established: Established,
  tries: Tries,
): Promise<Executed | Prevented> {
  const run: Run = { deployment, admitted, established, at: 'stage', seen: {}, tries };
  try {
    const inspected = await inspect(run).catch((error: unknown) => ({
      ...faultOf(admitted, error),
      kind: 'faulted' as const,
    }));
    if (inspected.kind === 'prevented') return inspected;
    if (inspected.kind !== 'passed') return await endUnpromoted(run, inspected);
    const terminal = await promote(run, inspected);
    const { results } = inspected.stage;
    // Rows are returned only after the commit.
    return terminal.kind === 'committed' && results ? { ...terminal, results } : terminal;
  } finally {
    // Only a safety net: the stage was already discarded if it matters that nothing remains. If
    // this fails, the recorded verdict is true anyway.
    await Promise.try(() => run.stage?.[Symbol.asyncDispose]()).catch(() => {});
  }
}

/** Stage, observe, compare, final gate. If this throws, nothing was promoted. */
async function inspect(run: Run): Promise<Passed | Refused | Prevented> {
  const { deployment, admitted, established, tries } = run;
  const { attempt, claim, certificate, action } = established;
  const { approved } = attempt.signed;

  run.seen = { residue: tries.residue([]) };
  const stale = tries.failed.length > 0 ? await tries.findStale(established) : undefined;
  if (stale !== undefined) return stale;
  const { settings } = approved;
  const staged =
    established.host === undefined
      ? await admitted.adapter.stage(claim, certificate, action, attempt.reads, settings)
      : await serveTask(run, established.host);
  if (staged.kind === 'refused') return staged;
  if (staged.kind === 'failed') {
    if (await tries.waitAfter(staged)) return { kind: 'prevented' };
    run.seen = { residue: tries.residue(staged.residue) };
    return refuse(staged.reason, staged.detail);
  }
  const { stage } = staged;
  run.stage = stage;
  deployment.reached('path:staged');

  run.at = 'comparison';
  const evidence = await stage.observe();
  const observation = establish(evidence, admitted.registration, admitted.frame.channels);
  const prepared = prepareApproved(approved);
  const outcome = deployment.classify(prepared, observation, evidence);
  run.seen = { outcome, residue: tries.residue(evidence.residue) };
  deployment.reached('path:observed');
  if (outcome.kind !== 'EXACT') return explain(outcome);

  const observed = digestExact(run, prepared, outcome);
  const bound = { candidate: evidence.candidate, evidence: evidence.evidence, observed };
  deployment.reached('path:permit-bound');

  run.at = 'final-gate';
  const generated = storableGenerated(outcome.generated, admitted.registration.values);
  const gate = await passStageGate(deployment, established, stage, bound, generated);
  if (gate.kind === 'refused') return gate;
  deployment.reached('path:gate-passed');
  return { kind: 'passed', stage, permit: gate.permit, observed, generated };
}

/**
 * Opens a candidate and lets the host run the calls of a task on it. Stores the stage at once, so
 * that it is ended whatever happens.
 */
async function serveTask(run: Run, host: TaskHost): Promise<Staged | Refused> {
  const { admitted, established } = run;
  const { attempt, claim, certificate, survey } = established;
  const { reads, signed } = attempt;
  const { settings = {} } = signed.approved;
  const { deadlineMs } = host;
  const held = await admitted.adapter.hold?.(claim, certificate, { reads, settings, deadlineMs });
  invariant(held !== undefined, 'an adapter that a task was admitted for takes calls');
  if (held.kind === 'failed') return held;
  const { stage } = held;
  run.stage = stage;
  const refusal = await host.serve(stage, attempt, survey);
  if (refusal !== undefined) return refuse(refusal.reason, refusal.detail);
  const completed = await stage.complete();
  return completed.kind === 'failed' ? refuse(completed.reason, completed.detail) : held;
}

/**
 * Digest of an EXACT outcome. If A states one exact change per row, only one outcome can match, so
 * its digest is computed from A without assembling E.
 */
function digestExact({ deployment, admitted }: Run, prepared: Prepared, outcome: Exact): Digest {
  const isKnown = prepared.isSingle && deployment.classify === classify;
  const effects = isKnown ? exactEffects(prepared) : outcome.effects;
  return observedDigest(deployment, admitted, effects);
}

type Exact = Extract<Outcome, { kind: 'EXACT' }>;

function explain(outcome: Exclude<Outcome, Exact>): Refused {
  if (outcome.kind === 'INDETERMINATE')
    return refuse('incomplete', `the outcome could not be established: ${outcome.gaps.join('; ')}`);
  const detail = 'the observed outcome is not the approved one; the candidate was discarded';
  return refuse('diverged', detail);
}

/**
 * From here on the candidate may be durable, so `rejected` needs proof that nothing became durable.
 */
async function promote(run: Run, passed: Passed): Promise<Terminal> {
  const { stage, permit } = passed;
  const promotion = await stage
    .promote(permit)
    .catch((cause: unknown) => ({ kind: 'unknown' as const, cause }));
  run.deployment.reached('path:promoted');
  if (promotion.kind === 'confirmed') return await commit(run, passed, false);

  const { isGone } = await tryDiscard(stage);
  if (promotion.kind === 'refused' && isGone) return await reject(run, 'promotion', promotion);
  const cause =
    promotion.kind === 'refused' ? promotion.detail : storableFault(run.admitted, promotion.cause);
  return await settleUnknown(run, passed, cause);
}

/** A lost reply to COMMIT is resolved by inserting the void marker, never by reading. */
async function settleUnknown(run: Run, passed: Passed, cause: string): Promise<Terminal> {
  const settled = await trySettle(run);
  switch (settled.kind) {
    case 'committed':
      return await commit(run, passed, true);
    case 'void':
      return await reject(
        run,
        'promotion',
        refuse('commit-failed', `nothing became durable: ${cause}`),
      );
    case 'elsewhere':
      return await reject(run, 'promotion', refuse('decided-elsewhere', settled.why));
    default: {
      const gap = `the commit's result is unknown (${cause}) and could not be settled: ${settled.why}`;
      return await leaveOpen(run, 'promotion', consumed(run, passed), gap);
    }
  }
}

/**
 * Nothing was promoted. The candidate is ended before the rejection is recorded, so that the record
 * never precedes the rollback.
 */
async function endUnpromoted(
  run: Run,
  refusal: Refused | (Refusal & { readonly kind: 'faulted' }),
): Promise<Terminal> {
  const { stage, at, deployment } = run;
  if (stage === undefined && refusal.kind === 'refused') return await reject(run, at, refusal);
  const discarded = stage && (await tryDiscard(stage));
  if (discarded?.isGone === true) {
    deployment.reached('path:discarded');
    if (discarded.residue !== undefined)
      run.seen = { ...run.seen, residue: run.tries.residue(discarded.residue) };
    return await reject(run, at, refusal);
  }
  const settled = await trySettle(run);
  if (settled.kind === 'void' || settled.kind === 'elsewhere')
    return await reject(run, at, refusal);
  const why = 'why' in settled ? settled.why : 'the backend says that it was committed';
  const gap = `it ended before anything was promoted (${refusal.detail}), and what it held could not be ended: ${why}`;
  return await leaveOpen(run, at, known(run), gap);
}

/** The result of discarding a candidate. */
interface Discarded {
  readonly isGone: boolean;
  readonly residue?: readonly Residue[] | undefined;
}

/**
 * Whether nothing of the candidate remains. A discard that throws proves nothing, so it is tried a
 * second time.
 */
async function tryDiscard(stage: Stage): Promise<Discarded> {
  const discard = async (): Promise<Discarded> => {
    try {
      const residue = await stage.discard();
      return { isGone: true, residue: residue ?? undefined };
    } catch {
      return { isGone: false };
    }
  };
  const first = await discard();
  return first.isGone ? first : await discard();
}

/** The void marker decides. A backend that cannot be reached decides nothing. */
function trySettle({ deployment, admitted, established }: Run) {
  return settle(deployment, admitted, established.claim.sealed).catch((error: unknown) => ({
    kind: 'unreachable' as const,
    why: storableFault(admitted, error),
  }));
}

function known({ established }: Run) {
  return { claim: established.claim.digest, certificate: established.certificate.digest };
}

function consumed(run: Run, { permit }: Passed) {
  return { ...known(run), permit: permit.digest, consumedAt: permit.record.consumedAt };
}

function reject(run: Run, at: Gate, refusal: Refusal): Promise<Terminal> {
  const { deployment, established, seen, tries } = run;
  const facts = { ...known(run), ...seen, tries: tries.failed };
  return finish(deployment, rejection(deployment, established.attempt, at, refusal, facts));
}

function commit(run: Run, passed: Passed, reconciled: boolean): Promise<Terminal> {
  const { deployment, established, seen, tries } = run;
  const { claimedAt } = established.claim.sealed.record;
  const { observed, generated } = passed;
  const facts = {
    ...consumed(run, passed),
    ...generated,
    observed,
    claimedAt,
    reconciled,
    residue: seen.residue,
    tries: tries.failed,
  };
  const terminal = commitment(deployment, established.attempt, facts);
  return finish(deployment, terminal, 'relaxed', run.admitted.adapter.commitLog?.());
}

/**
 * If the ledger's server lost the claim in a crash, it is up again, and the backend with it, so
 * settle again.
 */
async function leaveOpen(
  run: Run,
  at: Gate,
  facts: Parameters<typeof uncertainty>[2],
  gap: string,
): Promise<Terminal> {
  const { deployment, established } = run;
  const terminal = uncertainty(deployment, established.attempt, facts, gap);
  try {
    return await finish(deployment, terminal);
  } catch (error) {
    if (!isFault(error, 'ERR_EM_CLAIM_LOST')) throw error;
    const settled = await trySettle(run);
    if (settled.kind === 'elsewhere')
      return await reject(run, at, refuse('decided-elsewhere', settled.why));
    if (settled.kind !== 'void') throw error;
    return await reject(run, at, refuse('claim-lost', `nothing became durable: ${gap}`));
  }
}
