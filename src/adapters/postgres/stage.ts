import type { AdapterContext, CandidateFacts, Evidence, Promotion, Stage, Staged } from '../../contract/adapter.ts';
import type { ConsumedPermit } from '../../contract/proof.ts';
import { invariant } from '../../errors.ts';
import { asFault, type Connection, type Reply } from '../../postgres/connection.ts';
import { quoteLiteral } from '../../postgres/identifier.ts';
import { canonical } from '../../protocol/canon.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import type { OccurrenceId } from '../../protocol/record.ts';
import type { CheckedAction } from './action.ts';
import type { LockedReads } from './locking.ts';
import { type Observed, type Opened, readObservation, residueOf } from './observation.ts';
import { promoteCandidate } from './promotion.ts';
import type { Deployment } from './secret.ts';
import { describeFailure } from './stage-failure.ts';

/** What a stage needs of the adapter that opens it. */
export interface StageTools extends Omit<Observed, 'candidate' | 'opened' | 'answer'> {
  readonly session: Connection;
  readonly deployment: Deployment;
  readonly isolation: 'read committed' | 'serializable';
  readonly stageTimeoutMs: number;
  readonly lockTimeoutMs: number;
  /** The statement that fires every deferrable constraint but our own; empty where there is none. */
  readonly forceConstraints: string;
  readonly quotesValues: boolean;
  readonly reached: AdapterContext['reached'];
  /** Told every transaction that was promoted. */
  readonly promoted: (xid: string) => void;
  readonly transactionStatus: (xid: string) => Promise<string | null>;
  /** Declared state as it is committed beneath the candidate. */
  readonly readCommitted: (reads: readonly StateRead[]) => Promise<readonly StateReading[]>;
  readonly lockReads: (reads: readonly StateRead[]) => LockedReads;
  /** Takes the session back when the stage is over; `inDoubt` where its transaction may still be open. */
  readonly release: (inDoubt: boolean) => Promise<void>;
}

/**
 * Runs the action once in a transaction of its own and holds it. Everything up to the observation travels as one
 * pipeline: an error leaves the transaction aborted, so that what follows it in the pipeline does nothing; and were
 * the transaction over, the recorders would refuse every write outside a stage.
 */
export async function openStage(
  tools: StageTools,
  occurrence: OccurrenceId,
  work: { readonly action: CheckedAction; readonly locked: LockedReads },
): Promise<Staged> {
  const { session, deployment } = tools;
  const { action, locked } = work;
  const { looking, opening, reading, running, observing } = session.together(() => ({
    looking: tools.isolation === 'serializable' ? settle(session.query(FIND_MARKER, [occurrence])) : undefined,
    opening: settle(session.script(beginStage(tools, occurrence))),
    reading: locked.queries.length === 0 ? undefined : settle(lockRows(tools, occurrence, locked)),
    running: action.statements.map(({ sql, values }) => settle(session.query(sql, values))),
    observing: settle(session.script(endAction(tools))),
  }));

  const looked = await looking;
  const opened = await opening;
  if (looked?.kind === 'rejected') return await fail(tools, looked.error, 'the stage could not be opened');
  if (opened.kind === 'rejected') return await fail(tools, opened.error, 'the stage could not be opened');
  tools.reached('adapter:stage-opened');
  const begun = readOpened(opened.value);
  const marker = looked === undefined ? begun.marker : (looked.value.rows[0]?.[0] ?? null);
  if (marker !== null) {
    await abandon(tools);
    return marker === 'committed' ? ALREADY_COMMITTED : ALREADY_VOID;
  }
  const read = await reading;
  const failed = (error: unknown, what: string) => failAfter(tools, error, what, { occurrence, opened: begun });
  if (read?.kind === 'rejected') return await failed(read.error, 'declared state could not be locked');
  for (const [index, statement] of running.entries()) {
    const ran = await statement;
    if (ran.kind === 'rejected') return await failed(ran.error, `statement ${index + 1} failed`);
  }
  tools.reached('adapter:action-done');
  const observed = await observing;
  if (observed.kind === 'rejected')
    return await failed(observed.error, 'a deferred constraint failed, or the outcome could not be observed');
  const answer = observed.value.at(-1)?.rows ?? [];
  const candidate = `postgresql:${deployment.backend}:${begun.xid}`;
  const stage = new HeldStage(tools, { ...tools, candidate, opened: begun, answer }, occurrence, read?.value ?? []);
  return { kind: 'held', stage };
}

