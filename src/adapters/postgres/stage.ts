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
import { randomIds } from '../../crypto/random-ids.ts';
import { invariant } from '../../errors.ts';
import { asFault, type Connection, type Reply, type Statement } from '../../postgres/connection.ts';
import { canonical } from '../../protocol/canon.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import type { OccurrenceId } from '../../protocol/record.ts';
import type { CheckedAction } from './action.ts';
import { CALLS } from './calls.ts';
import type { LockedReads } from './locking.ts';
import { type Observed, type Opened, readObservation } from './observation.ts';
import { promoteCandidate } from './promotion.ts';
import { describeMoved } from './residue.ts';
import type { Deployment } from './secret.ts';
import { isReset } from './sessions.ts';
import { describeFailure } from './stage-failure.ts';

/** What a stage needs of the adapter that opens it. */
export interface StageTools extends Omit<Observed, 'candidate' | 'opened' | 'answer'> {
  readonly session: Connection;
  readonly deployment: Deployment;
  readonly isolation: 'read committed' | 'serializable';
  readonly stageTimeoutMs: number;
  readonly lockTimeoutMs: number;
  /**
   * The statement that fires every deferrable constraint but our own; empty where there is none.
   */
  readonly forceConstraints: string;
  readonly quotesValues: boolean;
  readonly reached: AdapterContext['reached'];
  /** Told every transaction that was promoted. */
  readonly promoted: (xid: string) => void;
  readonly transactionStatus: (xid: string) => Promise<string | null>;
  /** Declared state as it is committed beneath the candidate. */
  readonly readCommitted: (reads: readonly StateRead[]) => Promise<readonly StateReading[]>;
  readonly lockReads: (reads: readonly StateRead[]) => LockedReads;
  /**
   * Takes the session back when the stage is over; `inDoubt` where its transaction may still be
   * open.
   */
  readonly release: (inDoubt: boolean, reset?: Promise<boolean>) => Promise<void>;
}

/**
 * Runs the action once in a transaction of its own and holds it. Everything up to the observation
 * is one message: the server leaves out whatever follows an error. Were the transaction over, the
 * recorders would refuse every write outside a stage.
 */
export async function openStage(
  tools: StageTools,
  under: StagedUnder,
  work: { readonly action: CheckedAction; readonly locked: LockedReads },
): Promise<Staged> {
  const { occurrence } = under.claim.sealed.record;
  const { session, deployment } = tools;
  const { action, locked } = work;
  const locking = locked.queries.length === 0 ? [] : [lockRows(deployment, occurrence, locked)];
  const { looking, running } = session.together(() => ({
    looking: tools.isolation === 'serializable' ? session.run([findMarker(occurrence)]) : undefined,
    running: session.run([
      ...[{ text: BEGIN[tools.isolation] }, openCall(tools, occurrence), ...locking],
      ...action.statements.map(({ sql, values }) => ({ text: sql, values })),
      ...(tools.forceConstraints === '' ? [] : [{ text: tools.forceConstraints }]),
      { prepared: 'effectmatch_observe', values: [tools.watched.oids, tools.asked.oids] },
    ]),
  }));

  const looked = await looking;
  const { replies, failure } = await running;
  if (looked?.failure !== undefined)
    return await fail(tools, looked.failure.error, 'the stage could not be opened');
  const [, opened, ...done] = replies;
  if (opened === undefined)
    return await fail(tools, failure?.error, 'the stage could not be opened');
  tools.reached('adapter:stage-opened');
  const begun = readOpened(opened);
  const marker = looked === undefined ? begun.marker : (looked.replies[0]?.rows[0]?.[0] ?? null);
  if (marker !== null) {
    await abandon(tools);
    return marker === 'committed' ? ALREADY_COMMITTED : ALREADY_VOID;
  }
  const failed = (what: string) =>
    failAfter(tools, failure?.error, what, { occurrence, opened: begun });
  if (done.length < locking.length) return await failed('declared state could not be locked');
  const ran = done.length - locking.length;
  if (ran < action.statements.length) return await failed(`statement ${ran + 1} failed`);
  tools.reached('adapter:action-done');
  const answer = done.at(-1)?.rows;
  if (failure !== undefined || answer === undefined)
    return await failed('a deferred constraint failed, or the outcome could not be observed');
  // The random part keeps what is stored of a permit from being tried out: transactions can be
  // counted.
  const candidate = `postgresql:${deployment.backend}:${begun.xid}:${randomIds.hex(16)}`;
  const readings = locking.length === 0 ? [] : readLocked(locked, done[0]);
  const stage = new HeldStage(
    tools,
    { ...tools, candidate, opened: begun, answer },
    under,
    readings,
  );
  return { kind: 'held', stage };
}

