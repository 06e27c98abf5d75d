import { instant } from '../../contract/clock.ts';
import type { Ledgers, PermitState } from '../../contract/ledgers.ts';
import type { Sealed } from '../../contract/seal.ts';
import { invariant } from '../../errors.ts';
import { type Acknowledgement, acknowledgementRecord } from '../../protocol/continuation.ts';
import { markerRecord } from '../../protocol/marker.ts';
import { type PermitRecord, permitRecord } from '../../protocol/permit.ts';
import type { ExecutionId, OccurrenceId } from '../../protocol/record.ts';
import { type Resolution, resolutionRecord } from '../../protocol/resolution.ts';
import { shadowRecord } from '../../protocol/shadow.ts';
import { assertAssured, type Terminal, terminalRecord } from '../../protocol/terminal.ts';
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
  assertVoidable,
  decideRecording,
  decideResolution,
  findMisfit,
  type Known,
} from '../rules.ts';
import { findClaim, settleClaim } from './claims.ts';
import { MIGRATIONS } from './schema.ts';
import {
  appendRow,
  countRows,
  findRow,
  findRows,
  listRows,
  read,
  type Session,
  writeFlushed,
  writeRelaxed,
} from './session.ts';

type VerdictMethods =
  | 'consumePermit'
  | 'voidPermit'
  | 'permit'
  | 'record'
  | 'terminal'
  | 'attempts'
  | 'resolve'
  | 'resolution'
  | 'recordShadow'
  | 'acknowledge'
  | 'acknowledgements'
  | 'uncompleted';

/** Permits, terminals, decisions of operators, releases, and shadows. */
export function verdictLedger(session: Session): Pick<Ledgers, VerdictMethods> {
  const { sealer } = session.context;
  return {
    async consumePermit(permit) {
      const sealed = sealer.check(permitRecord, permit);
      return await writeFlushed(session, () => consumePermit(session, sealed));
    },
    voidPermit: (occurrence, execution) =>
      writeFlushed(session, () => voidPermit(session, occurrence, execution)),
    permit: (occurrence) => read(session, () => findPermit(session, occurrence)),

    async record(terminal, durability) {
      const sealed = sealer.check(terminalRecord, terminal);
      assertAssured(sealed.record);
      const write = durability === 'relaxed' ? writeRelaxed : writeFlushed;
      return await write(session, () => {
        const recorded = recordTerminal(session, sealed);
        if (!recorded.inserted && durability === 'flushed') touchStore(session);
        return recorded.terminal;
      });
    },
    terminal: (occurrence) => read(session, () => findTerminal(session, occurrence)),
    attempts: (occurrence) =>
      read(session, () =>
        listRows(session, occurrence, 'terminal').map(({ sealed }) => sealed.record),
      ),

    async resolve(resolution) {
      const sealed = sealer.open(resolutionRecord, resolution.text, resolution.seal);
      return await writeFlushed(session, () => recordResolution(session, sealed));
    },
    resolution: (occurrence) => read(session, () => findResolution(session, occurrence)?.record),

    // Not flushed: nothing depends on it. The journal holds nothing else of its occurrence, and
    // `verify` sees to it that this stays so.
    async recordShadow(shadow) {
      const sealed = sealer.check(shadowRecord, shadow);
      await writeRelaxed(session, () => {
        const unused = countRows(session, sealed.record.occurrence) === 0;
        invariant(unused, 'a shadow shares its occurrence with nothing');
        appendRow(session, 'shadow', SHADOW_SLOT, sealed);
      });
    },

    async acknowledge(acknowledgement) {
      const sealed = sealer.check(acknowledgementRecord, acknowledgement);
      return await writeFlushed(session, () => acknowledgeContinuation(session, sealed));
    },
    acknowledgements: (occurrence) =>
      read(session, () =>
        listRows(session, occurrence, 'acknowledgement').map(({ sealed }) => sealed.record),
      ),
    uncompleted: () => read(session, () => listUncompleted(session)),
  };
}

/** `inserted` is false for agreement with what is stored. */
function recordTerminal(
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
 * to flush. SQLite does not write a row that is updated to what it was.
 */
function touchStore(session: Session): void {
  session.store.db.exec(`pragma user_version = ${MIGRATIONS.length}`);
}

function findPermit(session: Session, occurrence: OccurrenceId): PermitState | undefined {
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
  const held = rows.get(CLAIM_SLOT);
  const claim = held?.kind === 'claim' ? held.sealed : undefined;
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
function consumePermit(
  session: Session,
  sealed: Sealed<PermitRecord>,
): { readonly kind: 'consumed' | 'void' | 'spent' } {
  const { occurrence } = sealed.record;
  assertPermitFits(session.context, findClaim(session, occurrence), sealed.record);
  const state = findPermit(session, occurrence);
  if (state?.kind === 'void') return { kind: 'void' };
  const isOver = state !== undefined || findTerminal(session, occurrence) !== undefined;
  if (isOver) return { kind: 'spent' };
  appendRow(session, 'permit', PERMIT_SLOT, sealed);
  return { kind: 'consumed' };
}

/** Voids a permit that was not consumed; otherwise returns the one that was. */
function voidPermit(
  session: Session,
  occurrence: OccurrenceId,
  execution: ExecutionId,
): PermitState {
  const known = findKnown(session, occurrence, execution);
  assertVoidable(known, execution);
  if (known.permit !== undefined) return known.permit;
  const marker = session.context.sealer.seal(markerRecord, {
    version: 1,
    disposition: 'void',
    occurrence,
    execution,
    voidedAt: instant(session.store.clock.now()),
  });
  appendRow(session, 'void', PERMIT_SLOT, marker as Sealed<typeof marker.record>);
  return { kind: 'void' };
}

/** Records a release or completion; false when it is there already. */
function acknowledgeContinuation(session: Session, sealed: Sealed<Acknowledgement>): boolean {
  const { occurrence } = sealed.record;
  checkRelease(session, sealed.record);
  const slot = acknowledgementSlot(sealed.record);
  if (findRow(session, occurrence, slot) !== undefined) return false;
  appendRow(session, 'acknowledgement', slot, sealed);
  return true;
}

/** Throws unless the attempt is committed, and released before it is completed. */
export function checkRelease(session: Session, acknowledgement: Acknowledgement): void {
  const { occurrence, continuation } = acknowledgement;
  const claim = findClaim(session, occurrence);
  const terminal = findTerminal(session, occurrence);
  const slot = acknowledgementSlot({ state: 'released', continuation });
  const isReleased = findRow(session, occurrence, slot) !== undefined;
  assertReleasable({ claim, terminal }, isReleased, acknowledgement);
}

/** Releases without their completion, oldest first. */
function listUncompleted(session: Session): readonly Acknowledgement[] {
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
function recordResolution(session: Session, sealed: Sealed<Resolution>): Resolution {
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
