import type { DatabaseSync } from 'node:sqlite';
import type { AdapterContext, Promotion } from '../../contract/adapter.ts';
import type { MarkerText } from '../../contract/proof.ts';
import { EffectMatchError } from '../../errors.ts';
import {
  asFault,
  extendedCode,
  isBusy,
  primaryCode,
  retryWhileBusy,
  SQLITE,
} from '../../sqlite/connection.ts';
import { insertMarker } from './markers.ts';

const CONSTRAINT_PRIMARYKEY = 1555;

/** What a promotion needs beside the candidate. */
export interface PromotionTools {
  readonly busyTimeoutMs: number;
  readonly reached: AdapterContext['reached'];
  /**
   * Whether anything was done to the held candidate, or to its connection's settings, that no
   * action did.
   */
  readonly isTouched: boolean;
  /** Whether another file is at the path by now: a commit would go where nobody looks. */
  readonly isReplaced: () => boolean;
}

/**
 * Writes the marker into the candidate and commits both at once. Until COMMIT has been issued every
 * failure is a refusal, proved by the rollback. Afterwards only two errors say that nothing became
 * durable, because SQLite leaves the transaction open with them: a violated deferred constraint,
 * and a reader in the way of a rollback journal.
 */
export async function promoteCandidate(
  db: DatabaseSync,
  marker: MarkerText,
  tools: PromotionTools,
): Promise<Promotion> {
  try {
    if (tools.isTouched)
      return refuse(db, 'candidate-changed', 'the candidate or a setting of its connection moved');
    insertMarker(db, marker);
    if (tools.isReplaced())
      return refuse(db, 'backend-replaced', 'another file is at the path of this database');
  } catch (error) {
    const conflict = extendedCode(error) === CONSTRAINT_PRIMARYKEY;
    return refuse(db, conflict ? 'marker-conflict' : 'marker-failed', String(error));
  }
  tools.reached('adapter:marker-written');
  try {
    await retryWhileBusy(() => db.exec('commit'), { deadlineMs: tools.busyTimeoutMs });
  } catch (error) {
    return judgeCommitError(db, error);
  }
  if (db.isTransaction)
    return { kind: 'unknown', cause: new Error('COMMIT returned with the transaction open') };
  tools.reached('adapter:commit-returned');
  return { kind: 'confirmed' };
}

/**
 * An I/O error or a full disk at COMMIT proves nothing. With a write-ahead log the commit frame may
 * have been written and only its flush have failed: this process goes on as if rolled back, but a
 * recovery that reads the log after a crash finds a valid commit. With a rollback journal the
 * commit is the removal of the journal, which may or may not have reached the disk. The void marker
 * decides, because its own commit writes over those frames or after them.
 */
function judgeCommitError(db: DatabaseSync, error: unknown): Promotion {
  const busy = error instanceof EffectMatchError && error.code === 'ERR_EM_STORE_BUSY';
  if (db.isTransaction && busy) return refuse(db, 'busy', 'readers kept COMMIT from finishing');
  if (db.isTransaction && primaryCode(error) === SQLITE.CONSTRAINT)
    return refuse(db, 'constraint', String(error));
  return { kind: 'unknown', cause: asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', 'COMMIT failed') };
}

/** A refusal is only as good as its proof: the rollback returned and the transaction is over. */
function refuse(db: DatabaseSync, reason: string, detail: string): Promotion {
  try {
    if (db.isTransaction) db.exec('rollback');
  } catch (cause) {
    if (!isBusy(cause)) return { kind: 'unknown', cause };
  }
  if (db.isTransaction)
    return {
      kind: 'unknown',
      cause: new Error(`${reason}: ${detail}; the rollback did not end it`),
    };
  return { kind: 'refused', reason, detail };
}
