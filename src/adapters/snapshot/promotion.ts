import type { DatabaseSync } from 'node:sqlite';
import type { AdapterContext, Promotion } from '../../contract/adapter.ts';
import type { MarkerText } from '../../contract/proof.ts';
import { EffectMatchError } from '../../errors.ts';
import {
  asFault,
  extendedCode,
  openDatabase,
  pinDurability,
  primaryCode,
  retryWhileBusy,
  SQLITE,
} from '../../sqlite/connection.ts';
import { advanceState, type Current, findProblem, PROBE_TABLE, readBackend, type Version } from './control.ts';
import { insertMarker } from './markers.ts';

const CONSTRAINT_PRIMARYKEY = 1555;

/** What becomes durable, and on which condition. */
export interface PromotionRequest {
  readonly marker: MarkerText;
  readonly base: Version;
  readonly next: Current;
  /** What an admission probe writes beside the state. */
  readonly token: string | undefined;
}

export interface PromotionTools {
  readonly file: string;
  readonly backend: string;
  readonly busyTimeoutMs: number;
  readonly reached: AdapterContext['reached'];
  /** Whether another file is at the path by now. */
  readonly isReplaced: () => boolean;
  /** Where a connection waits for the next promotion. */
  readonly connections: PromotionConnections;
}

/**
 * The connection that promotions use one after the other. A new one costs a flush of the folder on its first commit,
 * beside its opening. Promotions at the same time get connections of their own.
 */
export class PromotionConnections {
  #idle: DatabaseSync | undefined;
  #closed = false;

  take(file: string): DatabaseSync {
    const idle = this.#idle;
    this.#idle = undefined;
    return idle ?? openDatabase(file);
  }

  /** Keeps it for the next promotion. One whose last promotion is not known to be over is never used again. */
  leave(db: DatabaseSync, last: Promotion | undefined): void {
    const isOver = last !== undefined && last.kind !== 'unknown' && !db.isTransaction;
    if (isOver && !this.#closed && this.#idle === undefined) this.#idle = db;
    else db.close();
  }

  close(): void {
    this.#closed = true;
    this.#idle?.close();
    this.#idle = undefined;
  }
}

/**
 * Marker, version pointer and state in one flushed transaction, on the condition that the pointer still names the
 * base: of two candidates of one base only one can be promoted. Until COMMIT has been issued every failure is a
 * refusal, proved by the rollback. Nobody else has the connection meanwhile, so nothing else is in its transaction.
 */
export async function promoteState(request: PromotionRequest, tools: PromotionTools): Promise<Promotion> {
  // Asked before, because opening would create a missing file.
  if (tools.isReplaced()) return REPLACED;
  const { connections } = tools;
  let db: DatabaseSync;
  try {
    db = connections.take(tools.file);
  } catch (error) {
    return { kind: 'refused', reason: 'backend-unavailable', detail: String(error) };
  }
  let promotion: Promotion | undefined;
  try {
    promotion = await promoteOn(db, request, tools);
    return promotion;
  } finally {
    connections.leave(db, promotion);
  }
}

/** The same on a connection that is open and has no transaction. It is not closed here. */
export async function promoteOn(
  db: DatabaseSync,
  request: PromotionRequest,
  tools: PromotionTools,
): Promise<Promotion> {
  const deadline = { deadlineMs: tools.busyTimeoutMs };
  try {
    await retryWhileBusy(() => {
      pinDurability(db);
      db.exec('begin immediate');
    }, deadline);
    const refusal = writeAll(db, request, tools);
    if (refusal !== undefined) return refuse(db, refusal);
  } catch (error) {
    const busy = error instanceof EffectMatchError && error.code === 'ERR_EM_STORE_BUSY';
    return refuse(db, { kind: 'refused', reason: busy ? 'busy' : 'marker-failed', detail: String(error) });
  }
  tools.reached('adapter:marker-written');
  try {
    await retryWhileBusy(() => db.exec('commit'), deadline);
  } catch (error) {
    return judgeCommitError(db, error);
  }
  if (db.isTransaction) return { kind: 'unknown', cause: new Error('COMMIT returned with the transaction open') };
  tools.reached('adapter:commit-returned');
  return { kind: 'confirmed' };
}

type Refusal = Extract<Promotion, { readonly kind: 'refused' }>;

/** Everything between BEGIN and COMMIT; what speaks against it is returned and must be rolled back. */
function writeAll(db: DatabaseSync, request: PromotionRequest, tools: PromotionTools): Refusal | undefined {
  const { marker, base, next, token } = request;
  const problem = findProblem(db);
  if (problem !== undefined) return { kind: 'refused', reason: 'boundary-changed', detail: problem };
  if (tools.isReplaced() || readBackend(db) !== tools.backend) return REPLACED;
  try {
    insertMarker(db, marker);
  } catch (error) {
    if (extendedCode(error) !== CONSTRAINT_PRIMARYKEY) throw error;
    return { kind: 'refused', reason: 'marker-conflict', detail: 'a marker of this occurrence exists' };
  }
  if (!advanceState(db, base, next)) {
    const detail = `the state is no longer version ${base.version}, from which this candidate was made`;
    return { kind: 'refused', reason: 'base-moved', detail };
  }
  if (token !== undefined) db.prepare(`insert into main.${PROBE_TABLE} (token) values (?)`).run(token);
  return undefined;
}

/** Only with the transaction still open is it known that COMMIT did nothing; an I/O error proves nothing either way. */
function judgeCommitError(db: DatabaseSync, error: unknown): Promotion {
  const busy = error instanceof EffectMatchError && error.code === 'ERR_EM_STORE_BUSY';
  if (db.isTransaction && (busy || primaryCode(error) === SQLITE.CONSTRAINT)) {
    return refuse(db, { kind: 'refused', reason: 'busy', detail: String(error) });
  }
  return { kind: 'unknown', cause: asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', 'COMMIT failed') };
}

/** A refusal is only as good as its proof: the rollback returned and the transaction is over. */
function refuse(db: DatabaseSync, refusal: Refusal): Promotion {
  try {
    if (db.isTransaction) db.exec('rollback');
  } catch (cause) {
    return { kind: 'unknown', cause };
  }
  return db.isTransaction ? { kind: 'unknown', cause: new Error('the rollback did not end the transaction') } : refusal;
}

const REPLACED: Refusal = {
  kind: 'refused',
  reason: 'backend-replaced',
  detail: 'the file at this path is not the one that was opened; open it again',
};
