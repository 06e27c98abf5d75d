import { setTimeout as sleep } from 'node:timers/promises';
import { checkCount, type EngineHost, type WorkflowEngine } from './engine.ts';
import type { RunStatus } from './run.ts';

/** How the in-process engine behaves. */
export interface InProcessOptions {
  /** How often to look again at a run that waits, in milliseconds; 1000 by default. */
  readonly pollMs?: number;
  /** How many runs are driven at the same time; 16 by default. */
  readonly runs?: number;
  /** Whether to resume runs that an earlier process left; true by default. */
  readonly resume?: boolean;
}

const POLL_MS = 1000;
const RUNS = 16;

/**
 * Drives runs in this process and needs no server. The ledger knows which runs are open, so a
 * process that starts later resumes what an earlier one left.
 */
export function inProcess(options: InProcessOptions = {}): WorkflowEngine {
  const { pollMs = POLL_MS, runs = RUNS, resume = true } = options;
  checkCount('inProcess', 'pollMs', pollMs);
  checkCount('inProcess', 'runs', runs);
  return {
    async open(host) {
      const loop = new DriveLoop(host, pollMs, runs);
      if (resume) for (const run of await host.openRuns()) loop.start(run);
      return {
        wake: async (run) => loop.wake(run),
        takeOver: async () => {
          const open = await host.openRuns();
          return open.filter((run) => loop.start(run));
        },
        close: () => loop.close(),
      };
    },
  };
}

/** One loop per run, with a limit on how many drive at once. */
class DriveLoop {
  readonly #host: EngineHost;
  readonly #pollMs: number;
  readonly #closing = new AbortController();
  readonly #driven = new Map<string, { wake: () => void; readonly ended: Promise<void> }>();
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(host: EngineHost, pollMs: number, runs: number) {
    this.#host = host;
    this.#pollMs = pollMs;
    this.#free = runs;
  }

  /** Starts the loop of a run; false if it is already driven or the engine is closing. */
  start(run: string): boolean {
    if (this.#driven.has(run) || this.#closing.signal.aborted) return false;
    const entry = { wake: () => {}, ended: Promise.resolve() };
    this.#driven.set(run, entry);
    entry.ended = this.#loop(run, entry).finally(() => this.#driven.delete(run));
    return true;
  }

  wake(run: string): void {
    if (!this.start(run)) this.#driven.get(run)?.wake();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    for (const go of this.#waiting.splice(0)) go();
    for (const { wake } of this.#driven.values()) wake();
    await Promise.all([...this.#driven.values()].map(({ ended }) => ended));
  }

  async #loop(run: string, entry: { wake: () => void }): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      const woken = Promise.withResolvers<void>();
      let isWoken = false;
      entry.wake = () => {
        isWoken = true;
        woken.resolve();
      };
      const status = await this.#drive(run);
      // The run may have been revised after it ended and before this loop noticed.
      if (status !== 'waiting' && status !== 'running' && !isWoken) return;
      const pause = new AbortController();
      const poll = sleep(this.#pollMs, undefined, { signal: pause.signal }).catch(() => {});
      await Promise.race([woken.promise, poll]);
      pause.abort();
    }
  }

  async #drive(run: string): Promise<RunStatus> {
    if (this.#free === 0) await new Promise<void>((go) => this.#waiting.push(go));
    else this.#free -= 1;
    try {
      return await this.#host.drive(run, this.#closing.signal);
    } catch (error) {
      this.#host.onFault(run, error);
      return 'running';
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}
