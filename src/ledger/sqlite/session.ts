import type { StatementSync } from 'node:sqlite';
import type { LedgerContext } from '../../contract/ledgers.ts';
import { EffectMatchError } from '../../errors.ts';
import {
  asFault,
  immediate,
  immediateUnflushed,
  retryWhileBusy,
  statement,
} from '../../sqlite/connection.ts';
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
