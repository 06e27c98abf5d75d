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
import type { MarkerText } from '../../contract/proof.ts';
import { invariant } from '../../errors.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import type { OccurrenceId } from '../../protocol/record.ts';
import type { Registration } from '../../protocol/registration.ts';
import { commitHeld, isBusyFault } from '../../sqlite/commit.ts';
import { retryWhileBusy, statement } from '../../sqlite/connection.ts';
import { type CheckedSqliteAction, isProbe } from './action.ts';
import type { Affinity } from './affinity.ts';
import { type SqliteCatalog, type SqliteRelation, versionsOf } from './catalog.ts';
import { findMarker, insertMarker, readBackend } from './control.ts';
import { observeCandidate, readStanding } from './evidence.ts';
import { FenceLog } from './fence.ts';
import { type HoldingConnection, probeRules } from './holding-connection.ts';
import { SqliteSchema } from './normalise.ts';
import { readState } from './reading.ts';
import { type CandidateState, readClock, readHighestRowid, takeSnapshot } from './snapshot.ts';
import { runStatements } from './statements.ts';

/** The database as a candidate sees it. */
export interface CandidateTools {
  readonly backend: string;
  /** How long a COMMIT may wait for readers. */
  readonly busyTimeoutMs: number;
  readonly registration: Registration;
  readonly affinity: Affinity;
  /** The trusted connection: it sees the committed state beneath the candidate. */
  readonly base: DatabaseSync;
  readonly reached: AdapterContext['reached'];
  /** The schema as the last survey saw it. */
  readonly catalog: SqliteCatalog;
  /** Whether the path now refers to a different file. */
  readonly isReplaced: () => boolean;
  /** Takes the connection back. One that is not clean may serve no other candidate. */
  readonly release: (connection: HoldingConnection, isClean: boolean) => void;
}

/** The failure of a stage on a file that is not the one that was opened. */
export const REPLACED = stageFailed(FILE_REPLACED.reason, FILE_REPLACED.detail);

const TOUCHED = refusedPromotion(
  'candidate-changed',
  'the candidate or a setting of its connection moved',
);

/** The failure of a call that ended the transaction. */
function lostBy(applied: Applied): StageFailure {
  if (applied.kind === 'failed') return applied;
  return stageFailed('action-failed', 'the transaction ended during the call');
}

const SCHEMA_CHANGED = stageFailed(
  'boundary-changed',
  'the schema changed after it was certified; certify again',
);

/**
 * A transaction held open with the writes of its actions in it. No other candidate uses the
 * connection meanwhile, and that an earlier one left nothing on it is checked before an action
 * runs.
 */
export class SqliteCandidate implements Candidate<CheckedSqliteAction> {
  readonly id: string;
  readonly #tools: CandidateTools;
  readonly #connection: HoldingConnection;
  readonly #log = new FenceLog();
  readonly #rowidsBefore = new Map<string, bigint>();
  #before: CandidateState | undefined;
  #session: Session | undefined;
  #relations: ReadonlyMap<string, SqliteRelation> = new Map();
  #window: { readonly fromMs: number; readonly toMs: number } | undefined;
  /** What has to stand still from the end of the last action on. */
  #standing: string | undefined;
  /** The last observation, and whether it found everything except the rows as it was before. */
  #seen: { readonly evidence: string; readonly isClean: boolean } | undefined;

  constructor(tools: CandidateTools, connection: HoldingConnection) {
    this.id = `sqlite:${tools.backend}:${randomUUID()}`;
    this.#tools = tools;
    this.#connection = connection;
  }

