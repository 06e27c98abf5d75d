import { hash, randomUUID } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { PermitCheck, type StagedUnder } from '../../backend/permit-check.ts';
import type {
  AdapterContext,
  CandidateFacts,
  Evidence,
  Promotion,
  Stage,
  Staged,
} from '../../contract/adapter.ts';
import type { ConsumedPermit } from '../../contract/proof.ts';
import { EffectMatchError, invariant } from '../../errors.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import type { Registration } from '../../protocol/registration.ts';
import { asFault, extendedCode, retryWhileBusy } from '../../sqlite/connection.ts';
import { type CheckedAction, isProbe } from './action.ts';
import type { Affinity } from './affinity.ts';
import { Candidate } from './candidate.ts';
import { type Catalog, type Relation, versionsOf } from './catalog.ts';
import { PROBE_TABLE, readBackend } from './control.ts';
import { type Observed, observeCandidate, readStanding } from './evidence.ts';
import type { FenceLog, FenceRules } from './fence.ts';
import type { Keeper } from './keeper.ts';
import { findMarker } from './markers.ts';
import { SqliteSchema } from './normalise.ts';
import { promoteCandidate } from './promotion.ts';
import { readState } from './reading.ts';
import { readClock, readTop, takeSnapshot } from './snapshot.ts';
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
  /**
   * The trusted connection: it sees the committed state beneath the candidate, which cannot move
   * meanwhile.
   */
  readonly base: DatabaseSync;
  readonly reached: AdapterContext['reached'];
  /** The schema as the last survey saw it. */
  readonly catalog: Catalog;
  /** Whether another file is at the path by now. */
  readonly isReplaced: () => boolean;
  /** Where the connection of the last stage is kept for the next. */
  readonly keeper: Keeper;
  /** Called when a held stage is over, however it ended. */
  readonly onEnd: (stage: Stage) => void;
}

/**
 * Runs the action once in a transaction of its own and holds it open. No other stage uses the
 * connection meanwhile, and what an earlier one left on it is nothing: that is checked before the
 * action runs.
 */
export async function openStage(
  tools: StageTools,
  under: StagedUnder,
  action: CheckedAction,
): Promise<Staged> {
  const candidate = tools.keeper.take(tools.catalog) ?? openCandidate(tools);
  if (candidate === undefined) return REPLACED;
  try {
    const staged = await stageAction(tools, candidate, { under, action });
    if (staged.kind === 'failed') candidate.close();
    return staged;
  } catch (error) {
    candidate.close();
    if (extendedCode(error) === undefined) throw error;
    throw asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', 'the candidate could not be held');
  }
}

/** Undefined where another file is at the path: opening would also create a missing one. */
function openCandidate({ file, isReplaced }: StageTools): Candidate | undefined {
  if (isReplaced()) return undefined;
  try {
    return new Candidate(file);
  } catch (error) {
    throw asFault(
      error,
      'ERR_EM_ADAPTER_UNAVAILABLE',
      'the database could not be opened for a candidate',
    );
  }
}

