import { setTimeout as sleep } from 'node:timers/promises';
import type { CommitLog } from '../../contract/adapter.ts';
import type { LedgerContext } from '../../contract/ledgers.ts';
import { EffectMatchError, invariant } from '../../errors.ts';
import { COMMIT_LOG } from '../../postgres/commit-log.ts';
import { type Connection, sqlState, type WireStatement } from '../../postgres/connection.ts';
import type { About, Durability, LedgerSnapshot, LedgerTables, TableStore } from '../store.ts';
import { Fetching, type Queries } from './fetch.ts';
import { type FetchedRow, FetchedTables, Unfetched } from './fetched.ts';
import { handOver } from './hand-over.ts';
import { Listener } from './listener.ts';
import { LedgerMemory } from './memory.ts';
import { NamedStatements } from './named.ts';
import {
  beginning,
  COMMIT,
  closed,
  isLost,
  LOCK_TIMEOUT,
  openSession,
  type Place,
  unavailable,
  WAIT_FOR_FLUSH,
} from './transaction.ts';
import { writeOf } from './write.ts';

/** The most decisions of one process that share a transaction. */
const GROUP_MAX = 64;
/** The maximum number of idle sessions kept for later hand-overs. */
const IDLE_MAX = 8;
const PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 500;

type Result = { readonly value: unknown } | { readonly error: unknown };

interface Waiting {
  readonly about: About;
  readonly durability: Durability;
  readonly log: CommitLog | undefined;
  readonly decide: (tables: LedgerTables) => unknown;
  readonly settle: (result: Result) => void;
}

/** A COMMIT that was not answered. Its first row later shows whether it happened. */
interface Unanswered {
  readonly first: FetchedRow;
  readonly results: readonly Result[];
}

/** Decisions that share a transaction, across all its retries. */
interface Transaction {
  readonly group: readonly Waiting[];
  unanswered: Unanswered | undefined;
}

/**
 * Tables on a server. A lock lets only one transaction decide at a time, across all processes. If
 * this process knows what the decisions depend on, and the server confirms it, a transaction takes
 * one message. Otherwise it takes two: the first fetches, the second writes. Decisions that arrive
 * meanwhile share the next transaction, each decided separately.
 */
export class PostgresStore implements TableStore {
  readonly context: LedgerContext;
  readonly #place: Place;
  readonly #sessions = new Map<'reading' | 'deciding', Promise<Connection>>();
  /** The same sessions once they are open, for use without waiting. */
  readonly #open = new Map<'reading' | 'deciding', Connection>();
  readonly #waiting: Waiting[] = [];
  readonly #memory = new LedgerMemory();
  readonly #named: NamedStatements;
  /**
   * The log of each session that is a single server process. It never changes, and asking for its
   * name reads a file.
   */
  readonly #logs = new WeakMap<Connection, string>();
  readonly #listener: Listener;
  /** Sessions for hand-overs. */
  readonly #idle: Connection[] = [];
  #isDeciding = false;
  #isClosed = false;

  constructor(context: LedgerContext, place: Place) {
    this.context = context;
    this.#place = place;
    this.#named = new NamedStatements(place.deadlineMs);
    this.#listener = new Listener(() => openSession(place), place.queries.channel);
  }

  readonly changed: TableStore['changed'] & {} = (occurrence, ms, signal) =>
    this.#listener.wait(occurrence, ms, signal);

