import { hash, randomUUID } from 'node:crypto';
import type { DatabaseSync, Session } from 'node:sqlite';
import {
  type Applied,
  type Candidate,
  type CandidateEnd,
  type CandidateEvidence,
  type HoldResult,
  refusedPromotion,
  type StageFailure,
  stageFailed,
  stagePrevented,
} from '../../backend/candidate.ts';
import { CALL_SAVEPOINT } from '../../backend/failure.ts';
import { FILE_REPLACED } from '../../backend/setup.ts';
import type { AdapterContext, CallAnswer, Promotion } from '../../contract/adapter.ts';
import { systemClock } from '../../contract/clock.ts';
import type { MarkerText } from '../../contract/proof.ts';
import { invariant } from '../../errors.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import type { OccurrenceId } from '../../protocol/record.ts';
import type { Registration } from '../../protocol/registration.ts';
import { commitHeld, isBusyFault } from '../../sqlite/commit.ts';
import { readPragma, retryWhileBusy, statement } from '../../sqlite/connection.ts';
import { type CheckedSqliteAction, isProbe } from './action.ts';
import type { Affinity } from './affinity.ts';
import type { SqliteCatalog, SqliteRelation } from './catalog.ts';
import { findMarker, insertMarker, readBackend } from './control.ts';
import { observeCandidate, readStanding } from './evidence.ts';
import { FenceLog } from './fence.ts';
import { type HoldingConnection, probeRules } from './holding-connection.ts';
import { SqliteSchema } from './normalise.ts';
import { readState } from './reading.ts';
import {
  type CandidateState,
  type Connections,
  readHighestRowid,
  takeSnapshot,
} from './snapshot.ts';
import { runStatements } from './statements.ts';

/** What a candidate knows about its database. */
export interface CandidateTools {
  readonly backend: string;
  /** How long a COMMIT may wait for readers. */
  readonly busyTimeoutMs: number;
  readonly registration: Registration;
  readonly affinity: Affinity;
  /** The trusted connection. It sees the committed state without the candidate's changes. */
  readonly base: DatabaseSync;
  readonly reached: AdapterContext['reached'];
  /** The schema at the last survey. */
  readonly catalog: SqliteCatalog;
  /** Whether the path now refers to a different file. */
  readonly isReplaced: () => boolean;
  /** Takes the connection back. It can serve another candidate only if it is clean. */
  readonly release: (connection: HoldingConnection, isClean: boolean) => void;
}

/** The failure of a stage if the file was replaced after it was opened. */
export const REPLACED = stageFailed(FILE_REPLACED.reason, FILE_REPLACED.detail);

const TOUCHED = refusedPromotion(
  'candidate-changed',
  'the candidate or a setting of its connection moved',
);

/** The failure of a call during which the transaction ended. */
function lostBy(applied: Applied): StageFailure {
  if (applied.kind === 'failed') return applied;
  return stageFailed('action-failed', 'the transaction ended during the call');
}

const SCHEMA_CHANGED = stageFailed(
  'boundary-changed',
  'the schema changed after it was certified; certify again',
);

/**
 * A held transaction with the writes of its actions. No other candidate uses the connection at the
 * same time. Before an action runs, the candidate checks that an earlier one left nothing on it.
 */
export class SqliteCandidate implements Candidate<CheckedSqliteAction> {
  readonly id: string;
  readonly #tools: CandidateTools;
  readonly #connection: HoldingConnection;
  readonly #connections: Connections;
  readonly #log = new FenceLog();
  readonly #rowidsBefore = new Map<string, bigint>();
  #before: CandidateState | undefined;
  #session: Session | undefined;
  #relations: ReadonlyMap<string, SqliteRelation> = new Map();
  #window: { readonly fromMs: number; readonly toMs: number } | undefined;
  /** State that must not change after the last action. */
  #standing: string | undefined;
  /** Whether an action ran, even if it failed. */
  #isUsed = false;
  /** The last observation, and whether it found everything but the rows unchanged. */
  #seen: { readonly evidence: string; readonly isClean: boolean } | undefined;

  constructor(tools: CandidateTools, connection: HoldingConnection) {
    this.id = `sqlite:${tools.backend}:${randomUUID()}`;
    this.#tools = tools;
    this.#connection = connection;
    this.#connections = { candidate: connection.db, base: tools.base };
  }

