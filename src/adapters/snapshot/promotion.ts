import type { DatabaseSync } from 'node:sqlite';
import { type PromotionRefusal, refusedPromotion } from '../../backend/candidate.ts';
import { FILE_REPLACED } from '../../backend/setup.ts';
import type { AdapterContext, Promotion } from '../../contract/adapter.ts';
import type { MarkerText } from '../../contract/proof.ts';
import { EffectMatchError } from '../../errors.ts';
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
  /** Whether the file at the path is no longer the one that was opened. */
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

  /**
   * Opens the connection if it is not open. A missing or different file is not opened. A transaction
   * that is still open was left by a promotion that failed: its connection is given up.
   */
  open(): DatabaseSync {
    if (this.#db?.isTransaction) this.drop();
    if (this.#db !== undefined) return this.#db;
    if (this.#closed) throw unavailable('the adapter is closed');
    if (this.#isReplaced()) throw unavailable(FILE_REPLACED.detail);
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
 * base: of two candidates of one base only one can be promoted.
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

/** The same on a connection that is open and has no transaction. */
export async function promoteOn(
  db: DatabaseSync,
  request: PromotionRequest,
  site: PromotionSite,
): Promise<Promotion> {
  const { busyTimeoutMs, reached, connection } = site;
  const promotion = await commitAtOnce(db, {
    ...{ marker: request.marker, insertMarker, busyTimeoutMs, reached },
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
