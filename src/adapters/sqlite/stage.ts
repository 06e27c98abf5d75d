import { randomBytes } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import type { AdapterContext, CandidateFacts, Evidence, Promotion, Stage, Staged } from '../../contract/adapter.ts';
import type { ConsumedPermit } from '../../contract/proof.ts';
import { EffectMatchError, invariant } from '../../errors.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import type { OccurrenceId } from '../../protocol/record.ts';
import type { Registration } from '../../protocol/registration.ts';
import {
  asFault,
  extendedCode,
  openDatabase,
  pinDurability,
  readPragma,
  retryWhileBusy,
  setPragma,
  statement,
} from '../../sqlite/connection.ts';
import { type CheckedAction, isProbe } from './action.ts';
import type { Affinity } from './affinity.ts';
import { type Catalog, type Relation, readVersions, versionsOf } from './catalog.ts';
import { PROBE_TABLE, readBackend } from './control.ts';
import {
  fingerprintEvidence,
  type Observed,
  observeCandidate,
  readClock,
  readSettings,
  takeSnapshot,
} from './evidence.ts';
import { type FenceRules, lowerFence, raiseFence } from './fence.ts';
import { findMarker } from './markers.ts';
import { promoteCandidate } from './promotion.ts';
import { readState } from './reading.ts';
import { runStatements } from './statements.ts';

/** What a stage needs of the adapter that opens it. */
export interface StageTools {
  readonly file: string;
  readonly backend: string;
  /** How long a COMMIT may wait for readers. */
  readonly busyTimeoutMs: number;
  /** How much of that is left for getting the write lock. */
  readonly lockWithinMs: number;
  readonly registration: Registration;
  readonly affinity: Affinity;
  /** The trusted connection: it sees the committed state beneath the candidate, which cannot move meanwhile. */
  readonly base: DatabaseSync;
  readonly reached: AdapterContext['reached'];
  /** The schema as the last survey saw it. */
  readonly catalog: Catalog;
  /** Whether another file is at the path by now. */
  readonly isReplaced: () => boolean;
  /** A connection from {@link openSpare} that nobody has used, if there is one. */
  readonly takeSpare: () => DatabaseSync | undefined;
  /** Called when a held stage is over, however it ended. */
  readonly onEnd: (stage: Stage) => void;
}

/**
 * Runs the action once in a transaction of its own, on a connection of its own, and holds it open. No action has used the
 * connection before, so it has no temporary objects, and it is closed with the stage, so it keeps none.
 */
export async function openStage(tools: StageTools, occurrence: OccurrenceId, action: CheckedAction): Promise<Staged> {
  // Asked before, because opening would create a missing file, and after the lock, because it may change in between.
  if (tools.isReplaced()) return REPLACED;
  const db = tools.takeSpare() ?? openCandidate(tools.file);
  try {
    const staged = await stageAction(tools, db, { occurrence, action });
    if (staged.kind === 'failed') closeCandidate(db);
    return staged;
  } catch (error) {
    closeCandidate(db);
    if (extendedCode(error) === undefined) throw error;
    throw asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', 'the candidate could not be held');
  }
}

function openCandidate(file: string): DatabaseSync {
  try {
    return openDatabase(file);
  } catch (error) {
    throw asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', 'the database could not be opened for a candidate');
  }
}

/**
 * A connection for a later stage, with everything on it that a stage sets and compiles before the action. Undefined
 * where another file was at the path meanwhile: an open connection stays with its file, whatever the path names later.
 */
export function openSpare(tools: Pick<StageTools, 'file' | 'isReplaced'>): DatabaseSync | undefined {
  if (tools.isReplaced()) return undefined;
  const db = openDatabase(tools.file);
  try {
    settle(db);
    readVersions(db);
    readSettings(db);
    readClock(db);
    readBackend(db);
    findMarker(db, '');
    if (!tools.isReplaced()) return db;
  } catch (error) {
    db.close();
    throw error;
  }
  db.close();
  return undefined;
}

async function stageAction(
  tools: StageTools,
  db: DatabaseSync,
  request: { readonly occurrence: OccurrenceId; readonly action: CheckedAction },
): Promise<Staged> {
  const { occurrence, action } = request;
  try {
    await retryWhileBusy(() => beginHeld(db), { deadlineMs: tools.lockWithinMs });
  } catch (error) {
    if (!(error instanceof EffectMatchError) || error.code !== 'ERR_EM_STORE_BUSY') throw error;
    return failed('busy', `another writer held the database for ${tools.busyTimeoutMs} ms`);
  }
  tools.reached('adapter:stage-opened');
  if (tools.isReplaced()) return REPLACED;
  const connections = { candidate: db, base: tools.base };
  const before = takeSnapshot(connections, tools.catalog);
  if (before.versions !== versionsOf(tools.catalog)) {
    return failed('boundary-changed', 'the schema changed after it was certified; certify again');
  }
  if (readBackend(db) !== tools.backend) return REPLACED;
  const marker = findMarker(db, occurrence);
  if (marker?.disposition === 'committed') {
    return failed(
      'already-committed',
      'its changes are in the database since an earlier execution; do not approve again',
    );
  }
  if (marker !== undefined) {
    return failed('already-void', 'an earlier attempt was interrupted and recovered: it can no longer commit');
  }
  const relations = writableRelations(tools, action);
  if (relations === undefined)
    return failed('boundary-changed', 'a registered table is no table any more; certify again');
  const session = db.createSession();
  const fromMs = readClock(db);
  const fence = raiseFence(db, fenceRules(tools.catalog, relations, action));
  const ran = runStatements(db, action, { fence, quotesValues: tools.registration.values === 'plain' });
  lowerFence(db);
  if (ran.kind === 'failed') return ran;
  tools.reached('adapter:action-done');
  const candidate = `sqlite:${tools.backend}:${randomBytes(16).toString('hex')}`;
  const window = { fromMs, toMs: readClock(db) };
  const observed = {
    candidate,
    connections,
    affinity: tools.affinity,
    catalog: tools.catalog,
    session,
    relations,
    fence,
    before,
    window,
  };
  return { kind: 'held', stage: new HeldStage(tools, occurrence, observed) };
}

