import type { JournalVerdict } from '../../contract/ledgers.ts';
import type { OccurrenceId } from '../../protocol/record.ts';
import { acknowledgementSlot, CLAIM_SLOT, type OpenedRow, settlementSlot } from '../journal.ts';
import { assertPermitFits, assertReleasable } from '../rules.ts';
import { openIssuance } from './issuances.ts';
import { countRows, findRow, type Session } from './session.ts';
import { findClaim, findKnown, findResolution, findTerminal } from './verdicts.ts';

/**
 * Whether everything a journal row depends on is there and fits, and the other tables say the same
 * about it: a claim without its entry among the occurrences would never be recovered, a verdict
 * without its claim was never earned.
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
      return holder === row.sealed.record.execution
        ? undefined
        : 'it voids the permit of an attempt that has no claim';
    }
    case 'terminal':
      return checkTerminal(session, row);
    case 'acknowledgement': {
      const known = {
        claim: findClaim(session, occurrence),
        terminal: findTerminal(session, occurrence),
      };
      const released = acknowledgementSlot({ ...row.sealed.record, state: 'released' });
      assertReleasable(
        known,
        findRow(session, occurrence, released) !== undefined,
        row.sealed.record,
      );
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

function checkClaim(
  session: Session,
  row: Extract<OpenedRow, { kind: 'claim' }>,
): string | undefined {
  const { occurrence, execution } = row.sealed.record;
  openIssuance(session, row.seq, row.sealed);
  const entry = session.sql('select execution from unsettled where claim = ?').get(row.seq);
  if (isSettled(session, occurrence)) {
    return entry === undefined ? undefined : 'it has ended and is among the unsettled claims';
  }
  if (entry === undefined) return 'it has not ended and is missing among the unsettled claims';
  return entry.execution === execution
    ? undefined
    : 'its entry among the unsettled claims names another execution';
}

/** Whether something conclusive is recorded about the attempt that holds the occurrence. */
function isSettled(session: Session, occurrence: OccurrenceId): boolean {
  const terminal = findTerminal(session, occurrence);
  const ended = terminal !== undefined && terminal.kind !== 'indeterminate';
  return ended || findResolution(session, occurrence) !== undefined;
}

function checkTerminal(
  session: Session,
  row: Extract<OpenedRow, { kind: 'terminal' }>,
): string | undefined {
  const { occurrence, execution } = row.sealed.record;
  const { first } = findKnown(session, occurrence, execution);
  if (row.slot === settlementSlot(execution) && first?.kind !== 'indeterminate')
    return 'it settles what was not open';
  const claim = findRow(session, occurrence, CLAIM_SLOT);
  const holds = claim?.kind === 'claim' && claim.sealed.record.execution === execution;
  return holds && claim.seq > row.seq ? 'it stands before the claim that it ends' : undefined;
}

/**
 * What nothing in the journal stands behind. `claims` is how many the journal has: each of them was
 * found to be counted by its issuance, so where the sums agree every issuance counts exactly the
 * claims that were made under it.
 */
export function findStray(
  session: Session,
  claims: number,
): Extract<JournalVerdict, { kind: 'tampered' }> | undefined {
  const stray = session.sql(STRAY).get()?.claim;
  if (stray !== undefined) {
    return {
      kind: 'tampered',
      seq: Number(stray),
      what: 'an unsettled claim is listed that the journal does not have',
    };
  }
  const counted = Number(
    session.sql('select coalesce(sum(claimed), 0) as counted from issuance').get()?.counted,
  );
  if (counted === claims) return undefined;
  const what = `the issuances count ${counted} claims and the journal has ${claims}: an issuance was inserted or a claim removed`;
  return { kind: 'tampered', seq: 0, what };
}

const STRAY = `select claim from unsettled where claim <> 0
  and not exists (select 1 from journal where seq = claim and kind = 'claim') limit 1`;