/** A transaction of its own: one that is serializable would fail with every other that writes a marker meanwhile. */
const FIND_MARKER = 'select effectmatch.find_marker($1)';

/** Row share locks on declared state, taken by a trusted function; returns the rows as they were locked. */
async function lockRows(
  tools: StageTools,
  occurrence: OccurrenceId,
  locked: LockedReads,
): Promise<readonly StateReading[]> {
  const { session, deployment } = tools;
  const mac = deployment.sign('reads', occurrence, ...locked.queries);
  const { rows } = await session.query('select * from effectmatch.read_rows($1, $2, $3)', [
    occurrence,
    locked.queries,
    mac,
  ]);
  return locked.decode(rows.map(([image]) => image ?? null));
}

function beginStage(tools: StageTools, occurrence: OccurrenceId): string {
  const { isolation, stageTimeoutMs, lockTimeoutMs } = tools;
  return (
    `begin isolation level ${isolation} read write; select * from effectmatch.open(${quoteLiteral(occurrence)}, ` +
    `${sequenceArray(tools)}, ${stageTimeoutMs}, ${lockTimeoutMs})`
  );
}

function endAction(tools: StageTools): string {
  const observe = `select * from effectmatch.observe('${tools.watched.oids}', ${sequenceArray(tools)})`;
  return tools.forceConstraints === '' ? observe : `${tools.forceConstraints}; ${observe}`;
}

function sequenceArray({ sequences, readableSequences }: StageTools): string {
  return `'{${[...sequences, ...readableSequences].map(({ oid }) => oid).join(',')}}'`;
}

function readOpened(replies: readonly Reply[]): Opened & { readonly marker: string | null } {
  const [xid, atMs, marker, positions] = replies.at(-1)?.rows[0] ?? [];
  invariant(xid != null && atMs != null, 'open answers with the transaction and the time');
  return { xid, atMs: Number(atMs), positions: positions ?? '', marker: marker ?? null };
}

type Settled<T> =
  | { readonly kind: 'fulfilled'; readonly value: T }
  | { readonly kind: 'rejected'; readonly error: unknown };

/** Waits without throwing, so that no rejection in the pipeline is left unhandled. */
async function settle<T>(work: Promise<T>): Promise<Settled<T>> {
  try {
    return { kind: 'fulfilled', value: await work };
  } catch (error) {
    return { kind: 'rejected', error };
  }
}

/** Nothing of a failed stage remains: its transaction is rolled back, or gone with its session. */
async function fail(tools: StageTools, error: unknown, what: string): Promise<Staged> {
  await abandon(tools);
  return describeFailure(tools, error, what);
}

/** The same once the action may have run: sequences that it drew from have moved, and are looked at once more. */
async function failAfter(
  tools: StageTools,
  error: unknown,
  what: string,
  begun: { readonly occurrence: OccurrenceId; readonly opened: Opened },
): Promise<Staged> {
  const { session, readableSequences, release } = tools;
  const rolledBack = await settle(session.script('rollback'));
  const isLost = rolledBack.kind === 'rejected';
  const looked =
    isLost || readableSequences.length === 0
      ? undefined
      : await settle(session.script(`${beginStage(tools, begun.occurrence)}; rollback`));
  await release(isLost || looked?.kind === 'rejected');
  const failure = describeFailure(tools, error, what);
  if (looked?.kind !== 'fulfilled') return failure;
  const after = looked.value.map(({ rows }) => rows[0]?.[3]).find((positions) => positions != null);
  return { ...failure, residue: residueOf({ ...tools, opened: begun.opened }, after ?? '') };
}