  /** Takes the write lock and checks that the file and its schema are the certified ones. */
  async begin(
    occurrence: OccurrenceId,
    lockWithinMs: number,
  ): Promise<HoldResult<CheckedSqliteAction>> {
    const { catalog, isReplaced, backend, busyTimeoutMs } = this.#tools;
    const connection = this.#connection;
    let settings: string;
    try {
      settings = await retryWhileBusy(() => connection.begin(), { deadlineMs: lockWithinMs });
    } catch (error) {
      if (!isBusyFault(error)) throw error;
      return stagePrevented('busy', `another writer held the database for ${busyTimeoutMs} ms`);
    }
    if (isReplaced()) return REPLACED;
    const before = takeSnapshot(this.#connections, catalog, settings);
    if (before.versions !== catalog.versions || !connection.hasParsed(catalog))
      return SCHEMA_CHANGED;
    if (readBackend(connection.db) !== backend) return REPLACED;
    this.#before = before;
    return { kind: 'open', candidate: this, marker: findMarker(connection.db, occurrence) };
  }

  async apply(action: CheckedSqliteAction): Promise<Applied> {
    const { catalog, registration } = this.#tools;
    const { db, fence, compiled } = this.#connection;
    this.#isUsed = true;
    const rules = isProbe(action)
      ? probeRules(catalog)
      : this.#connection.rulesFor(catalog, registration);
    if (rules === undefined)
      return stageFailed(
        'boundary-changed',
        'a registered table was dropped or replaced by a view; certify again',
      );
    this.#relations = rules.writable;
    this.#session ??= db.createSession();
    // CURRENT_TIMESTAMP uses the same clock.
    const fromMs = this.#window?.fromMs ?? systemClock.now();
    fence.turn = { rules, log: this.#log };
    const ran = runStatements(action, {
      db,
      log: this.#log,
      quotesValues: registration.values === 'plain',
      compiled: rules.isProbe ? undefined : compiled,
      beforeRun: () => this.#noteRowids(),
    });
    fence.turn = 'none';
    if (ran.kind === 'failed') return ran;
    this.#window = { fromMs, toMs: systemClock.now() };
    this.#standing = this.#readStanding();
    return ran;
  }

  /**
   * Runs an action in its own savepoint. Undone changes leave the session too, because a changeset
   * compares the rows with the committed ones.
   */
  async call(action: CheckedSqliteAction): Promise<CallAnswer> {
    const { db, fence } = this.#connection;
    this.#assertHeld();
    this.#session ??= db.createSession();
    fence.turn = 'ours';
    statement(db, CALL_SAVEPOINT.open).run();
    const applied = await this.apply(action);
    // An error may have rolled back the whole transaction, including earlier calls.
    if (!db.isTransaction) return { ...lostBy(applied), isLost: true };
    fence.turn = 'ours';
    if (applied.kind === 'failed') {
      statement(db, CALL_SAVEPOINT.undo).run();
      this.#log.forgetDenied();
    }
    statement(db, CALL_SAVEPOINT.release).run();
    fence.turn = 'none';
    return applied;
  }

  /** SQLite defers nothing. An empty action ends the time window and reads the standing again. */
  async complete(): Promise<Applied> {
    return await this.apply({ statements: [] });
  }

  /**
   * Notes the highest rowid of each relation before its first write. A relation that is new in the
   * log has not been written yet, because writes need a log entry.
   */
  #noteRowids(): void {
    for (const name of this.#log.written.keys()) {
      const relation = this.#rowidsBefore.has(name) ? undefined : this.#relations.get(name);
      const top =
        relation === undefined ? undefined : readHighestRowid(this.#connection.db, relation);
      if (top !== undefined) this.#rowidsBefore.set(name, top);
    }
  }

  /**
   * Reads the committed rows, without the candidate's changes. They cannot change while the
   * candidate holds the write lock, so the action's own changes do not make its approval look
   * stale.
   */
  async read(reads: readonly StateRead[]): Promise<readonly StateReading[]> {
    this.#assertHeld();
    const { base, catalog, affinity, registration } = this.#tools;
    return readState(base, new SqliteSchema(catalog, affinity, registration), reads);
  }

  async observe(): Promise<CandidateEvidence> {
    this.#assertHeld();
    const session = this.#session;
    const before = this.#before;
    const window = this.#window;
    invariant(session && before && window, 'an action ran in the candidate');
    const { affinity, catalog } = this.#tools;
    const evidence = observeCandidate({
      candidate: this.id,
      connections: this.#connections,
      relations: this.#relations,
      log: this.#log,
      rowidsBefore: this.#rowidsBefore,
      affinity,
      catalog,
      session,
      before,
      window,
    });
    const isClean = evidence.channels.every(
      (report) => report.kind !== 'stable' || report.before === report.after,
    );
    this.#seen = { evidence: evidence.evidence, isClean };
    return evidence;
  }

  async recheck(): Promise<string> {
    this.#assertHeld();
    const seen = this.#seen;
    invariant(seen !== undefined, 'a candidate is rechecked after it was observed');
    const standing = this.#readStanding();
    if (standing === this.#standing) return seen.evidence;
    return hash('sha256', `${seen.evidence} ${standing}`, 'hex');
  }

  async commit(marker: MarkerText): Promise<Promotion> {
    this.#assertHeld();
    // The observation read the settings. None can have been set since without changing the
    // standing. The lock keeps others from committing, and the base shows whether it did.
    const isUntouched =
      this.#seen?.isClean === true &&
      this.#readStanding() === this.#standing &&
      readPragma(this.#tools.base, 'data_version') === this.#before?.baseVersion;
    // The marker is not observed, and recording it in the session would cost more than writing it.
    this.#closeSession();
    this.#connection.fence.turn = 'ours';
    const { busyTimeoutMs, reached, isReplaced } = this.#tools;
    const promotion = await commitHeld(this.#connection.db, {
      marker,
      insertMarker,
      busyTimeoutMs,
      reached,
      check: () => (isUntouched ? undefined : TOUCHED),
      write: () => (isReplaced() ? refusedPromotion(REPLACED.reason, REPLACED.detail) : undefined),
    });
    // After a failed commit, the connection must not serve another candidate.
    if (promotion.kind !== 'confirmed') this.#seen = undefined;
    return promotion;
  }

  /**
   * Gives the connection back. It can serve another candidate only after a commit or rollback, and
   * only if no action ran or an observation found its settings unchanged.
   */
  async end(how: CandidateEnd): Promise<void> {
    if (this.#connection.db.isOpen) this.#closeSession();
    const isClean = !this.#isUsed || this.#seen?.isClean === true;
    this.#tools.release(this.#connection, isClean && how !== 'unknown');
  }

  #closeSession(): void {
    this.#session?.close();
    this.#session = undefined;
  }

  #readStanding(): string {
    return readStanding(this.#connection.db, this.#connection.fence);
  }

  #assertHeld(): void {
    invariant(this.#connection.db.isTransaction, 'the stage is still held');
  }
}