const BEGIN = {
  'read committed': 'begin isolation level read committed read write',
  serializable: 'begin isolation level serializable read write',
} as const;

/**
 * A transaction of its own: one that is serializable would fail with every other that writes a
 * marker meanwhile.
 */
function findMarker(occurrence: OccurrenceId): Statement {
  return { text: 'select effectmatch.find_marker($1)', values: [occurrence] };
}

/**
 * Row share locks on declared state, taken by a trusted function that returns the rows as they were
 * locked.
 */
function lockRows(
  deployment: Deployment,
  occurrence: OccurrenceId,
  { queries }: LockedReads,
): Statement {
  const mac = deployment.sign('reads', occurrence, ...queries);
  return {
    text: 'select * from effectmatch.read_rows($1, $2, $3)',
    values: [occurrence, queries, mac],
  };
}

function readLocked(locked: LockedReads, reply: Reply | undefined): readonly StateReading[] {
  return locked.decode((reply?.rows ?? []).map(([image]) => image ?? null));
}

function openCall(tools: StageTools, occurrence: OccurrenceId): Statement {
  const timeouts = [String(tools.stageTimeoutMs), String(tools.lockTimeoutMs)];
  return { prepared: 'effectmatch_open', values: [occurrence, tools.asked.oids, ...timeouts] };
}

function readOpened({ rows }: Reply): Opened & { readonly marker: string | null } {
  const [xid, atMs, marker, positions] = rows[0] ?? [];
  invariant(xid != null && atMs != null, 'open answers with the transaction and the time');
  return { xid, atMs: Number(atMs), positions: positions ?? '', marker: marker ?? null };
}

/** Nothing of a failed stage remains: its transaction is rolled back, or gone with its session. */
async function fail(tools: StageTools, error: unknown, what: string): Promise<Staged> {
  await abandon(tools);
  return describeFailure(tools, error, what);
}

/**
 * The same once the action may have run: sequences that it drew from have moved, and are looked at
 * once more.
 */
async function failAfter(
  tools: StageTools,
  error: unknown,
  what: string,
  begun: { readonly occurrence: OccurrenceId; readonly opened: Opened },
): Promise<Staged> {
  const { session, readableSequences, asked, release } = tools;
  // No COMMIT follows that would find a statement of somebody else in the place of the prepared
  // one.
  const look: Statement = {
    text: CALLS.effectmatch_open,
    values: openCall(tools, begun.occurrence).values ?? [],
  };
  const isRolledBack = await rollBack(session);
  const looked =
    !isRolledBack || readableSequences.length === 0
      ? undefined
      : await session.run([{ text: BEGIN[tools.isolation] }, look, { text: 'rollback' }]);
  await release(!isRolledBack || looked?.failure !== undefined);
  const described = describeFailure(tools, error, what);
  if (looked === undefined || looked.failure !== undefined) return described;
  const moved = asked.compare(begun.opened.positions, looked.replies[1]?.rows[0]?.[3] ?? '');
  return { ...described, residue: describeMoved(readableSequences, moved) };
}

