import type { JournalVerdict } from '../../contract/ledgers.ts';
import type { OccurrenceId } from '../../protocol/record.ts';
import { acknowledgementSlot, CLAIM_SLOT, type OpenedRow, settlementSlot } from '../journal.ts';
import { assertPermitFits, assertReleasable } from '../rules.ts';
import { openIssuance } from './claims.ts';
import { countRows, findRow, type Session } from './session.ts';
import { findClaim, findKnown, findResolution, findTerminal } from './verdicts.ts';

/**
 * Whether everything a journal row depends on is there and fits, and the other tables say the same about it: a claim
 * without its entry among the occurrences would never be recovered, a verdict without its claim was never earned.
 */
export function checkNeighbours(session: Session, row: OpenedRow): string | undefined {
  const { occurrence } = row.sealed.record;
  switch (row.kind) {
    case 'claim':
      return checkClaim(session, row);
    case 'permit':
      assertPermitFits(session.context, findClaim(session, occurrence), row.sealed.record);
      return undefined;
    case 'void': {
      const holder = findClaim(session, occurrence)?.record.execution;
      return holder === row.sealed.record.execution ? undefined : 'it voids the permit of an attempt that has no claim';
    }
    case 'terminal':
      return checkTerminal(session, row);
    case 'acknowledgement': {
      const known = { claim: findClaim(session, occurrence), terminal: findTerminal(session, occurrence) };
      const released = acknowledgementSlot({ ...row.sealed.record, state: 'released' });
      assertReleasable(known, findRow(session, occurrence, released) !== undefined, row.sealed.record);
      return undefined;
    }
    case 'resolution': {
      const claim = findClaim(session, occurrence)?.record;
      const { execution, lineage } = row.sealed.record;
      const fits = claim?.execution === execution && claim.license === lineage;
      return fits ? undefined : 'it resolves an attempt that does not hold the claim';
    }
    case 'shadow':
      return countRows(session, occurrence) === 1
        ? undefined
        : 'it shares its occurrence with something that is no shadow';
  }
}

function checkClaim(session: Session, row: Extract<OpenedRow, { kind: 'claim' }>): string | undefined {
  const { occurrence, execution } = row.sealed.record;
  const entry = findEntry(session, occurrence);
  if (entry === undefined) return 'its entry among the occurrences is missing';
  if (entry.seq !== row.seq || entry.execution !== execution)
    return 'its entry among the occurrences names another claim';
  openIssuance(session, entry.issuance, row.seq, row.sealed);
  const terminal = findTerminal(session, occurrence);
  const ended = terminal !== undefined && terminal.kind !== 'indeterminate';
  const conclusive = ended || findResolution(session, occurrence) !== undefined;
  if (entry.settled === (conclusive ? 1 : 0)) return undefined;
  return conclusive ? 'it has ended and is not marked as settled' : 'it is marked as settled and has not ended';
}

function checkTerminal(session: Session, row: Extract<OpenedRow, { kind: 'terminal' }>): string | undefined {
  const { occurrence, execution } = row.sealed.record;
  const { first } = findKnown(session, occurrence, execution);
  if (row.slot === settlementSlot(execution) && first?.kind !== 'indeterminate') return 'it settles what was not open';
  const claim = findRow(session, occurrence, CLAIM_SLOT);
  const holds = claim?.kind === 'claim' && claim.sealed.record.execution === execution;
  return holds && claim.seq > row.seq ? 'it stands before the claim that it ends' : undefined;
}

interface Entry {
  readonly seq: number;
  readonly issuance: number;
  readonly execution: string;
  readonly settled: number;
}

function findEntry(session: Session, occurrence: OccurrenceId): Entry | undefined {
  const row = session
    .sql('select seq, issuance, execution, settled from occurrence where occurrence = ?')
    .get(occurrence);
  return row as Entry | undefined;
}

/** Entries that no claim in the journal stands behind. `claims` is how many claims the journal has. */
export function findStray(session: Session, claims: number): Extract<JournalVerdict, { kind: 'tampered' }> | undefined {
  const counted = Number(session.sql('select count(*) as entries from occurrence').get()?.entries);
  if (counted !== claims) {
    const what = `there are ${counted} occurrences and ${claims} claims: an occurrence was inserted or its claim removed`;
    return { kind: 'tampered', seq: 0, what };
  }
  const idle = session
    .sql('select issuer, nonce from issuance where id not in (select issuance from occurrence) limit 1')
    .get();
  if (idle === undefined) return undefined;
  return { kind: 'tampered', seq: 0, what: `nothing was claimed under issuance ${idle.nonce} of ${idle.issuer}` };
}
