import {
  type Applied,
  alreadyDecided,
  type Candidate,
  type CandidateEnd,
  type CandidateEvidence,
  type HoldRequest,
  refusedPromotion,
  type StageFailure,
  stageFailed,
} from '../../backend/candidate.ts';
import { CALL_SAVEPOINT, STAGE_NOT_OPENED } from '../../backend/failure.ts';
import type { AdapterContext, CallAnswer, Promotion } from '../../contract/adapter.ts';
import type { MarkerText } from '../../contract/proof.ts';
import { randomIds } from '../../crypto/random-ids.ts';
import { invariant } from '../../errors.ts';
import {
  type Connection,
  type MessageAnswer,
  type Reply,
  sqlState,
  type WireStatement,
} from '../../postgres/connection.ts';
import { canonical } from '../../protocol/canon.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import type { OccurrenceId } from '../../protocol/record.ts';
import type { Residue } from '../../protocol/residue.ts';
import type { SessionSettings } from '../../protocol/settings.ts';
import { type CheckedPostgresAction, isProbe } from './action.ts';
import { mapLeaves, type PostgresBoundary } from './boundary.ts';
import type { Control, PostgresDeployment } from './control.ts';
import { describeFailure, explainError } from './failure.ts';
import { type OpenAnswer, readObservation, type WrittenRelations } from './observation.ts';
import type { Settings } from './options.ts';
import { CALLS, type PreparedTexts } from './prepared.ts';
import { type LockedReads, lockReads } from './reading.ts';
import { comparePositions, describeMoved, lookAtDraws, UndoneDraws } from './residue.ts';
import { collectResults } from './result-rows.ts';
import { applySettings, findChangedSetting, readSettings } from './session-settings.ts';
import { isReset } from './sessions.ts';

/** What a candidate works with: its session, and the database. */
export interface PostgresCandidateTools {
  readonly session: Connection;
  readonly texts: PreparedTexts;
  readonly deployment: PostgresDeployment;
  readonly settings: Settings;
  /** The configuration as the last survey saw it. */
  readonly boundary: PostgresBoundary;
  readonly control: Control;
  readonly reached: AdapterContext['reached'];
  /** Why an action is not admitted under this boundary; undefined if it is. */
  readonly refuse: (action: CheckedPostgresAction) => string | undefined;
  /** Reads declared state as committed, without the candidate's writes. */
  readonly readCommitted: (reads: readonly StateRead[]) => Promise<readonly StateReading[]>;
  /** Takes the session back; `inDoubt` if its transaction may still be open. */
  readonly release: (inDoubt: boolean, reset?: Promise<boolean>) => Promise<void>;
}

/** An open stage, with its sealed observation once there is one. */
interface Held {
  readonly opened: OpenAnswer;
  /** The answer of `observe`; undefined until then, and if the action failed. */
  readonly answer?: Reply['rows'];
  readonly written: WrittenRelations;
}

/**
 * A transaction that holds the writes of one action or of a task's calls, sealed by its
 * observation. For an action, a single message opens it, locks declared state, runs the action and
 * observes it; the server skips whatever follows an error. If the transaction had ended early, the
 * recorders would refuse every later write, because it would be outside a stage.
 */
export class PostgresCandidate implements Candidate<CheckedPostgresAction> {
  // Random: a permit stores the id, which must not be guessable. Transaction ids can be counted.
  readonly id: string;
  readonly #tools: PostgresCandidateTools;
  readonly #occurrence: OccurrenceId;
  readonly #sessionSettings: SessionSettings;
  readonly #locked: LockedReads;
  readonly #deadlineMs: number;
  readonly #noteOwn: (xid: string) => void;
  #held: Held | undefined;
  #readings: readonly StateReading[] = [];
  /** Digest of the last observation. Its records are not kept, because there may be a million. */
  #fingerprint: string | undefined;
  /** Rows locked after the observation. */
  #locks = 0;
  #resetting: Promise<boolean> | undefined;
  readonly #undone = new UndoneDraws();

