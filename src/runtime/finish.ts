import type { CommitLog } from '../contract/adapter.ts';
import { isFault } from '../errors.ts';
import type { StoredGenerated } from '../protocol/generated.ts';
import type { Outcome } from '../protocol/outcome.ts';
import { type Digest, isName } from '../protocol/record.ts';
import { type Residue, storableResidue } from '../protocol/residue.ts';
import {
  assertAssured,
  type FailedTry,
  type Gate,
  type Terminal,
  type TerminalOf,
  terminalRecord,
} from '../protocol/terminal.ts';
import { type AttemptFacts, type Refusal, recordedOutcome } from './attempt.ts';
import { type Deployment, nowInstant } from './deployment.ts';

/**
 * Records the terminal of an execution; after that the caller may release or halt. A verdict that
 * recovery can rebuild from the marker need not be flushed; every other verdict is flushed before
 * it counts.
 */
export async function finish(
  deployment: Deployment,
  terminal: Terminal,
  durability: 'flushed' | 'relaxed' = 'flushed',
  log?: CommitLog,
): Promise<Terminal> {
  const stored = await recordTerminal(deployment, terminal, durability, log);
  deployment.reached('path:terminal-recorded');
  return stored;
}

/**
 * Records a terminal and returns the one in the ledger. If another worker recorded a verdict first,
 * `indeterminate` gives way to it, because knowing less is not a conflict. Two workers that found
 * the approved outcome under one permit agree, even if they saw different values where the approval
 * allows several.
 */
export async function recordTerminal(
  deployment: Deployment,
  terminal: Terminal,
  durability: 'flushed' | 'relaxed',
  log?: CommitLog,
): Promise<Terminal> {
  assertAssured(terminal);
  const sealed = deployment.sealer.seal(terminalRecord, terminal);
  try {
    return await deployment.ledgers.record(sealed, durability, log);
  } catch (error) {
    if (terminal.kind === 'rejected' && isFault(error, 'ERR_EM_CLAIM_LOST'))
      return await recordTerminal(deployment, withoutClaim(terminal), durability, log);
    if (!isFault(error, 'ERR_EM_TERMINAL_CONFLICT')) throw error;
    const stored = await deployment.ledgers.terminal(terminal.occurrence);
    if (stored?.execution !== terminal.execution || !isBorneOut(terminal, stored)) throw error;
    return stored;
  }
}

/**
 * If the ledger's server crashed, an unflushed claim may be lost, with everything that followed
 * from it.
 */
function withoutClaim(terminal: TerminalOf<'rejected'>): TerminalOf<'rejected'> {
  const { claim: _, certificate: __, ...rest } = terminal;
  const lost = "the ledger's server lost the claim in a crash";
  return { ...rest, detail: storable(`${lost}: ${terminal.detail}`) };
}

function isBorneOut(terminal: Terminal, stored: Terminal): boolean {
  if (terminal.kind === 'indeterminate') return true;
  const commits = terminal.kind === 'committed' && stored.kind === 'committed';
  return commits && terminal.claim === stored.claim && terminal.permit === stored.permit;
}

/** The fields that every terminal of an attempt has. */
function terminalBase(deployment: Deployment, attempt: AttemptFacts) {
  return {
    version: 1 as const,
    occurrence: attempt.occurrence,
    execution: attempt.execution,
    lineage: attempt.lineage,
    adapter: attempt.license.adapter,
    task: attempt.license.task,
    approved: attempt.license.approved,
    contract: deployment.contract,
    observer: attempt.admitted.identityDigest,
    recordedAt: nowInstant(deployment),
  };
}

/** What was observed of an attempt before it was rolled back. */
export interface Seen {
  readonly outcome?: Outcome | undefined;
  readonly residue?: readonly Residue[] | undefined;
  /** Earlier tries that other transactions prevented. */
  readonly tries?: readonly FailedTry[];
}