async function abandon({ session, release }: StageTools): Promise<void> {
  const rolledBack = await settle(session.script('rollback'));
  await release(rolledBack.kind === 'rejected');
}

const ALREADY_COMMITTED: Staged = {
  kind: 'failed',
  reason: 'already-committed',
  detail: 'its changes are in the database since an earlier execution; do not approve again',
};
const ALREADY_VOID: Staged = {
  kind: 'failed',
  reason: 'already-void',
  detail: 'an earlier attempt was interrupted and recovered: it can no longer commit',
};

/** A transaction held open with the action's writes in it, sealed by its observation. */
class HeldStage implements Stage {
  readonly candidate: string;
  readonly #tools: StageTools;
  readonly #observed: Observed;
  readonly #occurrence: OccurrenceId;
  readonly #readings: readonly StateReading[];
  #evidence: Evidence | undefined;
  #ended = false;

  constructor(tools: StageTools, observed: Observed, occurrence: OccurrenceId, readings: readonly StateReading[]) {
    this.candidate = observed.candidate;
    this.#tools = tools;
    this.#observed = observed;
    this.#occurrence = occurrence;
    this.#readings = readings;
  }

  /**
   * Declared state as it was locked before the action ran. What was not declared then is locked now and read beneath
   * the candidate: rows that the action itself wrote are protected by its own locks.
   */
  async read(reads: readonly StateRead[]): Promise<readonly StateReading[]> {
    this.#assertHeld();
    const known = new Map(this.#readings.map((reading) => [readingId(reading), reading]));
    const found = reads.map((read) => known.get(readingId(read)));
    if (found.every((reading) => reading !== undefined)) {
      return reads.map((read, index) => narrow(found[index] as StateReading, read));
    }
    await lockRows(this.#tools, this.#occurrence, this.#tools.lockReads(reads)).catch((error: unknown) => {
      throw asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', 'declared state could not be locked');
    });
    return await this.#tools.readCommitted(reads);
  }

  async observe(): Promise<Evidence> {
    this.#assertHeld();
    this.#evidence ??= await readObservation(this.#observed);
    return this.#evidence;
  }

  /**
   * The observation sealed the stage, and promotion compares transaction, records and counters with it inside the
   * backend, in the step that commits: the facts stated here are the condition of that step.
   */
  async recheck(): Promise<CandidateFacts> {
    const { candidate, evidence } = await this.observe();
    return { candidate, evidence };
  }

  async promote(permit: ConsumedPermit): Promise<Promotion> {
    this.#assertHeld();
    const { marker } = permit;
    invariant(marker.occurrence === this.#occurrence, 'the permit is for the occurrence that was staged');
    this.#ended = true;
    const { session, deployment, reached, transactionStatus, watched, release } = this.#tools;
    const { xid } = this.#observed.opened;
    let promotion: Promotion | undefined;
    try {
      const { quotesValues } = this.#tools;
      const tools = { session, deployment, xid, watched: watched.oids, reached, transactionStatus, quotesValues };
      promotion = await promoteCandidate(tools, marker);
      if (promotion.kind === 'confirmed') this.#tools.promoted(xid);
      return promotion;
    } finally {
      const inDoubt = promotion === undefined || promotion.kind === 'unknown';
      // Nothing waits for the reset of a session that is fine; one in doubt is cut before anything else happens.
      if (inDoubt) await release(true);
      else void release(false);
    }
  }

  async discard(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    await abandon(this.#tools);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.discard();
  }

  #assertHeld(): void {
    invariant(!this.#ended, 'the stage is still held');
  }
}

function readingId({ target, key }: StateRead | StateReading): string {
  return canonical([target, key]);
}

function narrow(reading: StateReading, { columns }: StateRead): StateReading {
  if (columns === undefined || reading.row === null) return reading;
  const { row } = reading;
  return { ...reading, row: Object.fromEntries(columns.map((name) => [name, row[name] ?? null])) };
}
