import type { DatabaseSync } from 'node:sqlite';
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
import { advanceState, type Current, findProblem, PROBE_TABLE, type Version } from './control.ts';
import type { Document } from './document.ts';
import { faultOf, insertMarker } from './markers.ts';

const CONSTRAINT_PRIMARYKEY = 1555;
const MAX_KEPT_CHARACTERS = 4 * 1024 * 1024;

/** What becomes durable, and on which condition. */
export interface PromotionRequest {
  readonly marker: MarkerText;
  readonly base: Version;
  readonly next: Current;
  /** What an admission probe writes beside the state. */
  readonly token: string | undefined;
}

export interface PromotionTools {
  readonly backend: string;
  readonly busyTimeoutMs: number;
  readonly reached: AdapterContext['reached'];
  /** Whether another file is at the path by now. */
  readonly isReplaced: () => boolean;
  readonly connection: StoreConnection;
}

/**
 * The connection that reads for stages and promotes them: what it wrote is still in its memory when
 * the next stage reads. Its transactions begin and end within one turn of the event loop, so
 * nothing else ever runs inside one.
 */
export class StoreConnection {
  readonly #file: string;
  readonly #isReplaced: () => boolean;
  #db: DatabaseSync | undefined;
  #closed = false;
  #promoted: Document | undefined;

  constructor(file: string, isReplaced: () => boolean) {
    this.#file = file;
    this.#isReplaced = isReplaced;
  }

