import type { DatabaseSync } from 'node:sqlite';
import { type PromotionRefusal, refusedPromotion } from '../../backend/candidate.ts';
import type { AdapterContext, Promotion } from '../../contract/adapter.ts';
import type { MarkerText } from '../../contract/proof.ts';
import { EffectMatchError } from '../../errors.ts';
import {
  asFault,
  extendedCode,
  isBusy,
  openDatabase,
  pinDurability,
  primaryCode,
  retryWhileBusy,
  SQLITE,
  statement,
} from '../../sqlite/connection.ts';
import {
  advanceState,
  findProblem,
  insertMarker,
  PROBE_TABLE,
  type StateVersion,
  type StoredState,
} from './control.ts';

const CONSTRAINT_PRIMARYKEY = 1555;

/** What becomes durable, and on which condition. */
export interface PromotionRequest {
  readonly marker: MarkerText;
  readonly base: StateVersion;
  readonly next: StoredState;
  /** What an admission probe writes next to the state. */
  readonly token: string | undefined;
}

/** Where a state is promoted. */
export interface PromotionSite {
  readonly backend: string;
  readonly busyTimeoutMs: number;
  readonly reached: AdapterContext['reached'];
  /** Whether a different file is at the path now. */
  readonly isReplaced: () => boolean;
  readonly connection: StoreConnection;
}

/**
 * The connection that reads for candidates and promotes them: what it wrote is still in its memory
 * when the next candidate reads. Its transactions begin and end within one turn of the event loop,
 * so nothing else ever runs inside one.
 */
export class StoreConnection {
  readonly #file: string;
  readonly #isReplaced: () => boolean;
  #db: DatabaseSync | undefined;
  #closed = false;

  constructor(file: string, isReplaced: () => boolean) {
    this.#file = file;
    this.#isReplaced = isReplaced;
  }

  /** Opens the connection if it is not open. A missing or different file is not opened. */
  open(): DatabaseSync {
    if (this.#db !== undefined) return this.#db;
    if (this.#closed) throw unavailable('the adapter is closed');
    if (this.#isReplaced()) throw unavailable(REPLACED.detail);
    const db = openDatabase(this.#file);
    try {
      // This holds as long as the connection: the setting is its own, and a file that a connection
      // has open cannot be taken out of WAL mode.
      pinDurability(db);
    } catch (error) {
      db.close();
      throw error;
    }
    this.#db = db;
    return db;
  }

  /** Gives up a connection whose last promotion is not known to be over. */
  drop(): void {
    const db = this.#db;
    this.#db = undefined;
    db?.close();
  }

  close(): void {
    this.#closed = true;
    this.drop();
  }
}

function unavailable(what: string): EffectMatchError {
  return new EffectMatchError('ERR_EM_ADAPTER_UNAVAILABLE', what);
}

/**
 * Marker and state in one flushed transaction, on the condition that the durable state still is the
 * base: of two candidates of one base only one can be promoted. Until COMMIT has been issued every
 * failure is a refusal, proved by the rollback.
 */
export async function promoteState(
  request: PromotionRequest,
  site: PromotionSite,
): Promise<Promotion> {
  const { connection } = site;
  let db: DatabaseSync;
  try {
    db = connection.open();
  } catch (error) {
    return site.isReplaced() ? REPLACED : refusedPromotion('backend-unavailable', String(error));
  }
  return await promoteOn(db, request, site);
}

/** The same on a connection that is open and has no transaction. */
export async function promoteOn(
  db: DatabaseSync,
  request: PromotionRequest,
  site: PromotionSite,
): Promise<Promotion> {
  let promotion: Promotion;
  try {
    promotion = await retryWhileBusy(() => promoteNow(db, request, site), {
      deadlineMs: site.busyTimeoutMs,
    });
  } catch (error) {
    if ((error as Partial<EffectMatchError>).code !== 'ERR_EM_STORE_BUSY') throw error;
    return refuse(db, refusedPromotion('busy', String(error)));
  }
  if (promotion.kind === 'confirmed') site.reached('adapter:commit-returned');
  return promotion;
}

/** One attempt. A connection that is left in a transaction, or may be, is given up. */
function promoteNow(db: DatabaseSync, request: PromotionRequest, site: PromotionSite): Promotion {
  let promotion: Promotion | undefined;
  try {
    promotion = tryPromotion(db, request, site);
    return promotion;
  } finally {
    if (promotion?.kind === 'unknown' || db.isTransaction) site.connection.drop();
  }
}

/**
 * From BEGIN to COMMIT without a pause. Busy is thrown, after the rollback that makes it
 * repeatable.
 */
function tryPromotion(db: DatabaseSync, request: PromotionRequest, site: PromotionSite): Promotion {
  try {
    statement(db, 'begin immediate').run();
    const refusal = writeAll(db, request, site);
    if (refusal !== undefined) return refuse(db, refusal);
  } catch (error) {
    return giveUp(db, error, 'marker-failed');
  }
  site.reached('adapter:marker-written');
  try {
    statement(db, 'commit').run();
  } catch (error) {
    // Only with the transaction still open is it known that COMMIT did nothing; an I/O error proves
    // nothing either way.
    const isUndone =
      db.isTransaction && (isBusy(error) || primaryCode(error) === SQLITE.CONSTRAINT);
    if (isUndone) return giveUp(db, error, 'busy');
    return {
      kind: 'unknown',
      cause: asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', 'COMMIT failed'),
    };
  }
  if (db.isTransaction)
    return { kind: 'unknown', cause: new Error('COMMIT returned, with the transaction open') };
  return { kind: 'confirmed' };
}

/** Everything between BEGIN and COMMIT; a refusal must be rolled back. */
function writeAll(
  db: DatabaseSync,
  request: PromotionRequest,
  site: PromotionSite,
): PromotionRefusal | undefined {
  const { marker, base, next, token } = request;
  const problem = findProblem(db);
  if (problem !== undefined) return refusedPromotion('boundary-changed', problem);
  if (site.isReplaced()) return REPLACED;
  try {
    insertMarker(db, marker);
  } catch (error) {
    if (extendedCode(error) !== CONSTRAINT_PRIMARYKEY) throw error;
    return refusedPromotion('marker-conflict', 'a marker of this occurrence exists');
  }
  const moved = advanceState(db, { ...base, backend: site.backend }, next);
  if (moved === 'replaced') return REPLACED;
  if (moved === 'moved')
    return refusedPromotion(
      'base-moved',
      `the state is no longer version ${base.version}, from which this candidate was made`,
    );
  if (token !== undefined)
    db.prepare(`insert into main.${PROBE_TABLE} (token) values (?)`).run(token);
  return undefined;
}

function giveUp(db: DatabaseSync, error: unknown, reason: string): Promotion {
  const promotion = refuse(db, refusedPromotion(reason, String(error)));
  if (promotion.kind === 'refused' && isBusy(error)) throw error;
  return promotion;
}

/** Proves a refusal: the rollback returned and the transaction is over. */
function refuse(db: DatabaseSync, refusal: PromotionRefusal): Promotion {
  try {
    if (db.isTransaction) db.exec('rollback');
  } catch (cause) {
    return { kind: 'unknown', cause };
  }
  return db.isTransaction
    ? { kind: 'unknown', cause: new Error('the rollback did not end the transaction') }
    : refusal;
}

/** The file at the path is not the one that was opened. */
export const REPLACED = refusedPromotion(
  'backend-replaced',
  'the file at this path is not the one that was opened; open it again',
);
