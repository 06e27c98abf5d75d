import type { ClaimRequest, ClaimResult, LedgerContext, PermitState } from '../contract/ledgers.ts';
import type { Sealed } from '../contract/seal.ts';
import { EffectMatchError, invariant } from '../errors.ts';
import { type Binding, bindingRecord, type ClaimRecord, claimRecord } from '../protocol/binding.ts';
import type { Acknowledgement } from '../protocol/continuation.ts';
import { type License, licenseRecord } from '../protocol/license.ts';
import { type PermitRecord, permitRecord } from '../protocol/permit.ts';
import type { Digest, ExecutionId, OccurrenceId } from '../protocol/record.ts';
import type { Resolution } from '../protocol/resolution.ts';
import { agrees, type Terminal } from '../protocol/terminal.ts';
import { settlementSlot, terminalSlot } from './journal.ts';

/** A claim request whose parts fit together. */
export interface CheckedRequest {
  readonly license: License;
  readonly licenseText: string;
  readonly binding: Binding;
  readonly bindingText: string;
  readonly bindingDigest: Digest;
  readonly approvedText: string;
}

/** Runs every check that does not depend on the store, before any lock is taken. */
export function checkRequest(context: LedgerContext, request: ClaimRequest): CheckedRequest {
  const { license, approvedText } = request;
  const licenseText = licenseRecord.text(license);
  const binding = bindingRecord.parse(request.binding);
  const { issuer, nonce, occurrences } = binding;
  invariant(issuer === license.issuer && nonce === license.nonce, 'a binding names its license');
  invariant(
    binding.license === context.digest(licenseRecord.domain, licenseText),
    'a binding binds its license',
  );
  invariant(
    occurrences.length === license.occurrences,
    'a binding holds the occurrences a license buys',
  );
  invariant(
    new Set(occurrences).size === occurrences.length,
    'the occurrences of a binding differ',
  );
  const bindingText = bindingRecord.text(binding);
  const bindingDigest = context.digest(bindingRecord.domain, bindingText);
  return { license, licenseText, binding, bindingText, bindingDigest, approvedText };
}

/**
 * Authenticates the readable text of A together with its binding, under the key generation that
 * sealed the first claim. If values are stored as digests, that text no longer matches the signed
 * digest, and without this MAC someone could replace it. A binding is a single line, so joining the
 * two is unambiguous.
 */
export function macIssuance(
  { sealer }: LedgerContext,
  key: string,
  binding: string,
  approvedText: string,
): Digest {
  return sealer.mac(key, 'effectmatch/journal-issuance/v1', `${binding}\n`, approvedText);
}

/** Calls `make` for the chosen occurrence, and checks that the claim matches the request. */
export function makeClaim(
  context: LedgerContext,
  checked: CheckedRequest,
  make: ClaimRequest['claim'],
  occurrence: OccurrenceId,
): Sealed<ClaimRecord> {
  const sealed = context.sealer.check(claimRecord, make(occurrence));
  const claim = sealed.record;
  invariant(claim.occurrence === occurrence, 'a claim names the occurrence it spends');
  invariant(
    claim.license === checked.binding.license,
    'a claim names the license it was made under',
  );
  invariant(claim.binding === checked.bindingDigest, 'a claim names the binding it was made under');
  invariant(
    claim.approved === checked.license.approved,
    'a claim names the outcome that was approved',
  );
  return sealed;
}

/** What a store knows about the attempt that a terminal belongs to. */
export interface Known {
  /** The claim that holds the occurrence. */
  readonly claim: Sealed<ClaimRecord> | undefined;
  readonly permit: PermitState | undefined;
  readonly first: Terminal | undefined;
  readonly settlement: Terminal | undefined;
}

type Recording =
  | { readonly kind: 'stored'; readonly terminal: Terminal }
  /** `settles`: the verdict is conclusive, so the claim leaves the list of unsettled claims. */
  | { readonly kind: 'insert'; readonly slot: string; readonly settles: boolean };

/**
 * Decides whether a terminal is new, agrees with the stored one, settles an `indeterminate` one, or
 * conflicts.
 */
