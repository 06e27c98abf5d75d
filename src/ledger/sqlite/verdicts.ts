import type { PermitState } from '../../contract/ledgers.ts';
import type { Sealed } from '../../contract/seal.ts';
import { invariant } from '../../errors.ts';
import type { ClaimRecord } from '../../protocol/binding.ts';
import type { Acknowledgement } from '../../protocol/continuation.ts';
import { markerRecord } from '../../protocol/marker.ts';
import type { PermitRecord } from '../../protocol/permit.ts';
import type { ExecutionId, OccurrenceId } from '../../protocol/record.ts';
import type { Resolution } from '../../protocol/resolution.ts';
import type { Shadow } from '../../protocol/shadow.ts';
import type { Terminal } from '../../protocol/terminal.ts';
import {
  acknowledgementSlot,
  CLAIM_SLOT,
  type OpenedRow,
  PERMIT_SLOT,
  RESOLUTION_SLOT,
  SHADOW_SLOT,
  settlementSlot,
  tampered,
  terminalSlot,
} from '../journal.ts';
import {
  assertPermitFits,
  assertReleasable,
  assertUnused,
  assertVoidable,
  decideRecording,
  decideResolution,
  findMisfit,
  type Known,
} from '../rules.ts';
import { settleClaim } from './claims.ts';
import { MIGRATIONS } from './schema.ts';
import { appendRow, countRows, findRow, findRows, type Session, storeInstant } from './session.ts';

/**
 * Records a terminal inside the caller's transaction. `inserted` is false for agreement with what
 * is stored.
 */
export function recordTerminal(
  session: Session,
  sealed: Sealed<Terminal>,
): { readonly terminal: Terminal; readonly inserted: boolean } {
  const { occurrence, execution } = sealed.record;
  const known = findKnown(session, occurrence, execution);
  const recording = decideRecording(session.context, known, sealed.record);
  if (known.claim?.record.execution === execution) session.underWay.delete(occurrence);
  if (recording.kind === 'stored') return { terminal: recording.terminal, inserted: false };
  appendRow(session, 'terminal', recording.slot, sealed);
  if (recording.settles && !settleClaim(session, occurrence)) {
    invariant(
      findResolution(session, occurrence) !== undefined,
      'a claim has its entry until it is settled',
    );
  }
  return { terminal: sealed.record, inserted: true };
}

/**
 * Writes the header page without changing it, so that a commit which found agreement has something
 * to flush. An update of a row to what it was is no write to SQLite.
 */
export function touchStore(session: Session): void {
  session.db.exec(`pragma user_version = ${MIGRATIONS.length}`);
}

/** The claim that holds an occurrence. */
export function findClaim(
  session: Session,
  occurrence: OccurrenceId,
): Sealed<ClaimRecord> | undefined {
  return claimIn(findRow(session, occurrence, CLAIM_SLOT));
}

function claimIn(row: OpenedRow | undefined): Sealed<ClaimRecord> | undefined {
  return row?.kind === 'claim' ? row.sealed : undefined;
}

/** What became of the permit of an occurrence. */
export function findPermit(session: Session, occurrence: OccurrenceId): PermitState | undefined {
  return permitIn(findRow(session, occurrence, PERMIT_SLOT));
}

function permitIn(row: OpenedRow | undefined): PermitState | undefined {
  if (row === undefined) return undefined;
  return row.kind === 'permit' ? { kind: 'consumed', permit: row.sealed } : { kind: 'void' };
}

/** The terminal of the attempt that holds the claim, its settlement first. */
export function findTerminal(session: Session, occurrence: OccurrenceId): Terminal | undefined {
  const execution = findClaim(session, occurrence)?.record.execution;
  if (execution === undefined) return undefined;
  const { first, settlement } = findKnown(session, occurrence, execution);
  return settlement ?? first;
}

/**
 * Everything that a verdict about one attempt depends on. What is stored is checked against the
 * claim again.
 */
export function findKnown(
  session: Session,
  occurrence: OccurrenceId,
  execution: ExecutionId,
): Known {
  const [first, settlement] = [terminalSlot(execution), settlementSlot(execution)];
  const rows = findRows(session, occurrence, [CLAIM_SLOT, PERMIT_SLOT, first, settlement]);
  const claim = claimIn(rows.get(CLAIM_SLOT));
  const permit = permitIn(rows.get(PERMIT_SLOT));
  const terminalIn = (slot: string): Terminal | undefined => {
    const row = rows.get(slot);
    if (row?.kind !== 'terminal') return undefined;
    const misfit = findMisfit(session.context, { claim, permit }, row.sealed.record);
    if (misfit !== undefined)
      throw tampered(row.seq, `it breaks a rule that held when it was written: ${misfit}`);
    return row.sealed.record;
  };
  return { claim, permit, first: terminalIn(first), settlement: terminalIn(settlement) };
}