/** Built only if nothing became durable and nothing can later. */
export function rejection(
  deployment: Deployment,
  attempt: AttemptFacts,
  at: Gate,
  refusal: Refusal,
  known: { readonly claim?: Digest; readonly certificate?: Digest } & Seen = {},
): TerminalOf<'rejected'> {
  const residue = storableResidue(known.residue ?? [], attempt.admitted.registration.values);
  return {
    ...terminalBase(deployment, attempt),
    kind: 'rejected',
    at,
    reason: isName(refusal.reason) ? refusal.reason : 'unnamed',
    detail: storable(refusal.detail),
    ...(known.claim && { claim: known.claim }),
    ...(known.certificate && { certificate: known.certificate }),
    ...(known.outcome && { outcome: recordedOutcome(deployment, attempt.admitted, known.outcome) }),
    ...(residue.length > 0 && { residue: [...residue] }),
    ...(known.tries && known.tries.length > 0 && { tries: [...known.tries] }),
  };
}

/** What a consumed permit fixed: the part of a terminal that exists only after the final gate. */
export interface Consumed {
  readonly claim: Digest;
  readonly certificate: Digest;
  readonly permit: Digest;
  readonly consumedAt: string;
}

/**
 * EXACT, claimed at t_c, permit consumed at t_g: the only terminal that releases dependent work.
 */
export function commitment(
  deployment: Deployment,
  attempt: AttemptFacts,
  consumed: Consumed & {
    readonly observed: Digest;
    readonly claimedAt: string;
    readonly reconciled: boolean;
  } & StoredGenerated &
    Pick<Seen, 'residue' | 'tries'>,
): TerminalOf<'committed'> {
  const { claim, certificate, permit, consumedAt, observed, claimedAt, reconciled } = consumed;
  const { generated, generatedOmitted, tries = [] } = consumed;
  const residue = storableResidue(consumed.residue ?? [], attempt.admitted.registration.values);
  return {
    ...terminalBase(deployment, attempt),
    kind: 'committed',
    claim,
    certificate,
    permit,
    consumedAt,
    observed,
    claimedAt,
    reconciled,
    ...(residue.length > 0 && { residue: [...residue] }),
    ...(generated && { generated }),
    ...(generatedOmitted && { generatedOmitted }),
    ...(tries.length > 0 && { tries: [...tries] }),
    ...matchOf(attempt),
  };
}

/** Durable, completely observed, and different from what was approved. */
export function divergence(
  deployment: Deployment,
  attempt: AttemptFacts,
  consumed: Consumed,
  outcome: Outcome,
): TerminalOf<'diverged'> {
  const { claim, certificate, permit, consumedAt } = consumed;
  return {
    ...terminalBase(deployment, attempt),
    kind: 'diverged',
    claim,
    certificate,
    permit,
    consumedAt,
    outcome: recordedOutcome(deployment, attempt.admitted, outcome),
    ...matchOf(attempt),
  };
}

/** Marks a verdict that covers only registered fields. */
function matchOf({ admitted }: AttemptFacts): { readonly match?: 'registered-fields' } {
  const { profile } = admitted.registration;
  return profile === 'registered-fields' ? { match: profile } : {};
}

/**
 * The change may be durable, but its outcome is not established. Without a permit, nothing was
 * promoted or sent under this claim; what is unknown is what else holds the occurrence.
 */
export function uncertainty(
  deployment: Deployment,
  attempt: AttemptFacts,
  known: Pick<Consumed, 'claim'> & Partial<Consumed>,
  gap: string,
): TerminalOf<'indeterminate'> {
  const { claim, certificate, permit, consumedAt } = known;
  return {
    ...terminalBase(deployment, attempt),
    kind: 'indeterminate',
    claim,
    ...(certificate && { certificate }),
    ...(permit && consumedAt && { permit, consumedAt }),
    gap: storable(gap) || 'no reason was given',
  };
}

/** Makes a message fit for a record: short and well-formed, even if it was cut. */
function storable(text: string): string {
  return text.slice(0, 4000).toWellFormed();
}
