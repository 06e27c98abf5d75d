import { invariant } from '../../../errors.ts';

/** Which transactions were over at one moment: all below `end` that are not `running`. */
export interface TransactionSnapshot {
  readonly start: bigint;
  readonly end: bigint;
  readonly running: ReadonlySet<bigint>;
}

/**
 * Reads the text of `pg_current_snapshot()`: the oldest that runs, the first that has not begun,
 * and those that run.
 */
export function parseSnapshot(text: string): TransactionSnapshot {
  const [, start, end, running] = /^(\d+):(\d+):([\d,]*)$/.exec(text) ?? [];
  invariant(
    start !== undefined && end !== undefined && running !== undefined,
    'a snapshot has its usual form',
  );
  return {
    start: BigInt(start),
    end: BigInt(end),
    running: new Set(running.split(',').filter(Boolean).map(BigInt)),
  };
}

/** With more transactions than this in between, the configuration is read again instead. */
const COUNTED_MAX = 10_000n;

/**
 * Whether every transaction that ended between two snapshots is one of `own`. A row of a catalogue
 * is written under a transaction id, and becomes visible when that transaction ends: if all that
 * ended are known to have left the catalogues alone, the catalogues are what they were.
 * Subtransactions are not listed as running, so that one of another session looks as if it had
 * ended; that costs a read and does no harm.
 */
export function endedOnly(
  own: ReadonlySet<bigint>,
  before: TransactionSnapshot,
  after: TransactionSnapshot,
): boolean {
  const isKnown = (id: bigint) => after.running.has(id) || own.has(id);
  for (const id of before.running) if (!isKnown(id)) return false;
  if (after.end - before.end > COUNTED_MAX) return false;
  for (let id = before.end; id < after.end; id += 1n) if (!isKnown(id)) return false;
  return true;
}
