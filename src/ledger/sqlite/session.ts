import type { StatementSync } from 'node:sqlite';
import type { LedgerContext } from '../../contract/ledgers.ts';
import { EffectMatchError } from '../../errors.ts';
import { asFault, statement } from '../../sqlite/connection.ts';
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
