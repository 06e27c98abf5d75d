/**
 * Runs of workflows on any number of machines, with DBOS on PostgreSQL.
 *
 * @module
 */
import '../node-version.ts';

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { EffectMatchError } from '../errors.ts';
import type { EngineHost, OpenEngine, WorkflowEngine } from './engine.ts';
import { Heartbeats } from './heartbeat.ts';
import type { RunStatus } from './run.ts';

/** The part of DBOS 5 that is used here: pass the class `DBOS` of `@dbos-inc/dbos-sdk`. */
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
    params: { workflowID: string; queueName: string },
  ): (run: string) => Promise<unknown>;
  runStep<T>(work: () => Promise<T>, config: { name: string; retriesAllowed: boolean }): Promise<T>;
  send(destination: string, message: string, topic: string): Promise<void>;
  recv(topic: string, timeoutSeconds: number): Promise<unknown>;
  listWorkflows(input: {
    status: 'PENDING';
    workflowName: string;
    loadInput: boolean;
  }): Promise<readonly { readonly workflowID: string; readonly executorId?: string }[]>;
  resumeWorkflow(id: string, options: { queueName: string }): Promise<unknown>;
}

/** How an engine on DBOS behaves. */
export interface DbosOptions {
  /** The class `DBOS` of `@dbos-inc/dbos-sdk`. A process has one, so it has one engine. */
  readonly DBOS: DbosApi;
  /** The database that DBOS keeps its tables in, and where workers leave their heartbeats. */
  readonly url: string;
  /** The name of this worker; drawn at random unless said otherwise, so never the same twice. */
  readonly worker?: string;
  /** How many runs this worker drives at the same time; 16 unless said otherwise. */
  readonly runs?: number;
  /** How often a worker shows that it lives; 1000 unless said otherwise. */
  readonly heartbeatMs?: number;
  /**
   * How often workers look for runs and approvals that another program, such as the command line,
   * has recorded; 5000 unless said otherwise.
   */
  readonly lookMs?: number;
  /** After how long a silent worker's runs are taken over; 5000 unless said otherwise. */
  readonly silentMs?: number;
}

const NAME = 'effectmatch-run';
const QUEUE = 'effectmatch';
const TOPIC = 'wake';
/** Workers of every release take each other's runs: what a run needs is checked by its plan. */
const VERSION = 'effectmatch-1';
const HEARTBEAT_MS = 1000;
const SILENT_MS = 5000;
const LOOK_MS = 5000;
const RUNS = 16;
const QUEUE_POLL_MS = 200;
const LONGEST_PAUSE_S = 600;
/** Runs are resumed as often as their workers die: what they did is in the ledger. */
const ATTEMPTS = 1_000_000;

/**
 * Drives runs on any number of machines, with DBOS on PostgreSQL as the scheduler: it remembers
 * which runs are open, wakes them, and limits how many run at once. Its retries are off: what was
 * interrupted is driven again from what the ledger says. In DBOS 5 the runs of a dead worker stay
 * with it while others live, so workers leave heartbeats and take over from silent ones. A wrong
 * guess is harmless: two workers that drive one run get the same verdicts.
 */
export function dbosEngine(options: DbosOptions): WorkflowEngine {
  return { open: (host) => DbosWorker.open(options, host) };
}

/** The id of a run in DBOS. A revision is a new one, because what ended stays ended. */
function idOf(run: string, revision: number): string {
  return `effectmatch:${run}:${revision}`;
}

let isOpen = false;

class DbosWorker implements OpenEngine {
  readonly #dbos: DbosApi;
  readonly #heartbeats: Heartbeats;
  readonly #work: (run: string) => Promise<string>;
  readonly #closing: AbortController;
  readonly #beating: Promise<void>;
  readonly #host: EngineHost;

  private constructor(parts: {
    readonly dbos: DbosApi;
    readonly heartbeats: Heartbeats;
    readonly work: (run: string) => Promise<string>;
    readonly closing: AbortController;
    readonly host: EngineHost;
    readonly everyMs: number;
    readonly lookMs: number;
  }) {
    this.#dbos = parts.dbos;
    this.#heartbeats = parts.heartbeats;
    this.#work = parts.work;
    this.#closing = parts.closing;
    this.#host = parts.host;
    this.#beating = this.#beat(parts.everyMs, parts.lookMs);
  }