  constructor(tools: PostgresCandidateTools, request: HoldRequest, locked: LockedReads) {
    this.id = `postgresql:${tools.deployment.backend}:${randomIds.hex(16)}`;
    this.#tools = tools;
    this.#occurrence = request.occurrence;
    this.#sessionSettings = request.settings;
    this.#locked = locked;
    this.#deadlineMs = request.task?.deadlineMs ?? tools.settings.stageTimeoutMs;
    this.#noteOwn = tools.control.promotedTransactions();
  }

  /**
   * May be called only once, because its observation seals the transaction against further writes.
   */
  async apply(action: CheckedPostgresAction): Promise<Applied> {
    invariant(this.#held === undefined, 'a candidate of PostgreSQL holds one action');
    const refused = this.#refuse(action);
    if (refused !== undefined) return refused;
    const { looked, ran } = await this.#send([...this.#runs(action), ...this.#observes()]);
    const opening = this.#readOpening(looked, ran, this.#writtenBy(action));
    if (opening.kind === 'failed') return opening;
    const { done } = opening;
    const count = action.statements.length;
    if (done.length < count)
      return this.#failed(ran.failure?.error, `statement ${done.length + 1} failed`);
    const failure = this.#readObserved(done.slice(count), ran.failure?.error);
    if (failure !== undefined) return failure;
    const results = collectResults(done.slice(0, count));
    return { kind: 'done', ...(results && { results }) };
  }

  /** Checks again, because the catalogue may have changed since the action was parsed. */
  #refuse(action: CheckedPostgresAction): StageFailure | undefined {
    const why = this.#tools.refuse(action);
    return why === undefined ? undefined : stageFailed('not-admitted', why);
  }

  /** Opens a task's transaction, locks declared state and applies settings. */
  async openTask(): Promise<StageFailure | undefined> {
    const { looked, ran } = await this.#send([]);
    const opening = this.#readOpening(looked, ran, this.#tools.boundary);
    return opening.kind === 'failed' ? opening : undefined;
  }

  /**
   * Runs one call in its own savepoint, in one message: the server skips what follows an error.
   * Agent SQL can neither name nor end the savepoint.
   */
  async call(action: CheckedPostgresAction): Promise<CallAnswer> {
    const refused = this.#refuse(action);
    if (refused !== undefined) return refused;
    const { session, boundary } = this.#tools;
    const look = lookAtDraws(boundary.sequenceOids);
    const statements = [look, SAVEPOINT, ...action.statements.map(wireStatement), RELEASE];
    const { replies, failure } = await session.run(statements);
    if (failure === undefined) {
      const results = collectResults(replies.slice(2, -1));
      return { kind: 'done', ...(results && { results }) };
    }
    const which = Math.max(replies.length - 1, 1);
    const failed = this.#failed(failure.error, `statement ${which} failed`);
    const undone = await session.run([ROLLBACK_TO, RELEASE, look]);
    if (undone.failure !== undefined) return { ...failed, isLost: true };
    this.#undone.add(replies[0]?.rows ?? [], undone.replies[2]?.rows ?? []);
    return failed;
  }

  /** Forces deferred constraints and observes. */
  async complete(): Promise<Applied> {
    const { replies, failure } = await this.#tools.session.run([...this.#observes()]);
    return this.#readObserved(replies, failure?.error) ?? { kind: 'done' };
  }