/** Consumes a permit unless it was voided, consumed, or its attempt has ended. */
export function consumePermit(
  session: Session,
  sealed: Sealed<PermitRecord>,
): { readonly kind: 'consumed' | 'void' | 'spent' } {
  const { occurrence } = sealed.record;
  assertPermitFits(session.context, findClaim(session, occurrence), sealed.record);
  const state = findPermit(session, occurrence);
  if (state?.kind === 'void') return { kind: 'void' };
  if (state !== undefined || findTerminal(session, occurrence) !== undefined)
    return { kind: 'spent' };
  appendRow(session, 'permit', PERMIT_SLOT, sealed);
  return { kind: 'consumed' };
}

/** Voids a permit that was not consumed; otherwise returns the one that was. */
export function voidPermit(
  session: Session,
  occurrence: OccurrenceId,
  execution: ExecutionId,
): PermitState {
  assertVoidable(findKnown(session, occurrence, execution), execution);
  const state = findPermit(session, occurrence);
  if (state !== undefined) return state;
  const voidedAt = storeInstant(session);
  const marker = {
    version: 1 as const,
    disposition: 'void' as const,
    occurrence,
    execution,
    voidedAt,
  };
  appendRow(session, 'void', PERMIT_SLOT, session.context.sealer.seal(markerRecord, marker));
  return { kind: 'void' };
}

/** Records a release or completion; false when it is there already. */
export function acknowledgeContinuation(
  session: Session,
  sealed: Sealed<Acknowledgement>,
): boolean {
  const { occurrence, continuation } = sealed.record;
  const known = {
    claim: findClaim(session, occurrence),
    terminal: findTerminal(session, occurrence),
  };
  const released =
    findRow(session, occurrence, acknowledgementSlot({ state: 'released', continuation })) !==
    undefined;
  assertReleasable(known, released, sealed.record);
  const slot = acknowledgementSlot(sealed.record);
  if (findRow(session, occurrence, slot) !== undefined) return false;
  appendRow(session, 'acknowledgement', slot, sealed);
  return true;
}

/** Releases without their completion, oldest first. */
export function listUncompleted(session: Session): readonly Acknowledgement[] {
  const rows = session.sql(UNCOMPLETED).all() as { occurrence: string; slot: string }[];
  const opened = rows.map(({ occurrence, slot }) => findRow(session, occurrence, slot));
  return opened.filter((row) => row?.kind === 'acknowledgement').map((row) => row.sealed.record);
}

const UNCOMPLETED = `select occurrence, slot from journal as released
  where kind = 'acknowledgement' and slot like 'released:%' and not exists (select 1 from journal as completed
    where completed.occurrence = released.occurrence and completed.slot = 'completed:' || substr(released.slot, 10))
  order by seq`;

/** An operator's decision about an occurrence. */
export function findResolution(
  session: Session,
  occurrence: OccurrenceId,
): Sealed<Resolution> | undefined {
  const row = findRow(session, occurrence, RESOLUTION_SLOT);
  return row?.kind === 'resolution' ? row.sealed : undefined;
}

/** Records an operator's decision; the claim then leaves the list of unsettled ones. */
export function recordResolution(session: Session, sealed: Sealed<Resolution>): Resolution {
  const { occurrence, execution } = sealed.record;
  const known = findKnown(session, occurrence, execution);
  const stored = decideResolution(known, findResolution(session, occurrence), sealed);
  if (stored !== undefined) {
    touchStore(session);
    return stored;
  }
  appendRow(session, 'resolution', RESOLUTION_SLOT, sealed);
  invariant(settleClaim(session, occurrence), 'a claim has its entry until it is settled');
  return sealed.record;
}

/**
 * Appends a shadow. The journal holds nothing else of its occurrence, and `verify` sees to it that
 * this stays so.
 */
export function recordShadow(session: Session, sealed: Sealed<Shadow>): void {
  assertUnused(countRows(session, sealed.record.occurrence) > 0);
  appendRow(session, 'shadow', SHADOW_SLOT, sealed);
}
