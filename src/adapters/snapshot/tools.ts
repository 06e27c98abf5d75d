import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { messageOf } from '../../errors.ts';
import type { Value } from '../../protocol/value.ts';
import type { CheckedCall } from './action.ts';
import { checkText, type Document } from './document.ts';
import { refused } from './options.ts';

/** How one call ended. A failed call changed nothing; `failed` is the tool's message. */
export interface CallReport {
  readonly tool: string;
  readonly failed?: string;
  /** The return value, if it was wanted and the call succeeded. */
  readonly returned?: Value;
}

/** The state after the calls, or the failed call that ended the action. */
export type Run =
  | { readonly kind: 'done'; readonly made: Document; readonly calls: readonly CallReport[] }
  | { readonly kind: 'failed'; readonly reason: string; readonly detail: string };

/** The module that exports the tools, and the data for creating them. */
export interface ToolModule {
  readonly module: string;
  readonly data: unknown;
}

/** The message to a worker for one action. */
export interface ActionMessage {
  readonly text: string;
  readonly calls: readonly CheckedCall[];
  /** Whether to report the return values of the tools. */
  readonly wantsReturned: boolean;
}

/** Messages from a worker: first that it is ready, then the calls of each action and its end. */
type FromWorker =
  | { readonly kind: 'ready'; readonly tools: readonly string[] }
  | { readonly kind: 'refused'; readonly why: string }
  | { readonly kind: 'call'; readonly failed?: string; readonly returned?: string }
  | { readonly kind: 'ended'; readonly text: string; readonly isIdle: boolean };

/** What ends the wait for a worker, including the end of the worker. */
type Answer =
  | Exclude<FromWorker, { readonly kind: 'call' }>
  | { readonly kind: 'late' | 'died'; readonly why: string };

/** The limits for tools, and whether their messages are kept. */
interface ToolLimits {
  /** How long one call may take. */
  readonly timeoutMs: number;
  /** Whether to keep a tool's error message, which may quote values. */
  readonly quotesValues: boolean;
}

/** Tools can post any message as their worker, or break it so that it sends invalid data. */
const STRAY = {
  kind: 'died',
  why: 'its worker did not send the canonical text of a state',
} as const;
const LOAD_TIMEOUT_MS = 30_000;
const NOT_KEPT = 'its message is not kept, because it may quote values';
const SCRIPT = new URL(`./tool-worker${extname(import.meta.filename)}`, import.meta.url);

/**
 * Runs the tools of one adapter in worker threads, so that they cannot change the built-in objects
 * of this process and a deadline can stop them. Each running action has its own worker. A worker is
 * reused only if its action left nothing running.
 */
export class ToolRunner {
  readonly #source: ToolModule;
  readonly #limits: ToolLimits;
  readonly #workers = new Set<Worker>();
  #idle: Worker | undefined;
  #names: readonly string[] = [];

  constructor(source: ToolModule, limits: ToolLimits) {
    this.#source = source;
    this.#limits = limits;
  }

  /** Loads the module once, to learn the names of its tools. */
  async open(): Promise<void> {
    this.#keep(await this.#start());
  }

  get names(): readonly string[] {
    return this.#names;
  }

