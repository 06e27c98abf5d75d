import { setImmediate as nextTurn } from 'node:timers/promises';
import { instant } from '../contract/clock.ts';
import type { LedgerContext } from '../contract/ledgers.ts';
import type { Sealed } from '../contract/seal.ts';
import { type Checkpoint, checkpointRecord } from '../protocol/checkpoint.ts';
import type { Digest } from '../protocol/record.ts';
import { CHAIN_START, extendChain, openRow, tampered } from './journal.ts';
import type { CheckpointRow, LedgerTables, TableStore } from './store.ts';

/** Rows per turn of the event loop when reading the whole journal. */
export const BATCH = 128;

/**
 * Seals the rows since the newest checkpoint and returns the newest one. Every row is checked
 * first, so a checkpoint never vouches for a row that was altered before it. Rows are only
 * appended, and the chain depends only on them, so processes that do this at the same time compute
 * the same chain.
 */
export async function makeCheckpoint(store: TableStore): Promise<Sealed<Checkpoint> | undefined> {
  const after = Number.MAX_SAFE_INTEGER;
  const { newest, target } = await store.read({ checkpointsAfter: after }, (tables) => ({
    newest: newestCheckpoint(tables),
    target: tables.lastSeq(),
  }));
  let seq = newest?.record.throughSeq ?? 0;
  if (seq >= target) return newest;
  let chain = newest?.record.chain ?? CHAIN_START;
  while (seq < target) {
    const page = { afterSeq: seq, limit: Math.min(BATCH, target - seq) };
    const rows = await store.read({ page }, (tables) => tables.page(page));
    if (rows.length === 0) throw tampered(seq + 1, 'it is missing');
    for (const row of rows) {
      if (row.seq !== seq + 1) throw tampered(seq + 1, 'it is missing');
      chain = extendChain(store.context, chain, openRow(store.context, row).digest);
      seq = row.seq;
    }
    await nextTurn();
  }
  return await store.decide({ checkpointsAfter: seq - 1 }, 'flushed', (tables) =>
    insertCheckpoint(tables, seq, chain),
  );
}

/** The checkpoint that covers the most rows, with its seal checked. */
function newestCheckpoint(tables: LedgerTables): Sealed<Checkpoint> | undefined {
  const row = tables.newestCheckpoint();
  return row && openCheckpoint(tables.context, row);
}

/** The first checkpoint that reaches beyond `seq`. */
export function checkpointAfter(tables: LedgerTables, seq: number): Sealed<Checkpoint> | undefined {
  const row = tables.checkpointAfter(seq);
  return row && openCheckpoint(tables.context, row);
}

function openCheckpoint({ sealer }: LedgerContext, row: CheckpointRow): Sealed<Checkpoint> {
  const seal = { key: row.sealKey, mac: row.sealMac };
  const sealed = sealer.open(checkpointRecord, row.text, seal);
  const { throughSeq, rows } = sealed.record;
  if (throughSeq !== row.throughSeq || rows !== throughSeq)
    throw tampered(row.throughSeq, 'its checkpoint was moved');
  return sealed;
}

function insertCheckpoint(
  tables: LedgerTables,
  throughSeq: number,
  chain: Digest,
): Sealed<Checkpoint> | undefined {
  const rival = checkpointAfter(tables, throughSeq - 1);
  if (rival?.record.throughSeq === throughSeq) {
    if (rival.record.chain !== chain)
      throw tampered(throughSeq, 'its checkpoint was made from other rows');
  } else {
    const at = instant(tables.now());
    const record = { version: 1 as const, throughSeq, rows: throughSeq, chain, at };
    const { text, seal } = tables.context.sealer.seal(checkpointRecord, record);
    tables.addCheckpoint({ throughSeq, text, sealKey: seal.key, sealMac: seal.mac });
  }
  return newestCheckpoint(tables);
}
