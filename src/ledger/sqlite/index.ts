import type { LedgersFactory } from '../../contract/ledgers.ts';
import { openConnections } from './open.ts';
import { SqliteLedgers } from './store.ts';

/**
 * Ledgers in a SQLite file of their own, for one machine and any number of processes. The file is created, for its
 * owner only, when it does not exist; its folder must. It must not be the business database: a writer there would
 * hold up recovery.
 */
export function sqliteLedgers(file: string): LedgersFactory {
  return { open: async (context) => new SqliteLedgers(context, await openConnections(file)) };
}
