/** The default ledger: one SQLite file, shared by the processes of one machine. @module */
import type { LedgersFactory } from '../../contract/ledgers.ts';
import { openStore } from './open.ts';
import { SqliteLedgers } from './store.ts';

/** How patient the ledger is. */
export interface SqliteLedgerOptions {
  /**
   * How long an operation waits for other writers before it fails with `ERR_EM_STORE_BUSY`; 30 000
   * by default.
   */
  readonly deadlineMs?: number;
}

/**
 * Ledgers in a SQLite file of their own, for one machine and any number of processes. The file is
 * created, for its owner only, when it does not exist; its folder must. It must not be the business
 * database: a writer there would hold up recovery.
 */
export function sqliteLedgers(file: string, options: SqliteLedgerOptions = {}): LedgersFactory {
  const patience = { deadlineMs: options.deadlineMs ?? 30_000 };
  return {
    file,
    open: async (context) => new SqliteLedgers(context, await openStore(file, patience)),
  };
}
