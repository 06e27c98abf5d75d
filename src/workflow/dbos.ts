/**
 * Runs of workflows on any number of machines, with DBOS on PostgreSQL.
 *
 * @module
 */
import '../node-version.ts';

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorsOf } from '../errors.ts';
import { checkCount, type EngineHost, type OpenEngine, type WorkflowEngine } from './engine.ts';
import { Heartbeats } from './heartbeat.ts';
import type { RunStatus } from './run.ts';

/** The part of DBOS 5 that the engine uses. Pass the class `DBOS` from `@dbos-inc/dbos-sdk`. */
export interface DbosApi {
  setConfig(config: {
    name: string;
    systemDatabaseUrl: string;
    executorID: string;
    applicationVersion: string;
    logLevel: string;
  }): void;
  launch(): Promise<void>;
  shutdown(options: { deregister: boolean; workflowCompletionTimeoutMS: number }): Promise<void>;
  registerWorkflow(
    work: (run: string) => Promise<string>,
    config: { name: string; maxRecoveryAttempts: number },
  ): (run: string) => Promise<string>;
  registerQueue(
    name: string,
    options: { workerConcurrency: number; minPollingIntervalMs: number },
  ): Promise<unknown>;
  startWorkflow(
    target: (run: string) => Promise<string>,
    params: {
      workflowID: string;
      queueName: string;
      enqueueOptions: { deduplicationID: string };
      duplicationPolicy: 'return-existing';
    },
  ): (run: string) => Promise<unknown>;
  runStep<T>(work: () => Promise<T>, config: { name: string; retriesAllowed: boolean }): Promise<T>;
  sleep(ms: number): Promise<void>;
  listWorkflows(input: {
    status: 'PENDING';
    workflowName: string;
    loadInput: boolean;
  }): Promise<readonly { readonly workflowID: string; readonly executorId?: string }[]>;
  resumeWorkflow(id: string, options: { queueName: string }): Promise<unknown>;
}

/** How the DBOS engine behaves. */
export interface DbosOptions {
  /** The class `DBOS` from `@dbos-inc/dbos-sdk`. A process has one, so it has one engine. */
  readonly DBOS: DbosApi;
  /** The database for DBOS's tables and the workers' heartbeats. */
  readonly url: string;
  /** The unique name of this worker; random by default. */
  readonly worker?: string;
  /**
   * How many runs this worker drives at the same time; 16 by default. Runs that wait for a person
   * do not count.
   */
  readonly runs?: number;
  /** How often the worker sends a heartbeat, in milliseconds; 1000 by default. */
  readonly heartbeatMs?: number;
  /**
   * How often workers look for runs and approvals that another program, such as the command line,
   * has recorded, in milliseconds; 5000 by default.
   */
  readonly lookMs?: number;
  /**
   * How long a worker must be silent before its runs are taken over, in milliseconds; 5000 by
   * default.
   */
  readonly silentMs?: number;
}

const NAME = 'effectmatch-run';
const QUEUE = 'effectmatch';
/**
 * The same for every release: workers take over each other's runs, and the plan decides which runs
 * they can drive.
 */
const VERSION = 'effectmatch-1';
const HEARTBEAT_MS = 1000;
const SILENT_MS = 5000;
const LOOK_MS = 5000;
const RUNS = 16;
const QUEUE_POLL_MS = 200;
/**
 * The pause between two tries in one DBOS workflow. After the longest pause the workflow ends, and
 * a later look starts another.
 */
const SHORTEST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 3000;
/**
 * The longest pause before a run that makes no progress is started again, for example because its
 * backend is down.
 */
const LONGEST_LOOK_MS = 60_000;
/**
 * Effectively no limit: a run may be resumed each time its worker dies, since its work is in the
 * ledger.
 */
const ATTEMPTS = 1_000_000;
const CLOSE_MS = 5000;

/**
 * Drives runs on any number of machines, with DBOS on PostgreSQL as the scheduler: it distributes
 * work among the workers and limits how much each does at once. A run that waits for a person
 * exists only in the ledger and takes no slot. DBOS's retries are off: interrupted work is driven
 * again from the ledger. In DBOS 5 the workflows of a dead worker stay with it while others live,
 * so workers send heartbeats and take over from silent ones. A wrong guess is harmless: two workers
 * that drive one run get the same verdicts.
 */
export function dbosEngine(options: DbosOptions): WorkflowEngine {
  return { open: (host) => DbosWorker.open(options, host) };
}

let isOpen = false;

/** Checks the options and fills in defaults. */
function settle(options: DbosOptions): Required<DbosOptions> {
  const { DBOS, url, worker = randomUUID(), runs = RUNS } = options;
  const { heartbeatMs = HEARTBEAT_MS, silentMs = SILENT_MS, lookMs = LOOK_MS } = options;
  const counts = { runs, heartbeatMs, silentMs, lookMs };
  for (const [name, count] of Object.entries(counts)) checkCount('dbosEngine', name, count);
  if (silentMs <= 2 * heartbeatMs)
    throw invalid('silentMs must be more than twice heartbeatMs, or living workers seem dead');
  if (isOpen)
    throw invalid('DBOS is one per process, and an engine is open already; close it first');
  return { DBOS, url, worker, ...counts };
}

const invalid = errorsOf('ERR_EM_CONFIG_INVALID', 'dbosEngine: ');

class DbosWorker implements OpenEngine {
  readonly #dbos: DbosApi;
  readonly #heartbeats: Heartbeats;
  readonly #work: (run: string) => Promise<string>;
  readonly #closing: AbortController;
  readonly #host: EngineHost;
  readonly #lookMs: number;
  readonly #loops: Promise<unknown>;
  /** Runs that a look has started and that can still make progress: when to start each again. */
  readonly #stuck = new Map<string, { readonly at: number; readonly pauseMs: number }>();

