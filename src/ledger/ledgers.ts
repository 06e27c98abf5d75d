import type { Ledgers } from '../contract/ledgers.ts';
import { checkpointRecord } from '../protocol/checkpoint.ts';
import { makeCheckpoint } from './checkpoint.ts';
import { claimLedger } from './claims.ts';
import { documentLedger } from './documents.ts';
import { entryOf, openRow } from './journal.ts';
import type { TableStore } from './store.ts';
import { verdictLedger } from './verdicts.ts';
import { verifyStore } from './verify.ts';

/** Builds a ledger on a store. */
export function ledgersIn(store: TableStore): Ledgers {
  return {
    ...claimLedger(store),
    ...verdictLedger(store),
    ...journalLedger(store),
    ...documentLedger(store),
    ...(store.changed && { changed: store.changed }),
    close: () => store.close(),
  };
}

type JournalMethods = 'journal' | 'search' | 'checkpoint' | 'verify';

/** Reading and verifying the journal, and the checkpoints that chain its rows. */
function journalLedger(store: TableStore): Pick<Ledgers, JournalMethods> {
  const { context } = store;
  return {
    async journal({ afterSeq = 0, limit = 100, last = false, occurrence } = {}) {
      const page = { afterSeq, limit: Math.max(0, limit), last, occurrence };
      const rows = await store.read({ page }, (tables) => tables.page(page));
      const ordered = last ? rows.toReversed() : rows;
      return ordered.map((row) => entryOf(openRow(context, row)));
    },
    search: (prefix) => store.read({ search: prefix }, (tables) => tables.search(prefix)),
    checkpoint: () => makeCheckpoint(store),
    async verify(exported) {
      const known = exported && context.sealer.open(checkpointRecord, exported.text, exported.seal);
      return await verifyStore(store, known?.record);
    },
  };
}
