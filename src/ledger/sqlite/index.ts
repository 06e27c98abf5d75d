/** The default ledger: one SQLite file, shared by the processes of one machine. @module */
import '../../node-version.ts';

import { systemClock, type WallClock } from '../../contract/clock.ts';
import type { LedgersFactory } from '../../contract/ledgers.ts';
import { ledgersIn } from '../ledgers.ts';
import { openStore } from './open.ts';
import { sqliteStore } from './store.ts';

/** How patient the ledger is. */
export interface SqliteLedgerOptions {
  /**
   * How long an operation waits for other writers before it fails with `ERR_EM_STORE_BUSY`; 30 000
   * by default.
   */
  readonly deadlineMs?: number;
  /** What leases are measured by; the machine's clock unless a test replaces it. */
  readonly clock?: WallClock;
}

/**
 * Ledgers in a separate SQLite file, for one machine and any number of processes. The file is
 * created, for its owner only, when it does not exist; its folder must. It must not be the business
 * database: a writer there would hold up recovery.
 */
export function sqliteLedgers(file: string, options: SqliteLedgerOptions = {}): LedgersFactory {
  const { deadlineMs = 30_000, clock = systemClock } = options;
  return {
    file,
    open: async (context) =>
      ledgersIn(sqliteStore(context, await openStore(file, { deadlineMs, clock }))),
  };
}
