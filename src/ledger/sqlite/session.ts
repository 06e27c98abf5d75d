import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { JournalEntry, LedgerContext } from '../../contract/ledgers.ts';
import type { Sealed } from '../../contract/seal.ts';
import type { OccurrenceId } from '../../protocol/record.ts';
import { type JournalRow, type OpenedRow, openRow, rowDigest } from '../journal.ts';
import type { Patience } from './open.ts';

/** Milliseconds since the epoch on the store's clock. */
export const NOW_MS = "cast(round(unixepoch('subsec') * 1000) as integer)";

const ROW = 'seq, kind, occurrence, slot, text, seal_key as sealKey, seal_mac as sealMac, digest';

/** One connection with its statements, compiled once, and the keys to check what they return. */
export interface Session {
  readonly context: LedgerContext;
  readonly db: DatabaseSync;
  readonly patience: Patience;
  /** The compiled form of a statement; kept as long as the connection. */
  sql(text: string): StatementSync;
}

export function createSession(context: LedgerContext, db: DatabaseSync, patience: Patience): Session {
  const compiled = new Map<string, StatementSync>();
  const sql = (text: string): StatementSync => {
    let statement = compiled.get(text);
    if (statement === undefined) {
      statement = db.prepare(text);
      compiled.set(text, statement);
    }
    return statement;
  };
  return { context, db, patience, sql };
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
): number {
  const last = session.sql("select seq from sqlite_sequence where name = 'journal'").get();
  const seq = Number(last?.seq ?? 0) + 1;
  const digest = rowDigest(session.context, { seq, kind, slot, text, sealKey: seal.key });
  session
    .sql('insert into journal (seq, kind, occurrence, slot, text, seal_key, seal_mac, digest) values (?,?,?,?,?,?,?,?)')
    .run(seq, kind, record.occurrence, slot, text, seal.key, seal.mac, digest);
  return seq;
}

/** The row in one slot of an occurrence, checked. */
export function findRow(session: Session, occurrence: string, slot: string): OpenedRow | undefined {
  const row = session.sql(`select ${ROW} from journal where occurrence = ? and slot = ?`).get(occurrence, slot);
  return row && openRow(session.context, asRow(row));
}

/** The rows in four slots of an occurrence with one look into the journal, each checked, by slot. */
export function findRows(
  session: Session,
  occurrence: string,
  slots: readonly [string, string, string, string],
): ReadonlyMap<string, OpenedRow> {
  const rows = session
    .sql(`select ${ROW} from journal where occurrence = ? and slot in (?, ?, ?, ?)`)
    .all(occurrence, ...slots);
  return new Map(rows.map(asRow).map((row) => [row.slot, openRow(session.context, row)]));
}

/** All rows of one kind for an occurrence, in order, checked. */
export function listRows(session: Session, occurrence: string, kind: JournalEntry['kind']): readonly OpenedRow[] {
  const rows = session
    .sql(`select ${ROW} from journal where occurrence = ? and kind = ? order by seq`)
    .all(occurrence, kind);
  return rows.map((row) => openRow(session.context, asRow(row)));
}

/** How many rows the journal has of an occurrence. */
export function countRows(session: Session, occurrence: string): number {
  return Number(session.sql('select count(*) as found from journal where occurrence = ?').get(occurrence)?.found);
}

/** Which rows: those after a position, at most so many, of one occurrence where one is named. */
export interface Page {
  readonly afterSeq: number;
  readonly limit: number;
  readonly occurrence?: OccurrenceId | undefined;
}

/** Rows by position, checked by nobody yet: `openRow` is the caller's, who may want to say which row is wrong. */
export function pageRows(session: Session, page: Page): JournalRow[] {
  return selectPage(session, page, 'asc');
}

/** The newest rows after a position, in order. */
export function lastRows(session: Session, page: Page): JournalRow[] {
  return selectPage(session, page, 'desc').reverse();
}

function selectPage(session: Session, { afterSeq, limit, occurrence }: Page, order: 'asc' | 'desc'): JournalRow[] {
  const rows =
    occurrence === undefined
      ? session.sql(`select ${ROW} from journal where seq > ? order by seq ${order} limit ?`).all(afterSeq, limit)
      : session
          .sql(`select ${ROW} from journal where occurrence = ? and seq > ? order by seq ${order} limit ?`)
          .all(occurrence, afterSeq, limit);
  return rows.map(asRow);
}

/** The tables are STRICT, so the columns have these types; that the values are right is what `openRow` checks. */
function asRow(row: object): JournalRow {
  return row as JournalRow;
}