async function abandon({ session, release }: StageTools): Promise<void> {
  await release(!(await rollBack(session)));
}

async function rollBack(session: Connection): Promise<boolean> {
  return (await session.run([{ text: 'rollback' }])).failure === undefined;
}

const ALREADY_COMMITTED: Staged = {
  kind: 'failed',
  reason: 'already-committed',
  detail: 'already committed by an earlier execution; do not approve it again',
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
  readonly #permit: PermitCheck;
  readonly #readings: readonly StateReading[];
  #evidence: Evidence | undefined;
  /** Taken after the observation. */
  #locks = 0;
  #ended = false;

  constructor(
    tools: StageTools,
    observed: Observed,
    under: StagedUnder,
    readings: readonly StateReading[],
  ) {
    this.candidate = observed.candidate;
    this.#tools = tools;
    this.#observed = observed;
    this.#occurrence = under.claim.sealed.record.occurrence;
    this.#permit = new PermitCheck(under, observed.candidate);
    this.#readings = readings;
  }

  /**
   * Declared state as it was locked before the action ran. What was not declared then is locked now
   * and read beneath the candidate: rows that the action itself wrote are protected by its own
   * locks.
   */
  async read(reads: readonly StateRead[]): Promise<readonly StateReading[]> {
    this.#assertHeld();
    const known = new Map(this.#readings.map((reading) => [readingId(reading), reading]));
    const found = reads.map((read) => known.get(readingId(read)));
    if (found.every((reading) => reading !== undefined)) {
      return reads.map((read, index) => narrow(found[index] as StateReading, read));
    }
    const late = this.#tools.lockReads(reads);
    this.#locks += late.queries.length;
    const { session, deployment } = this.#tools;
    const { failure } = await session.run([lockRows(deployment, this.#occurrence, late)]);
    if (failure !== undefined)
      throw asFault(
        failure.error,
        'ERR_EM_ADAPTER_UNAVAILABLE',
        'declared state could not be locked',
      );
    return await this.#tools.readCommitted(reads);
  }

  async observe(): Promise<Evidence> {
    this.#assertHeld();
    this.#evidence ??= await readObservation(this.#observed);
    this.#permit.observed(this.#evidence.evidence);
    return this.#evidence;
  }

  /**
   * The observation sealed the stage, and promotion demands inside the backend, in the step that
   * commits, that it is the same transaction and nothing was written in it since: the facts stated
   * here are the condition of that step.
   */
  async recheck(): Promise<CandidateFacts> {
    const { candidate, evidence } = await this.observe();
    return { candidate, evidence };
  }

  async promote(permit: ConsumedPermit): Promise<Promotion> {
    this.#assertHeld();
    const mismatch = this.#permit.refusalOf(permit);
    if (mismatch !== undefined) {
      await this.discard();
      return mismatch;
    }
    this.#ended = true;
    const { session, deployment, reached, transactionStatus, release } = this.#tools;
    const { xid } = this.#observed.opened;
    const { quotesValues } = this.#tools;
    const tools = {
      session,
      deployment,
      xid,
      locks: this.#locks,
      reached,
      transactionStatus,
      quotesValues,
    };
    // The reset travels with the COMMIT. Where that fails, the session is rolled back first and
    // reset once more.
    const { promoting, resetting } = session.together(() => ({
      promoting: promoteCandidate(tools, permit.marker),
      resetting: isReset(session).catch(() => false),
    }));
    let promotion: Promotion | undefined;
    try {
      promotion = await promoting;
      if (promotion.kind === 'confirmed') this.#tools.promoted(xid);
      return promotion;
    } finally {
      // Nothing waits for the reset of a session that is fine; one in doubt is cut before anything
      // else happens.
      if (promotion?.kind === 'confirmed') void release(false, resetting);
      else if (promotion?.kind === 'refused') void release(false);
      else await release(true);
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