export function decideRecording(
  context: LedgerContext,
  known: Known,
  terminal: Terminal,
): Recording {
  const { first, settlement } = known;
  const holds = known.claim?.record.execution === terminal.execution;
  if (!holds && terminal.claim !== undefined) throw claimLost(terminal);
  const misfit = findMisfit(context, known, terminal);
  if (misfit !== undefined) invariant(false, misfit);
  const settles = holds && terminal.kind !== 'indeterminate';
  if (first === undefined)
    return { kind: 'insert', slot: terminalSlot(terminal.execution), settles };
  const stored = settlement ?? first;
  if (agrees(stored, terminal) || agrees(first, terminal))
    return { kind: 'stored', terminal: stored };
  if (settlement === undefined && first.kind === 'indeterminate') {
    return { kind: 'insert', slot: settlementSlot(terminal.execution), settles };
  }
  throw new EffectMatchError(
    'ERR_EM_TERMINAL_CONFLICT',
    `occurrence ${terminal.occurrence}, execution ${terminal.execution}: ${stored.kind} is recorded and ` +
      `${terminal.kind} does not agree with it; the recorded verdict stands, look at the journal and the backend`,
  );
}

function claimLost({ occurrence, execution, kind }: Terminal) {
  return new EffectMatchError(
    'ERR_EM_CLAIM_LOST',
    `the ledger has no claim of execution ${execution} to occurrence ${occurrence}, so "${kind}" was ` +
      'not recorded; its server lost the claim in a crash or fail-over, or an old copy was restored',
  );
}

/**
 * Why a terminal does not fit the stored rows, if it does not. Only the attempt that holds the
 * claim may end as anything but `rejected`, and its terminal names that claim and the consumed
 * permit.
 */
export function findMisfit(
  context: LedgerContext,
  known: Pick<Known, 'claim' | 'permit'>,
  terminal: Terminal,
): string | undefined {
  const { claim, permit } = known;
  const holds = claim !== undefined && claim.record.execution === terminal.execution;
  if (!holds) {
    // Every other kind names a claim.
    return terminal.claim === undefined
      ? undefined
      : 'only the attempt that holds the claim may end otherwise than rejected';
  }
  const { record } = claim;
  if (terminal.lineage !== record.license || terminal.approved !== record.approved) {
    return 'a terminal names the license and the outcome of its claim';
  }
  if (
    terminal.claim !== undefined &&
    terminal.claim !== context.digest(claimRecord.domain, claim.text)
  ) {
    return 'a terminal carries the digest of its claim';
  }
  if (terminal.kind === 'rejected') return undefined;
  if (permit?.kind === 'void') return 'nothing but rejected can follow a voided permit';
  if (
    permit !== undefined &&
    context.digest(permitRecord.domain, permit.permit.text) !== terminal.permit
  ) {
    return 'a terminal carries the digest of the permit that was consumed';
  }
  if (terminal.kind === 'committed' && terminal.claimedAt !== record.claimedAt)
    return 'a terminal repeats t_c';
  return undefined;
}

/** Only the execution that holds the current claim may consume a permit. */
export function assertPermitFits(
  context: LedgerContext,
  claim: Sealed<ClaimRecord> | undefined,
  permit: PermitRecord,
): asserts claim is Sealed<ClaimRecord> {
  invariant(
    claim?.record.execution === permit.execution,
    'a permit is consumed by the holder of the claim',
  );
  invariant(
    permit.claim === context.digest(claimRecord.domain, claim.text),
    'a permit carries the digest of its claim',
  );
}

/**
 * A permit is voided only for the current claim, and never after its attempt may have made
 * something durable.
 */
export function assertVoidable(
  { claim, permit, first, settlement }: Known,
  execution: ExecutionId,
): void {
  invariant(claim?.record.execution === execution, 'a permit is voided for the claim in force');
  const harmless = [first, settlement].every(
    (ended) => ended === undefined || ended.kind === 'rejected',
  );
  invariant(
    permit !== undefined || harmless,
    'no permit is voided after its attempt ended otherwise than rejected',
  );
}