async function stageAction(
  tools: StageTools,
  candidate: Candidate,
  request: { readonly under: StagedUnder; readonly action: CheckedAction },
): Promise<Staged> {
  const { under, action } = request;
  const { db, fence } = candidate;
  try {
    await retryWhileBusy(() => candidate.begin(), { deadlineMs: tools.lockWithinMs });
  } catch (error) {
    if (!(error instanceof EffectMatchError) || error.code !== 'ERR_EM_STORE_BUSY') throw error;
    return failed('busy', `another writer held the database for ${tools.busyTimeoutMs} ms`);
  }
  tools.reached('adapter:stage-opened');
  if (tools.isReplaced()) return REPLACED;
  const connections = { candidate: db, base: tools.base };
  const before = takeSnapshot(connections, tools.catalog, candidate.settings);
  if (before.versions !== versionsOf(tools.catalog) || !candidate.hasParsed(tools.catalog)) {
    return failed('boundary-changed', 'the schema changed after it was certified; certify again');
  }
  if (readBackend(db) !== tools.backend) return REPLACED;
  const marker = findMarker(db, under.claim.sealed.record.occurrence);
  if (marker?.disposition === 'committed') {
    return failed(
      'already-committed',
      'already committed by an earlier execution; do not approve it again',
    );
  }
  if (marker !== undefined) {
    return failed(
      'already-void',
      'an earlier attempt was interrupted and recovered: it can no longer commit',
    );
  }
  const rules = rulesFor(tools, candidate, action);
  if (rules === undefined)
    return failed(
      'boundary-changed',
      'a registered table was dropped or replaced by a view; certify again',
    );
  const relations = rules.writable;
  const session = db.createSession();
  const fromMs = readClock(db);
  const log = fence.raise(rules);
  const tops = new Map<string, bigint>();
  const ran = runStatements(action, {
    db,
    log,
    quotesValues: tools.registration.values === 'plain',
    compiled: rules.isProbe ? undefined : candidate.compiled,
    beforeRun: () => noteTops(db, relations, { log, tops }),
  });
  fence.hold();
  if (ran.kind === 'failed') return ran;
  tools.reached('adapter:action-done');
  const window = { fromMs, toMs: readClock(db) };
  const observed = {
    candidate: `sqlite:${tools.backend}:${randomUUID()}`,
    connections,
    affinity: tools.affinity,
    catalog: tools.catalog,
    session,
    relations,
    log,
    tops,
    before,
    window,
  };
  return { kind: 'held', stage: new HeldStage(tools, under, { candidate, observed }) };
}

/** The rules of an action; worked out once per connection, which is made for one schema. */
function rulesFor(
  tools: StageTools,
  candidate: Candidate,
  action: CheckedAction,
): FenceRules | undefined {
  if (isProbe(action)) return makeRules(tools.catalog, [PROBE_TABLE], true);
  const names = tools.registration.targets.map((target) => target.name);
  candidate.rules ??= makeRules(tools.catalog, names, false);
  return candidate.rules;
}

/** Undefined where one of the names is no table. */
function makeRules(
  { relations, objects }: Catalog,
  names: readonly string[],
  probe: boolean,
): FenceRules | undefined {
  const writable = new Map<string, Relation>();
  for (const name of names) {
    const relation = relations.get(name);
    if (relation?.kind !== 'table') return undefined;
    writable.set(name, relation);
  }
  const named = (type: string) =>
    objects.filter((object) => object.type === type).map((object) => object.name);
  return {
    writable,
    views: new Set(named('view')),
    triggers: new Set(named('trigger')),
    isProbe: probe,
  };
}

/**
 * A relation that appears in the log for the first time has not been written yet, because what is
 * not in the log cannot be: its highest rowid is still the one beneath the candidate.
 */
function noteTops(
  db: DatabaseSync,
  relations: ReadonlyMap<string, Relation>,
  { log, tops }: { readonly log: FenceLog; readonly tops: Map<string, bigint> },
): void {
  for (const name of log.written.keys()) {
    const relation = tops.has(name) ? undefined : relations.get(name);
    const top = relation === undefined ? undefined : readTop(db, relation);
    if (top !== undefined) tops.set(name, top);
  }
}

/** A transaction held open with the action's writes in it. */
class HeldStage implements Stage {
  readonly candidate: string;
  readonly #tools: StageTools;
  readonly #permit: PermitCheck;
  readonly #connection: Candidate;
  readonly #observed: Observed;
  /** What has to stand still from the end of the action on. */
  readonly #standing: string;
  /**
   * The evidence of the last observation, and whether it found everything beside the rows as it was
   * before.
   */
  #seen: { readonly evidence: string; readonly isClean: boolean } | undefined;
  #ended = false;
  #released = false;

