import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { JournalEntry, LedgerContext } from '../../contract/ledgers.ts';
import type { Sealed } from '../../contract/seal.ts';
import type { OccurrenceId } from '../../protocol/record.ts';
import { immediate, immediateUnflushed } from '../../sqlite/connection.ts';
import { type JournalRow, type OpenedRow, openRow, rowDigest, tampered } from '../journal.ts';
import type { Patience } from './open.ts';

/** Milliseconds since the epoch on the store's clock. */
export const NOW_MS = "cast(round(unixepoch('subsec') * 1000) as integer)";

/** One connection with its statements, compiled once, and the keys to check what they return. */
export interface Session {
  readonly context: LedgerContext;
  readonly db: DatabaseSync;
  readonly patience: Patience;
  /** Occurrences that were claimed here and whose attempts have not ended here. */
  readonly underWay: Set<string>;
  /** The compiled form of a statement; kept as long as the connection. */
  sql(text: string): StatementSync;
}

export function createSession(
  context: LedgerContext,
  db: DatabaseSync,
  patience: Patience,
): Session {
  const compiled = new Map<string, StatementSync>();
  const sql = (text: string): StatementSync => {
    let statement = compiled.get(text);
    if (statement === undefined) {
      statement = db.prepare(text);
      compiled.set(text, statement);
    }
    return statement;
  };
  return { context, db, patience, underWay: new Set(), sql };
}

/**
 * One transaction that is on disk when its result is returned. `body` may run again when the file
 * is busy.
 */
export function decideFlushed<T>(session: Session, body: () => T): Promise<T> {
  return immediate(session.db, body, session.patience);
}

/**
 * One transaction that other processes see when its result is returned, and that the next flushed
 * one makes durable.
 */
export function decideRelaxed<T>(session: Session, body: () => T): Promise<T> {
  return immediateUnflushed(session.db, body, session.patience);
}

/** The time on the store's clock, in the form that records carry. */
export function storeInstant(session: Session): string {
  const row = session.sql("select strftime('%Y-%m-%dT%H:%M:%fZ', 'now') as at").get();
  return String(row?.at);
}

/** Appends to the journal, inside the caller's transaction. Returns the position. */
export function appendRow(
  session: Session,
  kind: JournalEntry['kind'],
  slot: string,
  { record, text, seal }: Sealed<{ readonly occurrence: OccurrenceId }>,
  issuance: number | null = null,
): number {
  const seq = lastSeq(session) + 1;
  const { occurrence } = record;
  const digest = rowDigest(session.context, {
    seq,
    kind,
    slot,
    sealKey: seal.key,
    sealMac: seal.mac,
  });
  session.sql(APPEND).run(seq, kind, occurrence, slot, text, seal.key, seal.mac, digest, issuance);
  session.sql(GIVE_AWAY).run(seq);
  return seq;
}

const GIVE_AWAY = 'update unsettled set positions = ? where claim = 0';
const APPEND =
  'insert into journal (seq, kind, occurrence, slot, text, seal_key, seal_mac, digest, issuance) ' +
  'values (?, ?, ?, ?, ?, ?, ?, ?, ?)';

/** The last position that was ever given away, whether or not its row is still there. */
export function lastSeq(session: Session): number {
  const row = session.sql('select positions from unsettled where claim = 0').get();
  if (typeof row?.positions !== 'number') throw tampered('the count of positions', 'it is missing');
  return row.positions;
}

const ROWS =
  'select seq, kind, occurrence, slot, text, seal_key as sealKey, seal_mac as sealMac, digest from journal';
const ROW_IN_SLOT = `${ROWS} where occurrence = ? and slot = ?`;
// Four terms and not `slot in (...)`: for a list SQLite builds a table first, which takes longer
// than the four looks.
const ROWS_IN_SLOTS = `${ROWS} where ${[2, 3, 4, 5].map((slot) => `occurrence = ?1 and slot = ?${slot}`).join(' or ')}`;
const ROWS_OF_KIND = `${ROWS} where occurrence = ? and kind = ? order by seq`;

/** The row in one slot of an occurrence, checked. */
export function findRow(session: Session, occurrence: string, slot: string): OpenedRow | undefined {
  const row = session.sql(ROW_IN_SLOT).get(occurrence, slot);
  return row && openRow(session.context, asRow(row));
}

/**
 * The rows in four slots of an occurrence with one look into the journal, each checked, by slot.
 */
export function findRows(
  session: Session,
  occurrence: string,
  slots: readonly [string, string, string, string],
): ReadonlyMap<string, OpenedRow> {
  const rows = session.sql(ROWS_IN_SLOTS).all(occurrence, ...slots);
  return new Map(rows.map((row) => [asRow(row).slot, openRow(session.context, asRow(row))]));
}

/** All rows of one kind for an occurrence, in order, checked. */
export function listRows(
  session: Session,
  occurrence: string,
  kind: JournalEntry['kind'],
): readonly OpenedRow[] {
  return session
    .sql(ROWS_OF_KIND)
    .all(occurrence, kind)
    .map((row) => openRow(session.context, asRow(row)));
}

/** How many rows the journal has of an occurrence. */
export function countRows(session: Session, occurrence: string): number {
  return Number(
    session.sql('select count(*) as found from journal where occurrence = ?').get(occurrence)
      ?.found,
  );
}

/** Which rows: those after a position, at most so many, of one occurrence where one is named. */
export interface Page {
  readonly afterSeq: number;
  readonly limit: number;
  readonly occurrence?: OccurrenceId | undefined;
}

/**
 * Rows by position, checked by nobody yet: `openRow` is the caller's, who may want to say which row
 * is wrong.
 */
export function pageRows(session: Session, page: Page): JournalRow[] {
  return selectPage(session, page, 'asc');
}

/** The newest rows after a position, in order. */
export function lastRows(session: Session, page: Page): JournalRow[] {
  return selectPage(session, page, 'desc').reverse();
}

function selectPage(
  session: Session,
  { afterSeq, limit, occurrence }: Page,
  order: 'asc' | 'desc',
): JournalRow[] {
  const rows =
    occurrence === undefined
      ? session.sql(`${ROWS} where seq > ? order by seq ${order} limit ?`).all(afterSeq, limit)
      : session
          .sql(`${ROWS} where occurrence = ? and seq > ? order by seq ${order} limit ?`)
          .all(occurrence, afterSeq, limit);
  return rows.map(asRow);
}

/**
 * The tables are STRICT, so the columns have these types; that the values are right is what
 * `openRow` checks.
 */
function asRow(row: object): JournalRow {
  return row as JournalRow;
}