  private constructor(parts: {
    readonly options: Required<DbosOptions>;
    readonly heartbeats: Heartbeats;
    readonly work: (run: string) => Promise<string>;
    readonly closing: AbortController;
    readonly host: EngineHost;
  }) {
    const { DBOS: dbos, heartbeatMs, lookMs } = parts.options;
    this.#dbos = dbos;
    this.#heartbeats = parts.heartbeats;
    this.#work = parts.work;
    this.#closing = parts.closing;
    this.#host = parts.host;
    this.#lookMs = lookMs;
    // Two separate loops: a long look must not delay the heartbeat.
    this.#loops = Promise.all([
      this.#repeat(heartbeatMs, () => this.#beat()),
      this.#repeat(lookMs, () => this.#look()),
    ]);
  }

  static async open(given: DbosOptions, host: EngineHost): Promise<DbosWorker> {
    const options = settle(given);
    const { DBOS: dbos, url, worker, runs, silentMs } = options;
    isOpen = true;
    let heartbeats: Heartbeats | undefined;
    try {
      const closing = new AbortController();
      heartbeats = await Heartbeats.open(url, worker, silentMs);
      await heartbeats.beat();
      dbos.setConfig({
        name: 'effectmatch',
        systemDatabaseUrl: url,
        executorID: worker,
        applicationVersion: VERSION,
        logLevel: 'error',
      });
      const drive = (run: string) => driveWhilePossible(dbos, host, run, closing.signal);
      const work = dbos.registerWorkflow(drive, { name: NAME, maxRecoveryAttempts: ATTEMPTS });
      await heartbeats.alone(() => dbos.launch());
      const limits = { workerConcurrency: runs, minPollingIntervalMs: QUEUE_POLL_MS };
      await dbos.registerQueue(QUEUE, limits);
      return new DbosWorker({ options, heartbeats, work, closing, host });
    } catch (error) {
      if (heartbeats !== undefined) await shutDown(dbos).catch(() => {});
      await heartbeats?.close();
      isOpen = false;
      throw error;
    }
  }

  /** Adds no second DBOS workflow while one for this run is queued or running. */
  async wake(run: string): Promise<void> {
    const start = this.#dbos.startWorkflow(this.#work, {
      workflowID: `effectmatch:${run}:${randomUUID()}`,
      queueName: QUEUE,
      enqueueOptions: { deduplicationID: run },
      duplicationPolicy: 'return-existing',
    });
    await start(run);
  }

  async takeOver(): Promise<readonly string[]> {
    const filter = { status: 'PENDING', workflowName: NAME, loadInput: false } as const;
    const pending = await this.#dbos.listWorkflows(filter);
    if (pending.length === 0) return [];
    const living = await this.#heartbeats.living();
    const orphans = pending.filter(({ executorId = '' }) => !living.has(executorId));
    for (const { workflowID } of orphans)
      await this.#dbos.resumeWorkflow(workflowID, { queueName: QUEUE });
    return orphans.map(({ workflowID }) => workflowID.split(':')[1] ?? workflowID);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#loops;
    try {
      await shutDown(this.#dbos);
    } finally {
      await this.#heartbeats.close();
      isOpen = false;
    }
  }

  async #repeat(everyMs: number, work: () => Promise<void>): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await work().catch((error: unknown) => this.#host.onFault('', error));
      await sleep(everyMs, undefined, { signal }).catch(() => {});
    }
  }

  async #beat(): Promise<void> {
    await this.#heartbeats.beat();
    await this.takeOver();
  }

  /**
   * Starts runs that can make progress, because another program recorded something or an earlier
   * try failed.
   */
  async #look(): Promise<void> {
    for (const run of await this.#host.openRuns()) {
      if (this.#closing.signal.aborted) return;
      if (!(await this.#host.isRunnable(run))) this.#stuck.delete(run);
      else if (this.#isDue(run)) await this.wake(run);
    }
  }

  /** Whether to start a run now. A run that makes no progress is started less and less often. */
  #isDue(run: string): boolean {
    const now = performance.now();
    const { at, pauseMs } = this.#stuck.get(run) ?? { at: now, pauseMs: this.#lookMs };
    if (now < at) return false;
    const longer = Math.min(pauseMs * 2, Math.max(LONGEST_LOOK_MS, this.#lookMs));
    this.#stuck.set(run, { at: now + pauseMs, pauseMs: longer });
    return true;
  }
}

async function shutDown(dbos: DbosApi): Promise<void> {
  await dbos.shutdown({ deregister: true, workflowCompletionTimeoutMS: CLOSE_MS });
}

/**
 * The DBOS workflow: drives a run until it is over or waits for a person. It ends early if the run
 * makes no progress, so that others get its slot; a later look starts it again.
 */
async function driveWhilePossible(
  dbos: DbosApi,
  host: EngineHost,
  run: string,
  signal: AbortSignal,
): Promise<RunStatus> {
  const drive = async (): Promise<RunStatus> => {
    try {
      return await host.drive(run, signal);
    } catch (error) {
      host.onFault(run, error);
      return 'running';
    }
  };
  for (let pauseMs = SHORTEST_PAUSE_MS; ; pauseMs *= 2) {
    const status = await dbos.runStep(drive, { name: 'drive', retriesAllowed: false });
    if (status !== 'running' || signal.aborted || pauseMs > LONGEST_PAUSE_MS) return status;
    await dbos.sleep(pauseMs);
  }
}