  /** Takes the write lock and checks that the file and its schema are those that were certified. */
  async begin(
    occurrence: OccurrenceId,
    lockWithinMs: number,
  ): Promise<HoldResult<CheckedSqliteAction>> {
    const { catalog, isReplaced, backend, busyTimeoutMs } = this.#tools;
    const connection = this.#connection;
    try {
      await retryWhileBusy(() => connection.begin(), { deadlineMs: lockWithinMs });
    } catch (error) {
      if (!isBusyFault(error)) throw error;
      return stagePrevented('busy', `another writer held the database for ${busyTimeoutMs} ms`);
    }
    if (isReplaced()) return REPLACED;
    const before = takeSnapshot(this.#connections, catalog, connection.settings);
    if (before.versions !== versionsOf(catalog) || !connection.hasParsed(catalog))
      return SCHEMA_CHANGED;
    if (readBackend(connection.db) !== backend) return REPLACED;
    this.#before = before;
    return { kind: 'open', candidate: this, marker: findMarker(connection.db, occurrence) };
  }

  async apply(action: CheckedSqliteAction): Promise<Applied> {
    const { catalog, registration } = this.#tools;
    const { db, fence, compiled } = this.#connection;
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
    const fromMs = this.#window?.fromMs ?? readClock(db);
    fence.raise(rules, this.#log);
    const ran = runStatements(action, {
      db,
      log: this.#log,
      quotesValues: registration.values === 'plain',
      compiled: rules.isProbe ? undefined : compiled,
      beforeRun: () => this.#noteRowids(),
    });
    fence.hold();
    if (ran.kind === 'failed') return ran;
    this.#window = { fromMs, toMs: readClock(db) };
    this.#standing = this.#readStanding();
    return ran;
  }

  /**
   * An action in its own savepoint. What is undone leaves the session too: a changeset compares the
   * rows with those beneath the transaction.
   */
  async call(action: CheckedSqliteAction): Promise<CallAnswer> {
    const { db, fence } = this.#connection;
    this.#assertHeld();
    this.#session ??= db.createSession();
    fence.lower();
    statement(db, CALL_SAVEPOINT.open).run();
    const applied = await this.apply(action);
    // An error may have rolled the whole transaction back, together with earlier calls.
    if (!db.isTransaction) return { ...lostBy(applied), isLost: true };
    fence.lower();
    if (applied.kind === 'failed') {
      statement(db, CALL_SAVEPOINT.undo).run();
      this.#log.forgetDenied();
    }
    statement(db, CALL_SAVEPOINT.release).run();
    fence.hold();
    return applied;
  }

  /** SQLite puts nothing off; this looks once more at what the calls have compiled. */
  async complete(): Promise<Applied> {
    return await this.apply({ statements: [] });
  }

  /**
   * A relation that appears in the log for the first time has not been written yet, because what is
   * not in the log cannot be: its highest rowid is still the one beneath the candidate.
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
   * The committed rows beneath the candidate. Nothing can change them while the candidate holds the
   * write lock, and the action's own changes do not make its approval look stale.
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
      ...{ affinity, catalog, session, before, window },
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
    // The observation read the settings; none can have been set since without changing the
    // standing.
    const isUntouched = this.#seen?.isClean === true && this.#readStanding() === this.#standing;
    // The marker is not part of what is observed, and recording it would cost more than writing it.
    this.#closeSession();
    this.#connection.fence.lower();
    const { busyTimeoutMs, reached, isReplaced } = this.#tools;
    const promotion = await commitHeld(this.#connection.db, {
      ...{ marker, insertMarker, busyTimeoutMs, reached },
      check: () => (isUntouched ? undefined : TOUCHED),
      write: () => (isReplaced() ? refusedPromotion(REPLACED.reason, REPLACED.detail) : undefined),
    });
    // A connection on which a commit failed serves no other candidate.
    if (promotion.kind !== 'confirmed') this.#seen = undefined;
    return promotion;
  }

  /**
   * Gives the connection back: from then on it may serve another candidate. It may do so only after
   * a commit or a rollback, and only if an observation found its settings as they were before.
   */
  async end(how: CandidateEnd): Promise<void> {
    if (this.#connection.db.isOpen) this.#closeSession();
    this.#tools.release(this.#connection, this.#seen?.isClean === true && how !== 'unknown');
  }

  get #connections() {
    return { candidate: this.#connection.db, base: this.#tools.base };
  }

  #closeSession(): void {
    this.#session?.close();
    this.#session = undefined;
  }

  #readStanding(): string {
    return readStanding(this.#connections, this.#connection.fence);
  }

  #assertHeld(): void {
    invariant(this.#connection.db.isTransaction, 'the stage is still held');
  }
}
