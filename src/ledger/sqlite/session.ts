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

/** One connection, and the keys to check the rows it returns. */
export interface Session {
  readonly context: LedgerContext;
  readonly store: LedgerFile;
  /** Occurrences claimed on this session whose attempts have not ended on it. */
  readonly underWay: Set<string>;
  /** The compiled statement, cached for the life of the connection. */
  sql(text: string): StatementSync;
}

export function createSession(context: LedgerContext, store: LedgerFile): Session {
  return { context, store, underWay: new Set(), sql: (text) => statement(store.db, text) };
}

/**
 * Runs one transaction, which is on disk when this returns. `body` may run again if the file is
 * busy.
 */
export function writeFlushed<T>({ store }: Session, body: () => T): Promise<T> {
  return guarded(store, immediate(store.db, body, store));
}

/**
 * Runs one transaction, which other processes see when this returns. The next flushed transaction
 * makes it durable.
 */
export function writeRelaxed<T>({ store }: Session, body: () => T): Promise<T> {
  return guarded(store, immediateUnflushed(store.db, body, store));
}

/** Sees what is committed, flushed or not, as other processes do. */
export function read<T>({ store }: Session, body: () => T): Promise<T> {
  return guarded(store, retryWhileBusy(body, store));
}

/** Turns SQLite's errors about the file into errors that say what to do. */
export async function guarded<T>({ db, file }: LedgerFile, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (db.isOpen || error instanceof EffectMatchError) throw unusable(error, file);
    const what = `the ledger ${file} was closed; open it again`;
    throw asFault(error, 'ERR_EM_STORE_UNAVAILABLE', what);
  }
}
