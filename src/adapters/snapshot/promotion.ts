import type { DatabaseSync } from 'node:sqlite';
import { type PromotionRefusal, refusedPromotion } from '../../backend/candidate.ts';
import { FILE_REPLACED, unavailable } from '../../backend/setup.ts';
import type { AdapterContext, Promotion } from '../../contract/adapter.ts';
import type { MarkerText } from '../../contract/proof.ts';
import { commitAtOnce } from '../../sqlite/commit.ts';
import { openDatabase, pinDurability } from '../../sqlite/connection.ts';
import {
  advanceState,
  findProblem,
  insertMarker,
  PROBE_TABLE,
  type StateVersion,
  type StoredState,
} from './control.ts';

/** What to make durable, and on which base. */
interface PromotionRequest {
  readonly marker: MarkerText;
  readonly base: StateVersion;
  readonly next: StoredState;
  /** The token that the admission probe writes next to the state. */
  readonly token: string | undefined;
}

/** Where a state is promoted. */
export interface PromotionSite {
  readonly backend: string;
  readonly busyTimeoutMs: number;
  readonly reached: AdapterContext['reached'];
  /** Whether the file at the path is not the one that was opened. */
  readonly isReplaced: () => boolean;
  readonly connection: StoreConnection;
}

/**
 * The connection that reads for candidates and promotes them, so that the next candidate reads what
 * it wrote from its cache. Its transactions begin and end in one turn of the event loop, so nothing
 * else can run inside one.
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

  /**
   * Opens the connection if necessary, but never a missing or different file. If a failed promotion
   * left a transaction open, its connection is closed first.
   */
  open(): DatabaseSync {
    if (this.#db?.isTransaction) this.drop();
    if (this.#db !== undefined) return this.#db;
    if (this.#closed) throw unavailable('the adapter is closed');
    if (this.#isReplaced()) throw unavailable(FILE_REPLACED.detail);
    const db = openDatabase(this.#file);
    try {
      // This stays in effect: the setting belongs to the connection, and an open file cannot leave
      // WAL mode.
      pinDurability(db);
    } catch (error) {
      db.close();
      throw error;
    }
    this.#db = db;
    return db;
  }

  /** Closes a connection whose last promotion may not have ended. */
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

/**
 * Writes marker and state in one flushed transaction, if the durable state is still the base. Only
 * one of two candidates with the same base can be promoted.
 */
export async function promoteState(
  request: PromotionRequest,
  site: PromotionSite,
): Promise<Promotion> {
  let db: DatabaseSync;
  try {
    db = site.connection.open();
  } catch (error) {
    return site.isReplaced() ? REPLACED : refusedPromotion('backend-unavailable', String(error));
  }
  return await promoteOn(db, request, site);
}

const REPLACED = refusedPromotion(FILE_REPLACED.reason, FILE_REPLACED.detail);

/** The same, on an open connection without a transaction. */
export async function promoteOn(
  db: DatabaseSync,
  request: PromotionRequest,
  site: PromotionSite,
): Promise<Promotion> {
  const { busyTimeoutMs, reached, connection } = site;
  const promotion = await commitAtOnce(db, {
    marker: request.marker,
    insertMarker,
    busyTimeoutMs,
    reached,
    check() {
      const problem = findProblem(db);
      if (problem !== undefined) return refusedPromotion('boundary-changed', problem);
      return site.isReplaced() ? REPLACED : undefined;
    },
    write: () => writeState(db, request, site.backend),
  });
  if (promotion.kind === 'unknown') connection.drop();
  return promotion;
}

function writeState(
  db: DatabaseSync,
  { base, next, token }: PromotionRequest,
  backend: string,
): PromotionRefusal | undefined {
  const moved = advanceState(db, { ...base, backend }, next);
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