  static async open(options: DbosOptions, host: EngineHost): Promise<DbosWorker> {
    const { DBOS: dbos, url, runs = RUNS, worker = randomUUID() } = options;
    const { heartbeatMs = HEARTBEAT_MS, silentMs = SILENT_MS, lookMs = LOOK_MS } = options;
    if (!(silentMs > 2 * heartbeatMs))
      throw new EffectMatchError(
        'ERR_EM_CONFIG_INVALID',
        'dbosEngine: silentMs must be more than twice heartbeatMs, or living workers seem dead',
      );
    if (isOpen)
      throw new EffectMatchError(
        'ERR_EM_CONFIG_INVALID',
        'dbosEngine: DBOS is one per process, and an engine is open already; close it first',
      );
    isOpen = true;
    const closing = new AbortController();
    const heartbeats = await Heartbeats.open(url, worker, silentMs);
    await heartbeats.beat();
    dbos.setConfig({
      name: 'effectmatch',
      systemDatabaseUrl: url,
      executorID: worker,
      applicationVersion: VERSION,
      logLevel: 'error',
    });
    const drive = (run: string) => driveUntilOver(dbos, host, run, closing.signal);
    const work = dbos.registerWorkflow(drive, { name: NAME, maxRecoveryAttempts: ATTEMPTS });
    await dbos.launch();
    const limits = { workerConcurrency: runs, minPollingIntervalMs: QUEUE_POLL_MS };
    await dbos.registerQueue(QUEUE, limits);
    const pace = { everyMs: heartbeatMs, lookMs };
    return new DbosWorker({ dbos, heartbeats, work, closing, host, ...pace });
  }

  async start(run: string, revision: number): Promise<void> {
    const params = { workflowID: idOf(run, revision), queueName: QUEUE };
    await this.#dbos.startWorkflow(this.#work, params)(run);
  }

  async wake(run: string, revision: number): Promise<void> {
    await this.start(run, revision);
    await this.#dbos.send(idOf(run, revision), 'look', TOPIC);
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
    await this.#beating;
    await this.#dbos.shutdown({ deregister: true, workflowCompletionTimeoutMS: 5000 });
    await this.#heartbeats.close();
    isOpen = false;
  }

  async #beat(everyMs: number, lookMs: number): Promise<void> {
    const { signal } = this.#closing;
    let lookAt = 0;
    while (!signal.aborted) {
      try {
        await this.#heartbeats.beat();
        await this.takeOver();
        if (performance.now() >= lookAt) await this.#adopt();
        if (performance.now() >= lookAt) lookAt = performance.now() + lookMs;
      } catch (error) {
        this.#host.onFault('', error);
      }
      await sleep(everyMs, undefined, { signal }).catch(() => {});
    }
  }

  /** Starts and wakes what another program has recorded in the ledger. */
  async #adopt(): Promise<void> {
    for (const { run, revision } of await this.#host.openRuns()) {
      if (this.#closing.signal.aborted) return;
      await this.start(run, revision);
      if (await this.#host.isRunnable(run)) await this.wake(run, revision);
    }
  }
}

/**
 * What DBOS runs: drives a run, and waits for what it waits for. Between two looks it sleeps in the
 * database, for seconds at first and for minutes later, unless it is woken.
 */
async function driveUntilOver(
  dbos: DbosApi,
  host: EngineHost,
  run: string,
  signal: AbortSignal,
): Promise<string> {
  const look = async (): Promise<RunStatus> => {
    try {
      return await host.drive(run, signal);
    } catch (error) {
      host.onFault(run, error);
      return 'running';
    }
  };
  for (let pauseS = 1; ; pauseS = Math.min(pauseS * 2, LONGEST_PAUSE_S)) {
    const status = await dbos.runStep(look, { name: 'drive', retriesAllowed: false });
    if (status !== 'running' && status !== 'waiting') return status;
    const woken = await dbos.recv(TOPIC, pauseS);
    if (woken !== null || status === 'running') pauseS = 0.5;
  }
}