  /** Runs the calls in order on copies of the base. The worker returns the result as text. */
  async run(
    base: Document,
    calls: readonly CheckedCall[],
    { wantsReturned = false } = {},
  ): Promise<Run> {
    if (calls.length === 0) return { kind: 'done', made: base, calls: [] };
    const worker = await this.#take();
    const reports: CallReport[] = [];
    const report = (why: string | undefined, returned: Value = null): void => {
      const tool = calls[reports.length]?.tool ?? '';
      if (why === undefined) reports.push({ tool, ...(wantsReturned && { returned }) });
      else reports.push({ tool, failed: this.#limits.quotesValues ? why : NOT_KEPT });
    };
    worker.postMessage({ text: base.text, calls, wantsReturned } satisfies ActionMessage);
    const answer = await awaitAnswer(worker, this.#limits.timeoutMs, ({ failed, returned }) => {
      report(failed, parseReturned(returned));
      return reports.length <= calls.length;
    });
    const made = answer.kind === 'ended' ? madeOf(base, answer.text) : undefined;
    if (answer.kind === 'ended' && answer.isIdle && made !== undefined) this.#keep(worker);
    else await worker.terminate();
    if (made === undefined) {
      report(whyOf(answer));
      return failed(answer.kind === 'late' ? 'tool-timeout' : 'tool-failed', reports);
    }
    const last = reports.length - 1;
    if (reports[last]?.failed !== undefined && calls[last]?.mayFail !== true)
      return failed('tool-failed', reports);
    return { kind: 'done', made, calls: reports };
  }

  /** Stops every worker, including any call in progress. */
  async close(): Promise<void> {
    this.#idle = undefined;
    await Promise.all([...this.#workers].map((worker) => worker.terminate()));
  }

  async #take(): Promise<Worker> {
    const worker = this.#idle ?? (await this.#start());
    if (worker === this.#idle) this.#idle = undefined;
    worker.ref();
    return worker;
  }

  /** Keeps one idle worker. That is enough, because overlapping actions cannot all be promoted. */
  #keep(worker: Worker): void {
    if (this.#idle !== undefined || !this.#workers.has(worker)) {
      void worker.terminate();
      return;
    }
    worker.unref();
    this.#idle = worker;
  }

  async #start(): Promise<Worker> {
    const worker = createWorker(this.#source);
    this.#workers.add(worker);
    worker.on('exit', () => {
      this.#workers.delete(worker);
      if (this.#idle === worker) this.#idle = undefined;
    });
    // After an error, the worker exits. Without a listener, the error would end this process.
    worker.on('error', () => {});
    const answer = await awaitAnswer(worker, LOAD_TIMEOUT_MS);
    if (answer.kind === 'ready') {
      this.#names = answer.tools;
      return worker;
    }
    await worker.terminate();
    throw refused(`the tools in "${this.#source.module}" cannot be loaded: ${whyOf(answer)}`);
  }
}

/**
 * Waits until a worker has finished. Every reported call restarts the timeout. A report that
 * `onCall` does not expect ends the wait, because a tool may have sent it.
 */
async function awaitAnswer(
  worker: Worker,
  timeoutMs: number,
  onCall: (ended: Extract<FromWorker, { readonly kind: 'call' }>) => boolean = () => false,
): Promise<Answer> {
  const { promise, resolve } = Promise.withResolvers<Answer>();
  const late = { kind: 'late', why: `it did not end within ${timeoutMs} ms` } as const;
  const timer = setTimeout(() => resolve(late), timeoutMs);
  const onMessage = (message: FromWorker | null): void => {
    if (message?.kind !== 'call') resolve(typeof message === 'object' ? (message ?? STRAY) : STRAY);
    else if (onCall(message)) timer.refresh();
    else resolve(STRAY);
  };
  const onError = (error: unknown): void => resolve({ kind: 'died', why: messageOf(error) });
  const onExit = (): void => resolve({ kind: 'died', why: 'its worker ended' });
  worker.on('message', onMessage).on('error', onError).on('exit', onExit);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    worker.off('message', onMessage).off('error', onError).off('exit', onExit);
  }
}

function createWorker(source: ToolModule): Worker {
  try {
    return new Worker(SCRIPT, { workerData: source });
  } catch (cause) {
    throw refused('toolData cannot be sent to a worker', cause);
  }
}

/** A tool can post any message as its worker. */
function parseReturned(text: unknown): Value {
  try {
    return typeof text === 'string' ? (JSON.parse(text) as Value) : null;
  } catch {
    return null;
  }
}

function whyOf(answer: Answer): string {
  return 'why' in answer ? answer.why : STRAY.why;
}

/** Checks the resulting text here, because a tool may have modified its worker. */
function madeOf(base: Document, text: string): Document | undefined {
  return text === base.text ? base : checkText(text);
}

/** Names the last call, which ended the action. */
function failed(reason: string, reports: readonly CallReport[]): Run {
  const last = reports.at(-1);
  const detail = `call ${reports.length} (${last?.tool}): ${last?.failed}`;
  return { kind: 'failed', reason, detail };
}
