import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Value } from '../../protocol/value.ts';
import type { CheckedCall } from './action.ts';
import { checkText, type Document } from './document.ts';
import { refused } from './options.ts';

/** How one call ended. A failed call left nothing; `failed` is the tool's own message. */
export interface CallReport {
  readonly tool: string;
  readonly failed?: string;
  /** What the tool returned, if that was wanted and the call did not fail. */
  readonly returned?: Value;
}

/** What the calls made of the state, or the call that ended the action. */
export type Run =
  | { readonly kind: 'done'; readonly made: Document; readonly calls: readonly CallReport[] }
  | { readonly kind: 'failed'; readonly reason: string; readonly detail: string };

/** The module that a worker loads its tools from, and what it is given to make them. */
export interface ToolModule {
  readonly module: string;
  readonly data: unknown;
}

/** What a worker is sent for one action. */
export interface ActionMessage {
  readonly text: string;
  readonly calls: readonly CheckedCall[];
  /** Whether to report what the tools return. */
  readonly wantsReturned: boolean;
}

/** What a worker says: first that it is ready, then for each action its calls and their end. */
type FromWorker =
  | { readonly kind: 'ready'; readonly tools: readonly string[] }
  | { readonly kind: 'refused'; readonly why: string }
  | { readonly kind: 'call'; readonly failed?: string; readonly returned?: string }
  | { readonly kind: 'ended'; readonly text: string; readonly isIdle: boolean };

/** What ends the wait for a worker, its own end included. */
type Answer =
  | Exclude<FromWorker, { readonly kind: 'call' }>
  | { readonly kind: 'late' | 'died'; readonly why: string };

/** What a tool may use up and what of it may be kept. */
export interface ToolLimits {
  /** How long one call may take. */
  readonly timeoutMs: number;
  /** Whether a tool's message may be kept: it may quote values. */
  readonly quotesValues: boolean;
}

/** Tools can post anything in the name of their worker, or change it so that it writes nonsense. */
const STRAY = {
  kind: 'died',
  why: 'its worker did not send the canonical text of a state',
} as const;
const LOAD_TIMEOUT_MS = 30_000;
const NOT_KEPT = 'its message is not kept, because it may quote values';
const SCRIPT = new URL(`./tool-worker${extname(import.meta.filename)}`, import.meta.url);

/**
 * Runs the tools of one adapter in worker threads, so that nothing they do can reach the built-in
 * objects of this process and a deadline can stop them. Each running action has a worker to itself.
 * A worker is used again only if its action left nothing behind that could still run.
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

  /** Loads the module once, which tells the names of its tools. */
  async open(): Promise<void> {
    this.#keep(await this.#start());
  }

  get names(): readonly string[] {
    return this.#names;
  }

  /** Runs the calls in order on copies of the base. What they leave arrives here as text. */
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

  /** Stops every worker, with the calls that are running there. */
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

  /** One is enough: actions on one state that overlap cannot all be promoted. */
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
    // An error ends the worker, and 'exit' follows. Without a listener it would end the process.
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
 * Waits until a worker has done what it was asked to. The time starts again with every call that is
 * reported; a report that `onCall` does not expect ends the waiting, because a tool could send it.
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
  const onError = (error: unknown): void =>
    resolve({ kind: 'died', why: error instanceof Error ? error.message : String(error) });
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

/** A tool can post anything in the name of its worker. */
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

/** What the calls left, as text that is checked here: a tool may have changed its own worker. */
function madeOf(base: Document, text: string): Document | undefined {
  return text === base.text ? base : checkText(text);
}

/** Names the last call, which ended the action. */
function failed(reason: string, reports: readonly CallReport[]): Run {
  const last = reports.at(-1);
  const detail = `call ${reports.length} (${last?.tool}): ${last?.failed}`;
  return { kind: 'failed', reason, detail };
}