  decide<T>(
    about: About,
    durability: Durability,
    decide: (tables: LedgerTables) => T,
    log?: CommitLog,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const settle = (result: Result) =>
        'error' in result ? reject(result.error) : resolve(result.value as T);
      const shared = this.#place.namesLog ? log : undefined;
      this.#waiting.push({ about, durability, log: shared, decide, settle });
      if (!this.#isDeciding) void this.#decideAll();
    });
  }

  async read<T>(about: About, look: (tables: LedgerTables) => T): Promise<T> {
    const tables = await this.#untilDeadline(async () => {
      const session = this.#alive('reading') ?? (await this.#session('reading'));
      const run: Connection['run'] = (statements) => this.#named.read(session, statements);
      return await readTables({ run }, this.#place.queries, this.context, about);
    });
    return look(tables);
  }

  readonly decideWith: TableStore['decideWith'] & {} = async (about, work, decide, isOurs) => {
    if (this.#isClosed) throw closed();
    const idle = this.#idle.pop();
    const session = idle?.isAlive ? idle : await openSession(this.#place);
    const tables = new FetchedTables(this.context);
    const parts = { session, queries: this.#place.queries, tables, place: this.#place };
    const ended = await handOver(parts, about, work, decide);
    if (ended.kind === 'decided') {
      if (ended.result.released) this.#memory.learn(tables);
      if (this.#isClosed || this.#idle.length >= IDLE_MAX) await session.close();
      else this.#idle.push(session);
      return ended.result;
    }
    session.destroy();
    // The lock is granted only after the unanswered transaction has ended, either way.
    if (ended.kind === 'unanswered' && (await this.decide(about, 'relaxed', isOurs)))
      return { released: true, value: ended.value };
    throw ended.error;
  };

  /** Uses a separate session, so that its transactions do not hold up readers. */
  async openSnapshot(): Promise<LedgerSnapshot> {
    const { queries } = this.#place;
    const session = await this.#untilDeadline(() => openSession(this.#place));
    return {
      read: async (about, look) => {
        try {
          await session.query('begin isolation level repeatable read read only');
          const tables = await readTables(session, queries, this.context, about);
          await session.query('commit');
          return look(tables);
        } catch (error) {
          throw unavailable(error);
        }
      },
      findStructureFault: () => findStructureFault(session, queries),
      [Symbol.asyncDispose]: () => session.close(),
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#listener.close();
    const sessions = [...this.#sessions.values()];
    this.#sessions.clear();
    for (const session of this.#idle.splice(0)) await session.close();
    for (const session of sessions) await session.then((open) => open.close()).catch(() => {});
  }

  /** Decisions that arrive while a group is decided form the next group. */
  async #decideAll(): Promise<void> {
    this.#isDeciding = true;
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, GROUP_MAX);
      const results = await this.#decideGroup(group);
      group.forEach(({ settle }, index) => {
        const result = results[index];
        if (result !== undefined) settle(result);
      });
    }
    this.#isDeciding = false;
  }

  /**
   * Retries if the connection was lost. Once the lock is granted again, an unanswered COMMIT has
   * happened or can no longer happen, and the first row it wrote shows which.
   */
  async #decideGroup(group: readonly Waiting[]): Promise<readonly Result[]> {
    const transaction: Transaction = { group, unanswered: undefined };
    try {
      return await this.#untilDeadline(() => this.#tryOnce(transaction));
    } catch (cause) {
      const what = 'COMMIT was not answered; whether it became durable is not known';
      const error =
        transaction.unanswered === undefined
          ? cause
          : new EffectMatchError('ERR_EM_STORE_UNAVAILABLE', what, { cause });
      return group.map(() => ({ error }));
    }
  }

  async #tryOnce(transaction: Transaction): Promise<readonly Result[]> {
    const session = this.#alive('deciding') ?? (await this.#session('deciding'));
    try {
      return (
        (await this.#decideAtOnce(session, transaction)) ??
        (await this.#decideFetched(session, transaction))
      );
    } catch (error) {
      if (isLost(error)) {
        session.destroy();
      } else {
        transaction.unanswered = undefined;
        await session.query('rollback').catch(() => {});
      }
      throw error;
    }
  }

  /** Decides in one message if this process knows enough; otherwise returns undefined. */
  async #decideAtOnce(
    session: Connection,
    transaction: Transaction,
  ): Promise<readonly Result[] | undefined> {
    const { group, unanswered } = transaction;
    const { log } = this.#memory;
    // The log's name is fetched once, with the first decision that names a log.
    if (log === undefined && group.some((one) => one.log !== undefined)) return undefined;
    const abouts = group.map(({ about }) => about);
    const assumed = unanswered ? undefined : this.#memory.assume(this.context, abouts);
    if (assumed === undefined) return undefined;
    const { tables, belief } = assumed;
    const results = group.map(({ decide }) => attempt(tables, decide));
    if (results.some((result) => 'error' in result && result.error instanceof Unfetched))
      return undefined;
    transaction.unanswered = unansweredOf(tables, results);
    const { queries, deadlineMs } = this.#place;
    const shared = group.some((one) => one.log?.name === log) ? log : undefined;
    const sameLog = shared !== undefined;
    const demand = sameLog && this.#logs.get(session) !== shared ? [demandLog(shared)] : [];
    const relaxed = isRelaxed(group, log);
    // A session that no pooler shares was told once how long to wait.
    const lockMs = this.#named.isOwn(session) ? 0 : deadlineMs;
    const write = writeOf(queries, tables, { relaxed, belief, lockMs, sameLog });
    // Without BEGIN, the whole message is one transaction, which ends before its last reply.
    const { replies, failure } = await this.#named.run(session, [...demand, write]);
    const [id, process] = replies[demand.length]?.rows[0]?.[0]?.split(' ') ?? [];
    noteTransaction(group, log, id);
    this.#named.answered(session, process);
    if (failure === undefined) {
      invariant(id !== undefined, 'a message that was answered has decided');
      if (sameLog && this.#named.isOwn(session)) this.#logs.set(session, shared);
      this.#memory.wasRight();
      this.#memory.learn(tables);
      return results;
    }
    if (isLost(failure.error) || sqlState(failure.error) === LOCK_TIMEOUT) throw failure.error;
    transaction.unanswered = undefined;
    this.#memory.wasWrong();
    return undefined;
  }

  /** Decides in two messages: the first fetches what the decisions are about. */
  async #decideFetched(session: Connection, transaction: Transaction): Promise<readonly Result[]> {
    const { group, unanswered } = transaction;
    const tables = new FetchedTables(this.context);
    await this.#begin(session, tables, group, unanswered);
    const [found] = tables.lists.page ?? [];
    if (unanswered !== undefined && found?.digest === unanswered.first.digest) {
      const { failure } = await session.run([WAIT_FOR_FLUSH, COMMIT]);
      if (failure !== undefined) throw failure.error;
      return unanswered.results;
    }
    const { log, transaction: id } = tables.lists;
    noteTransaction(group, log, id);
    this.#memory.setServer(tables.now(), log);
    const results: Result[] = [];
    for (const { decide } of group) {
      let result = attempt(tables, decide);
      while ('error' in result && result.error instanceof Unfetched) {
        const { occurrence } = result.error;
        await new Fetching(this.#place.queries, tables).occurrences([occurrence]).run(session);
        result = attempt(tables, decide);
      }
      results.push(result);
    }
    transaction.unanswered = unansweredOf(tables, results);
    await this.#commit(session, tables, isRelaxed(group, log));
    this.#memory.learn(tables);
    return results;
  }

  async #begin(
    session: Connection,
    tables: FetchedTables,
    group: readonly Waiting[],
    unanswered: Unanswered | undefined,
  ): Promise<void> {
    const fetching = new Fetching(this.#place.queries, tables);
    for (const statement of beginning(this.#place)) fetching.say(statement);
    fetching.lock().moment();
    if (group.some(({ log }) => log !== undefined))
      fetching.say(demandLog(null), ([row]) => {
        tables.lists.log = row?.[0] ?? '';
      });
    for (const { about } of group) fetching.about(about);
    if (unanswered !== undefined)
      fetching.about({ page: { afterSeq: unanswered.first.seq - 1, limit: 1 } });
    await fetching.run(session);
  }

  async #commit(session: Connection, tables: FetchedTables, relaxed: boolean): Promise<void> {
    const write = writeOf(this.#place.queries, tables, { relaxed });
    const { replies, failure } = await session.run([write, COMMIT]);
    if (failure !== undefined) throw failure.error;
    invariant(replies.at(-1)?.command === 'COMMIT', 'a COMMIT that returned has committed');
  }

  #alive(use: 'reading' | 'deciding'): Connection | undefined {
    const open = this.#open.get(use);
    return open?.isAlive ? open : undefined;
  }

  async #session(use: 'reading' | 'deciding'): Promise<Connection> {
    const open = await this.#sessions.get(use)?.catch(() => undefined);
    if (open?.isAlive) return open;
    if (this.#isClosed) throw closed();
    const opening = openSession(this.#place);
    this.#sessions.set(use, opening);
    const session = await opening;
    this.#open.set(use, session);
    return session;
  }

  /** Retries until the deadline while the server cannot be reached. */
  async #untilDeadline<T>(attempt: () => Promise<T>): Promise<T> {
    const until = performance.now() + this.#place.deadlineMs;
    for (let pauseMs = PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      if (this.#isClosed) throw closed();
      try {
        return await attempt();
      } catch (error) {
        if (!isLost(error) || performance.now() > until) throw unavailable(error);
        await sleep(pauseMs);
      }
    }
  }
}

/** Whether no decision in the group must wait for the flush, given the ledger's log. */
function isRelaxed(group: readonly Waiting[], log: string | undefined): boolean {
  return group.every(
    (one) =>
      one.durability === 'relaxed' ||
      (one.durability === 'claim' && one.log !== undefined && one.log.name === log),
  );
}

/** Asks which log the session writes to, and fails if it is not `log`, unless that is null. */
function demandLog(log: string | null): WireStatement {
  const text = `select log.name, 1 / case when $1::text is null or log.name = $1 then 1 else 0 end
    from (select (${COMMIT_LOG}) as name) as log`;
  return { text, values: [log] };
}

/** Tells each decision's `CommitLog`, if it is this log, which transaction is the ledger's. */
function noteTransaction(
  group: readonly Waiting[],
  log: string | undefined,
  transaction: string | null | undefined,
): void {
  if (transaction == null) return;
  for (const one of group) if (one.log?.name === log) one.log?.note(transaction);
}

function attempt(tables: FetchedTables, decide: Waiting['decide']): Result {
  try {
    return { value: tables.attempt(decide) };
  } catch (error) {
    return { error };
  }
}

function unansweredOf(tables: FetchedTables, results: readonly Result[]): Unanswered | undefined {
  const [first] = tables.changes.rows;
  return first && { first, results };
}

async function readTables(
  session: Pick<Connection, 'run'>,
  queries: Queries,
  context: LedgerContext,
  about: About,
): Promise<FetchedTables> {
  const tables = new FetchedTables(context);
  const fetch = () => new Fetching(queries, tables);
  await fetch().about(about).run(session);
  const { page = [], unsettled = [] } = tables.lists;
  const depends = [...(about.neighbours === true ? page : []), ...unsettled];
  if (depends.length === 0) return tables;
  const occurrences = [...new Set(depends.map((one) => one.occurrence ?? ''))];
  await fetch().occurrences(occurrences).issuancesOf(occurrences).run(session);
  return tables;
}

async function findStructureFault(
  session: Connection,
  queries: Queries,
): Promise<string | undefined> {
  try {
    const { rows } = await session.query(queries.get('structure').text);
    const [fault] = rows[0] ?? [];
    return fault == null
      ? await findIncompleteIndex(session, queries)
      : `the schema was changed: ${fault}`;
  } catch (error) {
    throw unavailable(error);
  }
}

const SCANS = ['indexscan', 'indexonlyscan', 'bitmapscan'];

/** Finds an index that lacks a row: with such an index, the row could be inserted twice. */
async function findIncompleteIndex(
  session: Connection,
  queries: Queries,
): Promise<string | undefined> {
  const allow = (scans: readonly string[], value: 'on' | 'off') =>
    scans.map((scan) => ({ text: `set local enable_${scan} = ${value}` }));
  const { replies, failure } = await session.run([
    { text: 'begin isolation level repeatable read read only' },
    { text: 'set local jit = off' },
    ...allow(['seqscan'], 'off'),
    queries.get('entries'),
    ...allow(['seqscan'], 'on'),
    ...allow(SCANS, 'off'),
    queries.get('entries'),
    { text: 'commit' },
  ]);
  if (failure !== undefined) throw failure.error;
  const [byIndex = [], byTable = []] = replies
    .map(({ rows }) => rows)
    .filter(({ length }) => length > 0);
  const wrong = byTable.find(([, count], at) => byIndex[at]?.[1] !== count);
  return wrong && `the index ${wrong[0]} does not have the rows of its table`;
}
