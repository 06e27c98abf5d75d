/** The default ledger: one SQLite file, shared by the processes of one machine. @module */
import '../../node-version.ts';

import { systemClock, type WallClock } from '../../contract/clock.ts';
import type { LedgerContext, Ledgers, LedgersFactory } from '../../contract/ledgers.ts';
import { claimLedger } from './claims.ts';
import { documentLedger } from './documents.ts';
import { journalLedger } from './journal.ts';
import { type LedgerFile, openStore } from './open.ts';
import { createSession } from './session.ts';
import { verdictLedger } from './verdicts.ts';

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
    open: async (context) => ledgersIn(context, await openStore(file, { deadlineMs, clock })),
  };
}

function ledgersIn(context: LedgerContext, store: LedgerFile): Ledgers {
  const session = createSession(context, store);
  return {
    durable: true,
    shared: true,
    ...claimLedger(session),
    ...verdictLedger(session),
    ...journalLedger(session),
    ...documentLedger(session),
    async close() {
      if (store.db.isOpen) store.db.close();
    },
  };
}