  /**
   * Reads the answers to everything that precedes the action, and returns the remaining answers.
   */
  #readOpening(
    looked: MessageAnswer | undefined,
    { replies, failure }: MessageAnswer,
    written: WrittenRelations,
  ): { readonly kind: 'opened'; readonly done: MessageAnswer['replies'] } | StageFailure {
    const [, open, ...done] = replies;
    const unopened = looked?.failure ?? (open === undefined ? failure : undefined);
    if (open === undefined || unopened !== undefined)
      return this.#failed(unopened?.error, STAGE_NOT_OPENED);
    const { marker, ...opened } = readOpened(open);
    const disposition = looked === undefined ? marker : (looked.replies[0]?.rows[0]?.[0] ?? null);
    if (disposition !== null)
      return alreadyDecided({ disposition: disposition === 'committed' ? disposition : 'void' });
    this.#held = { opened, written };
    const locks = this.#locked.queries.length === 0 ? 0 : 1;
    if (done.length < locks)
      return this.#failed(failure?.error, 'declared state could not be locked');
    const names = Object.keys(this.#sessionSettings);
    const unset = names[done.length - locks];
    if (unset !== undefined)
      return this.#failed(failure?.error, `the setting ${unset} was refused`);
    if (locks > 0)
      this.#readings = this.#locked.decode((done[0]?.rows ?? []).map(([image]) => image ?? null));
    return { kind: 'opened', done: done.slice(locks + names.length) };
  }

  /** Keeps the answer of `observe`, unless something before it failed. */
  #readObserved(replies: MessageAnswer['replies'], error: unknown): StageFailure | undefined {
    const answer = replies.at(-1)?.rows;
    if (error !== undefined || answer === undefined || this.#held === undefined)
      return this.#failed(
        error,
        'a deferred constraint failed, or the outcome could not be observed',
      );
    const changed = findChangedSetting(this.#sessionSettings, replies.at(-2));
    if (changed !== undefined)
      return stageFailed('setting-changed', `the action changed the approved setting ${changed}`);
    this.#held = { ...this.#held, answer };
    return undefined;
  }

  #failed(error: unknown, what: string): StageFailure {
    return describeFailure(error, what, this.#tools.settings.values);
  }

  get #hasSettings(): boolean {
    return Object.keys(this.#sessionSettings).length > 0;
  }

  /**
   * The statements of an action. Only the first may be prepared, because the session was just
   * reset.
   */
  #runs(action: CheckedPostgresAction): readonly WireStatement[] {
    const { texts, boundary } = this.#tools;
    return action.statements.map((stated, index) => {
      const statement = wireStatement(stated);
      // Later ones are parsed under whatever settings application code has changed by then.
      const isFirst = index === 0 && !this.#hasSettings;
      return isFirst ? texts.prepare(statement, boundary) : statement;
    });
  }

  /** Statements that force deferred constraints, read the settings back, and observe. */
  #observes(): readonly WireStatement[] {
    const { forceConstraints, watched, sequenceOids } = this.#tools.boundary;
    const statements: WireStatement[] = [];
    if (forceConstraints !== '') statements.push({ text: forceConstraints });
    if (this.#hasSettings) statements.push(readSettings(this.#sessionSettings));
    const values = [watched.oids, sequenceOids];
    statements.push({ prepared: 'effectmatch_observe', values });
    return statements;
  }

  /** Opens the transaction and sends the following statements with it, all in one write. */
  async #send(
    following: readonly WireStatement[],
  ): Promise<{ looked: MessageAnswer | undefined; ran: MessageAnswer }> {
    const { session, texts, settings } = this.#tools;
    const { queries } = this.#locked;
    const statements: WireStatement[] = [{ text: BEGIN[settings.isolation] }, this.#openCall()];
    if (queries.length > 0) statements.push(this.#lockRows(queries));
    statements.push(...applySettings(this.#sessionSettings), ...following);
    const { looking, running } = session.together(() => ({
      looking: settings.isolation === 'serializable' ? this.#findMarker() : undefined,
      running: session.run(statements),
    }));
    const ran = await running;
    // It is not known which statements were prepared.
    if (ran.failure !== undefined) texts.isSpent = true;
    return { looked: await looking, ran };
  }

  /**
   * Uses a separate transaction, because a serializable one would conflict with every other that
   * writes a marker meanwhile.
   */
  #findMarker(): Promise<MessageAnswer> {
    const text = 'select effectmatch.find_marker($1)';
    return this.#tools.session.run([{ text, values: [this.#occurrence] }]);
  }

  #openCall(): WireStatement & { readonly prepared: string } {
    const { lockTimeoutMs } = this.#tools.settings;
    const { sequenceOids } = this.#tools.boundary;
    const deadlineMs = String(this.#deadlineMs);
    const values = [this.#occurrence, sequenceOids, deadlineMs, String(lockTimeoutMs)];
    return { prepared: 'effectmatch_open', values };
  }

  /** Takes row share locks on declared state through a trusted function, which returns the rows. */
  #lockRows(queries: readonly string[]): WireStatement {
    const mac = this.#tools.deployment.sign('reads', this.#occurrence, ...queries);
    return {
      text: 'select * from effectmatch.read_rows($1, $2, $3)',
      values: [this.#occurrence, queries, mac],
    };
  }

  #writtenBy(action: CheckedPostgresAction): WrittenRelations {
    const { probe, relations, leaves } = this.#tools.boundary;
    return isProbe(action)
      ? { relations: [probe], leaves: mapLeaves([probe]) }
      : { relations, leaves };
  }

  /**
   * Declared state as it was when it was locked, before the action ran. Rows that were not declared
   * then are locked now and read as committed. Rows that the action wrote are protected by its own
   * locks.
   */
  async read(reads: readonly StateRead[]): Promise<readonly StateReading[]> {
    const known = new Map(this.#readings.map((reading) => [readingId(reading), reading]));
    const found = reads.map((read) => known.get(readingId(read)));
    if (found.every((reading) => reading !== undefined))
      return found.map((reading, index) => narrow(reading, reads[index]?.columns));
    const { session, boundary, readCommitted } = this.#tools;
    const { queries } = lockReads(boundary.readable, reads);
    this.#locks += queries.length;
    const { failure } = await session.run([this.#lockRows(queries)]);
    if (failure !== undefined) throw failure.error;
    return await readCommitted(reads);
  }

  async observe(): Promise<CandidateEvidence> {
    const { boundary, settings, control } = this.#tools;
    const { opened, written, answer } = this.#held ?? {};
    invariant(opened && written && answer, 'the action was observed');
    const { isolation } = settings;
    const undone = this.#undone;
    const input = { opened, written, answer, boundary, isolation, control, undone };
    const evidence = await readObservation(input);
    this.#fingerprint = evidence.evidence;
    return evidence;
  }

  /**
   * The digest of the sealed observation. Nothing has to be read again: in the step that commits,
   * the backend itself checks that this is the same transaction and that nothing was written in it
   * since.
   */
  async recheck(): Promise<string> {
    return this.#fingerprint ?? (await this.observe()).evidence;
  }

  /**
   * Writes the marker into the candidate and commits both in one step. The backend takes that step
   * only if this is the transaction that was observed and nothing was written in it since. Only the
   * tag COMMIT counts: in an aborted transaction the server answers COMMIT with ROLLBACK and no
   * error.
   */
  async commit(marker: MarkerText): Promise<Promotion> {
    const { session, deployment, reached } = this.#tools;
    const { occurrence, text, sealKey, sealMac } = marker;
    const xid = this.#held?.opened.xid;
    invariant(xid !== undefined, 'the transaction was opened');
    const locks = String(this.#locks);
    const mac = deployment.sign('promote', xid, locks, occurrence, sealKey, sealMac, text);
    const values = [xid, locks, occurrence, text, sealKey, sealMac, mac];
    // The reset is sent with the COMMIT. If that fails, the session is rolled back and reset again.
    const { promoting, resetting } = session.together(() => ({
      promoting: session.run([{ prepared: 'effectmatch_promote', values }, { text: 'commit' }]),
      resetting: isReset(session, true).catch(() => false),
    }));
    const { replies, failure } = await promoting;
    this.#resetting = resetting;
    if (replies.length > 0) reached('adapter:marker-written');
    const command = replies[1]?.command;
    if (failure !== undefined || command !== 'COMMIT')
      return await this.#judge(xid, failure?.error ?? new Error(`COMMIT answered ${command}`));
    reached('adapter:commit-returned');
    this.#noteOwn(xid);
    return { kind: 'confirmed' };
  }

  /**
   * Reports a refusal only with proof: the server must say that the transaction was aborted. In all
   * other cases the marker decides.
   */
  async #judge(xid: string, error: unknown): Promise<Promotion> {
    const { session, settings, control } = this.#tools;
    // The server sends an error before it ends the transaction. Once it answers again, the
    // transaction has ended.
    await session.script('rollback').catch(() => {});
    const status = await control.transactionStatus(xid).catch(() => undefined);
    const detail = explainError(error, settings.values);
    if (status !== 'aborted') return { kind: 'unknown', cause: detail };
    return refusedPromotion(REFUSALS[sqlState(error) ?? ''] ?? 'commit-failed', detail);
  }

  /** Gives the session back. Waits until a session in doubt is closed. */
  async end(how: CandidateEnd): Promise<readonly Residue[] | undefined> {
    const { release } = this.#tools;
    if (how === 'unknown') await release(true);
    // Do not wait for the reset.
    else if (how === 'committed') void release(false, this.#resetting);
    // `#judge` already rolled back a refused COMMIT.
    else if (this.#resetting !== undefined) void release(false);
    else return await this.#rollBack();
    return undefined;
  }

  /**
   * Nothing of a candidate remains once its transaction is rolled back or its session is gone.
   * Sequences do not roll back, so they are read again if the action failed.
   */
  async #rollBack(): Promise<readonly Residue[] | undefined> {
    const { session, release } = this.#tools;
    const { failure } = await session.run([{ text: 'rollback' }]);
    const isFailed = this.#held !== undefined && this.#held.answer === undefined;
    const looked = failure === undefined && isFailed ? await this.#lookAtSequences() : undefined;
    await release(failure !== undefined || looked?.failure !== undefined);
    const { opened } = this.#held ?? {};
    if (looked === undefined || looked.failure !== undefined || !opened) return undefined;
    const now = looked.replies[1]?.rows[0]?.[3] ?? '';
    const moved = comparePositions(opened.positions, now);
    return describeMoved(this.#tools.boundary.readableSequences, moved);
  }

  async #lookAtSequences(): Promise<MessageAnswer | undefined> {
    const { session, settings, boundary } = this.#tools;
    if (boundary.readableSequences.length === 0) return undefined;
    // Sent as text, because no COMMIT follows that would detect a replaced prepared call.
    const look = { text: CALLS.effectmatch_open, values: this.#openCall().values ?? [] };
    return await session.run([{ text: BEGIN[settings.isolation] }, look, { text: 'rollback' }]);
  }
}

const SAVEPOINT = { text: CALL_SAVEPOINT.open };
const RELEASE = { text: CALL_SAVEPOINT.release };
const ROLLBACK_TO = { text: CALL_SAVEPOINT.undo };

type Stated = CheckedPostgresAction['statements'][number];

function wireStatement({ sql, values, returnsRows }: Stated) {
  return { text: sql, values, describe: returnsRows };
}

const REFUSALS: Readonly<Record<string, string>> = {
  '23505': 'marker-conflict',
  EM006: 'candidate-replaced',
  EM007: 'evidence-changed',
  EM001: 'evidence-changed',
  '40001': 'serialization',
  '40P01': 'deadlock',
};

const BEGIN = {
  'read committed': 'begin isolation level read committed read write',
  serializable: 'begin isolation level serializable read write',
} as const;

function readOpened({ rows }: Reply): OpenAnswer & { readonly marker: string | null } {
  const [xid, atMs, marker, positions] = rows[0] ?? [];
  invariant(xid != null && atMs != null, 'open answers with the transaction and the time');
  return { xid, atMs: Number(atMs), positions: positions ?? '', marker: marker ?? null };
}

function readingId({ target, key }: StateRead | StateReading): string {
  return canonical([target, key]);
}

function narrow(reading: StateReading, columns: readonly string[] | undefined): StateReading {
  const { row } = reading;
  if (columns === undefined || row === null) return reading;
  return { ...reading, row: Object.fromEntries(columns.map((name) => [name, row[name] ?? null])) };
}
