import type { StatementSync } from 'node:sqlite';
import type { JournalEntry, LedgerContext } from '../../contract/ledgers.ts';
import type { Sealed } from '../../contract/seal.ts';
import { EffectMatchError } from '../../errors.ts';
import type { OccurrenceId } from '../../protocol/record.ts';
import {
  asFault,
  immediate,
  immediateUnflushed,
  retryWhileBusy,
  statement,
} from '../../sqlite/connection.ts';
import { type JournalRow, type OpenedRow, openRow, rowDigest, tampered } from '../journal.ts';
import { type LedgerFile, unusable } from './open.ts';

/** One connection, and the keys to check what it returns. */
export interface Session {
  readonly context: LedgerContext;
  readonly store: LedgerFile;
  /** Occurrences that were claimed here and whose attempts have not ended here. */
  readonly underWay: Set<string>;
  /** The compiled form of a statement; kept as long as the connection. */
  sql(text: string): StatementSync;
}

export function createSession(context: LedgerContext, store: LedgerFile): Session {
  return { context, store, underWay: new Set(), sql: (text) => statement(store.db, text) };
}

/**
 * One transaction that is on disk when its result is returned. `body` may run again when the file
 * is busy.
 */
export function writeFlushed<T>({ store }: Session, body: () => T): Promise<T> {
  return guarded(store, immediate(store.db, body, store));
}

/**
 * One transaction that other processes see when its result is returned, and that the next flushed
 * one makes durable.
 */
export function writeRelaxed<T>({ store }: Session, body: () => T): Promise<T> {
  return guarded(store, immediateUnflushed(store.db, body, store));
}

/** Reads see what is committed, flushed or not, as other processes do. */
export function read<T>({ store }: Session, body: () => T): Promise<T> {
  return guarded(store, retryWhileBusy(body, store));
}

/** What SQLite throws about the file becomes an error that says what to do. */
export async function guarded<T>({ db, file }: LedgerFile, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (db.isOpen || error instanceof EffectMatchError) throw unusable(error, file);
    const what = `the ledger ${file} was closed; open it again`;
    throw asFault(error, 'ERR_EM_STORE_UNAVAILABLE', what);
  }
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
  const { key: sealKey, mac: sealMac } = seal;
  const digest = rowDigest(session.context, { seq, kind, slot, sealKey, sealMac });
  session.sql(APPEND).run(seq, kind, occurrence, slot, text, sealKey, sealMac, digest, issuance);
  session.sql('update unsettled set positions = ? where claim = 0').run(seq);
  return seq;
}

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

/** The rows in four slots of an occurrence, found by one statement, each checked, by slot. */
export function findRows(
  session: Session,
  occurrence: string,
  slots: readonly [string, string, string, string],
): ReadonlyMap<string, OpenedRow> {
  const rows = session.sql(ROWS_IN_SLOTS).all(occurrence, ...slots);
  return new Map(rows.map((row) => [asRow(row).slot, openRow(session.context, asRow(row))]));
}

/** All rows of one kind for an occurrence, in order, checked. */
export function listRows<K extends JournalEntry['kind']>(
  session: Session,
  occurrence: string,
  kind: K,
): readonly Extract<OpenedRow, { kind: K }>[] {
  const rows = session.sql(ROWS_OF_KIND).all(occurrence, kind);
  const opened = rows.map((row) => openRow(session.context, asRow(row)));
  return opened as Extract<OpenedRow, { kind: K }>[];
}

/** How many rows the journal has of an occurrence. */
export function countRows(session: Session, occurrence: string): number {
  const row = session
    .sql('select count(*) as found from journal where occurrence = ?')
    .get(occurrence);
  return Number(row?.found);
}

/** Which rows of the journal: after a position, at most so many, of one occurrence if it is named. */
interface RowRange {
  readonly afterSeq: number;
  readonly limit: number;
  readonly occurrence?: OccurrenceId | undefined;
}

/**
 * Rows by position. They are not checked: the caller calls `openRow`, and can say which row is
 * wrong.
 */
export function pageRows(
  session: Session,
  { afterSeq, limit, occurrence }: RowRange,
  order: 'asc' | 'desc' = 'asc',
): JournalRow[] {
  const rest = `order by seq ${order} limit ?`;
  const rows =
    occurrence === undefined
      ? session.sql(`${ROWS} where seq > ? ${rest}`).all(afterSeq, limit)
      : session
          .sql(`${ROWS} where occurrence = ? and seq > ? ${rest}`)
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