function beginHeld(db: DatabaseSync): void {
  settle(db);
  statement(db, 'begin immediate').run();
}

/**
 * Everything that must be settled before BEGIN. Without cache spilling the lock stays RESERVED until COMMIT, so that the
 * trusted connection can read meanwhile, also with a rollback journal.
 */
function settle(db: DatabaseSync): void {
  pinDurability(db);
  if (readPragma(db, 'cache_spill') !== 0) setPragma(db, { name: 'cache_spill', value: 'off', reads: 0 });
}

function writableRelations(tools: StageTools, action: CheckedAction): readonly Relation[] | undefined {
  const names = isProbe(action) ? [PROBE_TABLE] : tools.registration.targets.map((target) => target.name);
  const relations = names.flatMap((name) => tools.catalog.relations.get(name) ?? []);
  return relations.length === names.length && relations.every(({ kind }) => kind === 'table') ? relations : undefined;
}

function fenceRules(catalog: Catalog, relations: readonly Relation[], action: CheckedAction): FenceRules {
  const named = (type: string) => catalog.objects.filter((object) => object.type === type).map((object) => object.name);
  return {
    writable: new Map(
      relations.map(({ name, withoutRowid, rowidAlias }) => [
        name,
        { hiddenRowid: !withoutRowid && rowidAlias === undefined },
      ]),
    ),
    views: new Set(named('view')),
    triggers: new Set(named('trigger')),
    isProbe: isProbe(action),
  };
}

/** A transaction held open with the action's writes in it. */
class HeldStage implements Stage {
  readonly candidate: string;
  readonly #tools: StageTools;
  readonly #occurrence: OccurrenceId;
  readonly #observed: Observed;
  #ended = false;

  constructor(tools: StageTools, occurrence: OccurrenceId, observed: Observed) {
    this.candidate = observed.candidate;
    this.#tools = tools;
    this.#occurrence = occurrence;
    this.#observed = observed;
  }

  /**
   * Declared state as the action found it: the committed rows beneath the candidate. Nobody can change them while
   * the candidate holds the write lock, and the action's own changes do not make its approval look stale.
   */
  async read(reads: readonly StateRead[]): Promise<readonly StateReading[]> {
    this.#assertHeld();
    return readState(this.#tools.base, this.#tools, reads);
  }

  async observe(): Promise<Evidence> {
    this.#assertHeld();
    return observeCandidate(this.#observed);
  }

  async recheck(): Promise<CandidateFacts> {
    this.#assertHeld();
    const { connections, session, catalog } = this.#observed;
    const evidence = fingerprintEvidence(session.changeset(), takeSnapshot(connections, catalog));
    return { candidate: this.candidate, evidence };
  }

  async promote(permit: ConsumedPermit): Promise<Promotion> {
    this.#assertHeld();
    const { marker } = permit;
    invariant(marker.occurrence === this.#occurrence, 'the permit is for the occurrence that was staged');
    const { connections, before } = this.#observed;
    this.#ended = true;
    try {
      return await promoteCandidate(connections.candidate, marker, { ...this.#tools, settings: before.settings });
    } finally {
      this.#end();
    }
  }

  async discard(): Promise<void> {
    this.#end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.discard();
  }

  #end(): void {
    this.#ended = true;
    closeCandidate(this.#observed.connections.candidate);
    this.#tools.onEnd(this);
  }

  #assertHeld(): void {
    invariant(!this.#ended && this.#observed.connections.candidate.isTransaction, 'the stage is still held');
  }
}

/** Rolls back what is still open and closes the connection, which ends its session too. */
function closeCandidate(db: DatabaseSync): void {
  if (!db.isOpen) return;
  try {
    if (db.isTransaction) db.exec('rollback');
  } catch {
    // A rollback that fails is repeated by closing, and by the next connection that finds the journal.
  } finally {
    db.close();
  }
}

const REPLACED = failed('backend-replaced', 'the file at this path is not the database that was opened; open it again');

function failed(reason: string, detail: string): Staged {
  return { kind: 'failed', reason, detail };
}
