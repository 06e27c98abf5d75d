import { setImmediate as nextTurn } from 'node:timers/promises';
import { instant } from '../../contract/clock.ts';
import type { Sealed } from '../../contract/seal.ts';
import { type Checkpoint, checkpointRecord } from '../../protocol/checkpoint.ts';
import type { Digest } from '../../protocol/record.ts';
import { CHAIN_START, extendChain, openRow, tampered } from '../journal.ts';
import { lastSeq, pageRows, read, type Session, writeFlushed } from './session.ts';

/** Rows per turn of the event loop when the journal is read through. */
export const BATCH = 128;

/**
 * Seals the rows since the newest checkpoint and returns the newest one. Every row is checked
 * before it is covered, so a checkpoint never vouches for a row that was altered before it was
 * taken. Rows are only ever appended, and the chain depends on them alone: processes that do this
 * at the same time arrive at the same chain.
 */
export async function makeCheckpoint(session: Session): Promise<Sealed<Checkpoint> | undefined> {
  const newest = await read(session, () => newestCheckpoint(session));
  const target = await read(session, () => lastSeq(session));
  let seq = newest?.record.throughSeq ?? 0;
  if (seq >= target) return newest;
  let chain = newest?.record.chain ?? CHAIN_START;
  while (seq < target) {
    const range = { afterSeq: seq, limit: Math.min(BATCH, target - seq) };
    const rows = await read(session, () => pageRows(session, range));
    if (rows.length === 0) throw tampered(seq + 1, 'it is missing');
    for (const row of rows) {
      if (row.seq !== seq + 1) throw tampered(seq + 1, 'it is missing');
      chain = extendChain(session.context, chain, openRow(session.context, row).digest);
      seq = row.seq;
    }
    await nextTurn();
  }
  return await writeFlushed(session, () => insertCheckpoint(session, seq, chain));
}

/** The checkpoint that covers most, its seal checked. */
function newestCheckpoint(session: Session): Sealed<Checkpoint> | undefined {
  const row = session.sql(`${CHECKPOINTS} order by through_seq desc limit 1`).get();
  return row && openCheckpoint(session, row as unknown as CheckpointRow);
}

/** The first checkpoint that covers more than the rows up to `seq`. */
export function checkpointAfter(session: Session, seq: number): Sealed<Checkpoint> | undefined {
  const row = session
    .sql(`${CHECKPOINTS} where through_seq > ? order by through_seq limit 1`)
    .get(seq);
  return row && openCheckpoint(session, row as unknown as CheckpointRow);
}

const CHECKPOINTS =
  'select through_seq as throughSeq, text, seal_key as sealKey, seal_mac as sealMac from checkpoint';

interface CheckpointRow {
  readonly throughSeq: number;
  readonly text: string;
  readonly sealKey: string;
  readonly sealMac: string;
}

function openCheckpoint(session: Session, row: CheckpointRow): Sealed<Checkpoint> {
  const seal = { key: row.sealKey, mac: row.sealMac };
  const sealed = session.context.sealer.open(checkpointRecord, row.text, seal);
  const { throughSeq, rows } = sealed.record;
  if (throughSeq !== row.throughSeq || rows !== throughSeq)
    throw tampered(row.throughSeq, 'its checkpoint was moved');
  return sealed;
}

function insertCheckpoint(
  session: Session,
  throughSeq: number,
  chain: Digest,
): Sealed<Checkpoint> | undefined {
  const rival = checkpointAfter(session, throughSeq - 1);
  if (rival?.record.throughSeq === throughSeq) {
    if (rival.record.chain !== chain)
      throw tampered(throughSeq, 'its checkpoint was made from other rows');
  } else {
    const at = instant(session.store.clock.now());
    const record = { version: 1 as const, throughSeq, rows: throughSeq, chain, at };
    const { text, seal } = session.context.sealer.seal(checkpointRecord, record);
    session
      .sql('insert into checkpoint (through_seq, text, seal_key, seal_mac) values (?, ?, ?, ?)')
      .run(throughSeq, text, seal.key, seal.mac);
  }
  return newestCheckpoint(session);
}