  constructor(
    tools: StageTools,
    under: StagedUnder,
    held: { readonly candidate: Candidate; readonly observed: Observed },
  ) {
    this.candidate = held.observed.candidate;
    this.#tools = tools;
    this.#permit = new PermitCheck(under, held.observed.candidate);
    this.#connection = held.candidate;
    this.#observed = held.observed;
    this.#standing = this.#readStanding();
  }

  /**
   * Declared state as the action found it: the committed rows beneath the candidate. Nobody can
   * change them while the candidate holds the write lock, and the action's own changes do not make
   * its approval look stale.
   */
  async read(reads: readonly StateRead[]): Promise<readonly StateReading[]> {
    this.#assertHeld();
    const { base, catalog, affinity, registration } = this.#tools;
    return readState(base, new SqliteSchema(catalog, affinity, registration), reads);
  }

  async observe(): Promise<Evidence> {
    this.#assertHeld();
    const evidence = observeCandidate(this.#observed);
    const isClean = evidence.channels.every(
      (report) => report.kind !== 'stable' || report.before === report.after,
    );
    this.#seen = { evidence: evidence.evidence, isClean };
    this.#permit.observed(evidence.evidence);
    return evidence;
  }

  async recheck(): Promise<CandidateFacts> {
    this.#assertHeld();
    const seen = this.#seen;
    invariant(seen !== undefined, 'a candidate is rechecked after it was observed');
    const standing = this.#readStanding();
    const evidence =
      standing === this.#standing
        ? seen.evidence
        : hash('sha256', `${seen.evidence} ${standing}`, 'hex');
    this.#permit.rechecked(evidence);
    return { candidate: this.candidate, evidence };
  }

  async promote(permit: ConsumedPermit): Promise<Promotion> {
    this.#assertHeld();
    const mismatch = this.#permit.refusalOf(permit);
    if (mismatch !== undefined) {
      await this.discard();
      return mismatch;
    }
    const { db, fence } = this.#connection;
    const isTouched = !this.#isUntouched();
    this.#ended = true;
    let isFit = false;
    try {
      // The marker is no part of what is observed, and recording it would cost more than writing
      // it.
      this.#observed.session.close();
      fence.lower();
      const promotion = await promoteCandidate(db, permit.marker, { ...this.#tools, isTouched });
      isFit = promotion.kind === 'confirmed';
      return promotion;
    } finally {
      this.#release(isFit);
    }
  }

  /**
   * While a promotion waits for readers this ends it too: by closing, so that it cannot commit any
   * more.
   */
  async discard(): Promise<void> {
    const isFit = !this.#ended;
    this.#ended = true;
    if (isFit && this.#connection.db.isOpen) this.#observed.session.close();
    this.#release(isFit);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.discard();
  }

  /**
   * Gives the connection back once, for good: from then on it may be another stage's. It is kept
   * only where an observation found its settings and everything else as it was before the action.
   */
  #release(isFit: boolean): void {
    if (this.#released) return;
    this.#released = true;
    const connection = this.#connection;
    if (isFit && this.#seen?.isClean && connection.release()) this.#tools.keeper.keep(connection);
    else connection.close();
    this.#tools.onEnd(this);
  }

  /**
   * The observation read the settings; none can have been set since without changing the standing.
   */
  #isUntouched(): boolean {
    return this.#seen?.isClean === true && this.#readStanding() === this.#standing;
  }

  #readStanding(): string {
    return readStanding(this.#observed.connections, this.#connection.fence);
  }

  #assertHeld(): void {
    invariant(
      !this.#ended && this.#observed.connections.candidate.isTransaction,
      'the stage is still held',
    );
  }
}

const REPLACED = failed(
  'backend-replaced',
  'the file at this path is not the database that was opened; open it again',
);

function failed(reason: string, detail: string): Staged {
  return { kind: 'failed', reason, detail };
}
