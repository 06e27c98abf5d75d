/** The default ledger: one SQLite file, shared by the processes of one machine. @module */
import '../../node-version.ts';

import { systemClock, type WallClock } from '../../contract/clock.ts';
import type { LedgersFactory } from '../../contract/ledgers.ts';
import { ledgersIn } from '../ledgers.ts';
import { openStore } from './open.ts';
import { sqliteStore } from './store.ts';

/** How long the ledger waits, and which clock it uses. */
export interface SqliteLedgerOptions {
  /**
   * How long an operation waits for other writers before it fails with `ERR_EM_STORE_BUSY`; 30 000
   * by default.
   */
  readonly deadlineMs?: number;
  /** The clock for leases; the machine's clock unless a test replaces it. */
  readonly clock?: WallClock;
}

/**
 * Ledgers in a separate SQLite file, for one machine and any number of processes. A missing file is
 * created with access for its owner only; its folder must exist. Do not use the business database:
 * a writer there would hold up recovery.
 */
export function sqliteLedgers(file: string, options: SqliteLedgerOptions = {}): LedgersFactory {
  const { deadlineMs = 30_000, clock = systemClock } = options;
  return {
    file,
    open: async (context) =>
      ledgersIn(sqliteStore(context, await openStore(file, { deadlineMs, clock }))),
  };
}
