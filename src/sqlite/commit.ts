import type { DatabaseSync } from 'node:sqlite';
import { type PromotionRefusal, refusedPromotion } from '../backend/candidate.ts';
import { adapterFault } from '../backend/promotable.ts';
import type { AdapterRefusal } from '../backend/setup.ts';
import type { Promotion } from '../contract/adapter.ts';
import type { MarkerText } from '../contract/proof.ts';
import type { Reached } from '../contract/steps.ts';
import { EffectMatchError } from '../errors.ts';
import {
  asFault,
  extendedCode,
  isBusy,
  primaryCode,
  retryWhileBusy,
  SQLITE,
  statement,
} from './connection.ts';
import type { MarkerTable } from './marker-table.ts';

const CONSTRAINT_PRIMARYKEY = 1555;

/** A promotion that commits in one SQLite transaction. */
export interface MarkedCommit {
  readonly marker: MarkerText;
  readonly insertMarker: MarkerTable['insertMarker'];
  readonly busyTimeoutMs: number;
  readonly reached: Reached;
  /** Returns a reason not to commit, before anything is written. */
  readonly check: () => PromotionRefusal | undefined;
  /** Writes what the commit needs besides the marker. Returns a reason not to commit. */
  readonly write: () => PromotionRefusal | undefined;
}

/** Adds the marker to the open transaction and commits it. Waits for readers that block it. */
export async function commitHeld(db: DatabaseSync, marked: MarkedCommit): Promise<Promotion> {
  const stopped = writeMarked(db, marked);
  if (stopped !== undefined) return stopped;
  try {
    await retryWhileBusy(() => db.exec('commit'), { deadlineMs: marked.busyTimeoutMs });
  } catch (error) {
    return judgeCommitError(db, error);
  }
  return confirm(db, marked);
}

/**
 * Like {@link commitHeld}, but in a new transaction, from BEGIN to COMMIT in one turn of the event
 * loop, so that nothing else can run inside it. Retries as a whole while the file is busy.
 */
export async function commitAtOnce(db: DatabaseSync, marked: MarkedCommit): Promise<Promotion> {
  const deadline = { deadlineMs: marked.busyTimeoutMs };
  try {
    const stopped = await retryWhileBusy(() => tryCommit(db, marked), deadline);
    if (stopped !== undefined) return stopped;
  } catch (error) {
    if (!isBusyFault(error)) throw error;
    return rollBack(db, refusedPromotion('busy', 'other writers kept the file locked'));
  }
  return confirm(db, marked);
}

/** Returns why it stopped; undefined if COMMIT returned. */
function tryCommit(db: DatabaseSync, marked: MarkedCommit): Promotion | undefined {
  statement(db, 'begin immediate').run();
  const stopped = writeMarked(db, marked);
  if (stopped !== undefined) return stopped;
  try {
    statement(db, 'commit').run();
    return undefined;
  } catch (error) {
    const judged = judgeCommitError(db, error);
    // It was rolled back, so everything can be retried.
    if (judged.kind === 'refused' && isBusy(error)) throw error;
    return judged;
  }
}

/** Before COMMIT is issued, every failure is a refusal, and the rollback proves it. */
function writeMarked(db: DatabaseSync, marked: MarkedCommit): Promotion | undefined {
  try {
    const refusal = marked.check() ?? addMarker(db, marked) ?? marked.write();
    if (refusal !== undefined) return rollBack(db, refusal);
    marked.reached('adapter:marker-written');
    return undefined;
  } catch (error) {
    return rollBack(db, refusedPromotion('marker-failed', String(error)));
  }
}

function addMarker(
  db: DatabaseSync,
  { marker, insertMarker }: MarkedCommit,
): PromotionRefusal | undefined {
  try {
    insertMarker(db, marker);
    return undefined;
  } catch (error) {
    if (extendedCode(error) !== CONSTRAINT_PRIMARYKEY) throw error;
    return refusedPromotion(
      'marker-conflict',
      'a marker of this occurrence exists, so it can no longer commit',
    );
  }
}

function confirm(db: DatabaseSync, { reached }: MarkedCommit): Promotion {
  if (db.isTransaction)
    return { kind: 'unknown', cause: new Error('COMMIT returned with the transaction open') };
  reached('adapter:commit-returned');
  return { kind: 'confirmed' };
}

/**
 * Only two errors of COMMIT prove that nothing became durable, because SQLite then leaves the
 * transaction open: a violated deferred constraint, and a busy file. An I/O error or a full disk
 * proves nothing. With a write-ahead log, the commit frame may have been written and only its flush
 * failed. This process continues as if it was rolled back, but a recovery after a crash finds a
 * valid commit in the log. With a rollback journal, the commit is the removal of the journal, which
 * may or may not have reached the disk. The void marker decides, because its own commit overwrites
 * those frames or follows them.
 */
function judgeCommitError(db: DatabaseSync, error: unknown): Promotion {
  if (db.isTransaction && (isBusy(error) || isBusyFault(error)))
    return rollBack(db, refusedPromotion('busy', 'readers kept COMMIT from finishing'));
  if (db.isTransaction && primaryCode(error) === SQLITE.CONSTRAINT)
    return rollBack(db, refusedPromotion('constraint', String(error)));
  return { kind: 'unknown', cause: asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', 'COMMIT failed') };
}

/** A refusal needs proof: the rollback returned and the transaction has ended. */
function rollBack(db: DatabaseSync, refusal: PromotionRefusal): Promotion {
  try {
    if (db.isTransaction) db.exec('rollback');
  } catch (cause) {
    if (!isBusy(cause)) return { kind: 'unknown', cause };
  }
  if (!db.isTransaction) return refusal;
  const { reason, detail } = refusal;
  return {
    kind: 'unknown',
    cause: new Error(`${reason}: ${detail}; the rollback did not end it`),
  };
}

/** Explains why a file could not be opened as a backend. */
export function openingFault(error: unknown, refused: AdapterRefusal): EffectMatchError {
  switch (primaryCode(error)) {
    case SQLITE.READONLY:
      return refused('the file or its folder is read-only; a promotion needs write access', error);
    case SQLITE.NOTADB:
      return refused('the file is not a SQLite database', error);
    default:
      return adapterFault(error);
  }
}

/** Whether this is our own error after waiting for a busy file. */
export function isBusyFault(error: unknown): boolean {
  return error instanceof EffectMatchError && error.code === 'ERR_EM_STORE_BUSY';
}