  /** Opens it where it is not open; never another file, and none where it is missing. */
  open(): DatabaseSync {
    if (this.#db !== undefined) return this.#db;
    if (this.#closed)
      throw new EffectMatchError('ERR_EM_ADAPTER_UNAVAILABLE', 'the adapter is closed');
    if (this.#isReplaced())
      throw new EffectMatchError('ERR_EM_ADAPTER_UNAVAILABLE', REPLACED.detail);
    const db = openDatabase(this.#file);
    try {
      // For as long as it is open: the setting is this connection's own, nobody can take a file out
      // of WAL mode that a connection has open, and what a rollback journal needs is enough for
      // WAL.
      pinDurability(db);
    } catch (error) {
      db.close();
      throw error;
    }
    this.#db = db;
    return db;
  }

  /** What an attempt finds, which is made again while the file is busy. */
  async read<T>(
    attempt: (db: DatabaseSync) => T,
    options: { readonly deadlineMs: number },
  ): Promise<T> {
    try {
      return await retryWhileBusy(() => attempt(this.open()), options);
    } catch (error) {
      throw faultOf(error);
    }
  }

  /**
   * What a text that was read says. Most stages find what the last promotion here has left, and
   * that is known.
   */
  documentOf(text: string): Document {
    return this.#promoted?.text === text ? this.#promoted : { text, state: JSON.parse(text) };
  }

  /** Remembers what was promoted, unless it is so large that it is better read again. */
  keep(document: Document): void {
    this.#promoted = document.text.length > MAX_KEPT_CHARACTERS ? undefined : document;
  }

  /**
   * Gives up a connection whose last promotion is not known to be over; nobody may be misled by
   * what it sees.
   */
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
 * Marker and state in one flushed transaction, on the condition that the durable state still is the
 * base: of two candidates of one base only one can be promoted. Until COMMIT has been issued every
 * failure is a refusal, proved by the rollback.
 */
export async function promoteState(
  request: PromotionRequest,
  tools: PromotionTools,
): Promise<Promotion> {
  const { connection } = tools;
  let db: DatabaseSync;
  try {
    db = connection.open();
  } catch (error) {
    if (tools.isReplaced()) return REPLACED;
    return { kind: 'refused', reason: 'backend-unavailable', detail: String(error) };
  }
  return await promoteOn(db, request, tools);
}

/** The same on a connection that is open and has no transaction. */
export async function promoteOn(
  db: DatabaseSync,
  request: PromotionRequest,
  tools: PromotionTools,
): Promise<Promotion> {
  let promotion: Promotion;
  try {
    promotion = await retryWhileBusy(() => promoteNow(db, request, tools), {
      deadlineMs: tools.busyTimeoutMs,
    });
  } catch (error) {
    if ((error as Partial<EffectMatchError>).code !== 'ERR_EM_STORE_BUSY') throw error;
    return refuse(db, { kind: 'refused', reason: 'busy', detail: String(error) });
  }
  if (promotion.kind === 'confirmed') tools.reached('adapter:commit-returned');
  return promotion;
}

/**
 * One attempt, after which nobody finds a connection with a transaction, or with one of which
 * nobody knows the end.
 */
function promoteNow(db: DatabaseSync, request: PromotionRequest, tools: PromotionTools): Promotion {
  let promotion: Promotion | undefined;
  try {
    promotion = tryPromotion(db, request, tools);
    return promotion;
  } finally {
    if (promotion?.kind === 'unknown' || db.isTransaction) tools.connection.drop();
  }
}

/**
 * From BEGIN to COMMIT without a pause. Busy is thrown, after the rollback that makes it
 * repeatable.
 */
function tryPromotion(
  db: DatabaseSync,
  request: PromotionRequest,
  tools: PromotionTools,
): Promotion {
  try {
    statement(db, 'begin immediate').run();
    const refusal = writeAll(db, request, tools);
    if (refusal !== undefined) return refuse(db, refusal);
  } catch (error) {
    return giveUp(db, error, 'marker-failed');
  }
  tools.reached('adapter:marker-written');
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
    return { kind: 'unknown', cause: new Error('COMMIT returned with the transaction open') };
  return { kind: 'confirmed' };
}

type Refusal = Extract<Promotion, { readonly kind: 'refused' }>;

/**
 * Everything between BEGIN and COMMIT; what speaks against it is returned and must be rolled back.
 */
function writeAll(
  db: DatabaseSync,
  request: PromotionRequest,
  tools: PromotionTools,
): Refusal | undefined {
  const { marker, base, next, token } = request;
  const problem = findProblem(db);
  if (problem !== undefined)
    return { kind: 'refused', reason: 'boundary-changed', detail: problem };
  if (tools.isReplaced()) return REPLACED;
  try {
    insertMarker(db, marker);
  } catch (error) {
    if (extendedCode(error) !== CONSTRAINT_PRIMARYKEY) throw error;
    return {
      kind: 'refused',
      reason: 'marker-conflict',
      detail: 'a marker of this occurrence exists',
    };
  }
  const moved = advanceState(db, { ...base, backend: tools.backend }, next);
  if (moved === 'replaced') return REPLACED;
  if (moved === 'moved') {
    const detail = `the state is no longer version ${base.version}, from which this candidate was made`;
    return { kind: 'refused', reason: 'base-moved', detail };
  }
  if (token !== undefined)
    db.prepare(`insert into main.${PROBE_TABLE} (token) values (?)`).run(token);
  return undefined;
}

function giveUp(db: DatabaseSync, error: unknown, reason: string): Promotion {
  const promotion = refuse(db, { kind: 'refused', reason, detail: String(error) });
  if (promotion.kind === 'refused' && isBusy(error)) throw error;
  return promotion;
}

/** A refusal is only as good as its proof: the rollback returned and the transaction is over. */
function refuse(db: DatabaseSync, refusal: Refusal): Promotion {
  try {
    if (db.isTransaction) db.exec('rollback');
  } catch (cause) {
    return { kind: 'unknown', cause };
  }
  return db.isTransaction
    ? { kind: 'unknown', cause: new Error('the rollback did not end the transaction') }
    : refusal;
}

const REPLACED: Refusal = {
  kind: 'refused',
  reason: 'backend-replaced',
  detail: 'the file at this path is not the one that was opened; open it again',
};