/**
 * Nothing is released before the holder's `committed` terminal, completed before its release, or
 * released again before an operator decides so. `preceded`: the acknowledgement that must come
 * first is recorded.
 */
export function assertReleasable(
  known: {
    readonly claim: Sealed<ClaimRecord> | undefined;
    readonly terminal: Terminal | undefined;
  },
  preceded: boolean,
  acknowledgement: Acknowledgement,
): void {
  const { claim, terminal } = known;
  invariant(
    claim !== undefined && terminal?.kind === 'committed',
    'only a committed terminal releases',
  );
  invariant(
    terminal.lineage === acknowledgement.lineage,
    'an acknowledgement has the lineage of its terminal',
  );
  invariant(
    claim.record.continuations.includes(acknowledgement.continuation),
    'a continuation is registered',
  );
  const { state, turn } = acknowledgement;
  const isFirst = state === 'released' && turn === undefined;
  invariant(isFirst || preceded, 'a continuation completes or is reopened after its release');
}

/**
 * Checks that an operator may decide: the attempt that holds the claim may have made something
 * durable, and nothing recorded is conclusive. Returns the stored resolution if the same decision
 * was recorded before.
 */
export function decideResolution(
  known: Known,
  stored: Sealed<Resolution> | undefined,
  sealed: Sealed<Resolution>,
): Resolution | undefined {
  const { record } = sealed;
  const { claim, permit, first, settlement } = known;
  const refuse = (why: string) =>
    new EffectMatchError(
      'ERR_EM_RESOLUTION_REFUSED',
      `occurrence ${record.occurrence} was not resolved: ${why}`,
    );
  if (claim?.record.execution !== record.execution || claim.record.license !== record.lineage) {
    throw refuse('the attempt that it names does not hold the claim');
  }
  if (stored?.text === sealed.text) return stored.record;
  if (stored !== undefined)
    throw refuse(`${stored.record.operator} has decided "${stored.record.finding}" already`);
  const terminal = settlement ?? first;
  if (terminal !== undefined && terminal.kind !== 'indeterminate')
    throw refuse(`it is ${terminal.kind}`);
  if (terminal === undefined && permit?.kind !== 'consumed')
    throw refuse('nothing was sent yet; recover it first');
  return undefined;
}

type Refused = Extract<ClaimResult, { kind: 'refused' }>;

/** A later plan was announced for the task, so the license for an earlier one no longer applies. */
export function planSuperseded(license: License, announced: number): Refused {
  const detail =
    `the license is for plan revision ${license.planRevision} of task "${license.task}" and revision ${announced} ` +
    'was announced; prepare and sign again';
  return { kind: 'refused', reason: 'plan-superseded', detail };
}

/** The issuer signed two different licenses with one nonce. The first one seen keeps it. */
export function nonceReused(license: License): Refused {
  const detail = `issuer "${license.issuer}" has used nonce ${license.nonce} for another license; sign again with a fresh nonce`;
  return { kind: 'refused', reason: 'nonce-reused', detail };
}

/** Every occurrence of the license is spent, whatever the result. */
export function spent(license: License): Refused {
  const detail =
    license.occurrences === 1
      ? 'the license has been used; the journal says with what result, and doing it again needs a new license'
      : `all ${license.occurrences} occurrences of the license have been used; doing it again needs a new license`;
  return { kind: 'refused', reason: 'spent', detail };
}

/** The requested execution is not the next one: it was used already, or an earlier one was not. */
export function notNext(
  occurrences: readonly OccurrenceId[],
  wanted: OccurrenceId,
  next: OccurrenceId,
): Refused {
  const at = occurrences.indexOf(wanted);
  const turn = occurrences.indexOf(next);
  if (at < turn) {
    const detail = `execution ${at + 1} of the license has been used; the journal says with what result`;
    return { kind: 'refused', reason: 'spent', detail };
  }
  const detail = `execution ${at + 1} of the license was asked for, and ${turn + 1} comes first`;
  return { kind: 'refused', reason: 'out-of-turn', detail };
}
