import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { bundleProgram } from '../bundle.ts';
import type { CommandName, Commands, Reply } from './commands.ts';

/** How a child process ended. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/**
 * What became of a command: an answer, a fault that the child reported, or the end of the child
 * itself.
 */
export type Answer<T> =
  | { readonly kind: 'done'; readonly value: T }
  | { readonly kind: 'failed'; readonly code: string; readonly message: string }
  | { readonly kind: 'died'; readonly exit: Exit };

/**
 * Longer than any wait for a lock in the product: only a process that is lost takes as long. Where
 * more processes than usual race, each waits for the decisions of all others.
 */
const HANGS_MS = 90_000 + 15_000 * Number(process.env.EFFECTMATCH_CONTENDERS ?? 0);
const WORKER = await bundleProgram(new URL('./worker.ts', import.meta.url));

/** A real process that has loaded the product and waits for commands. */
export class Child {
  readonly #process: ChildProcess;
  readonly #waiting = new Map<number, (answer: Answer<unknown>) => void>();
  readonly exit: Promise<Exit>;
  readonly ready: Promise<unknown>;
  #onProgress = () => {};
  #loaded = false;
  #ended: Exit | undefined;
  #asked = 0;

  constructor(cache: string) {
    const { NODE_TEST_CONTEXT: _, NODE_OPTIONS: __, ...env } = process.env;
    this.#process = fork(WORKER, {
      execArgv: ['--disable-warning=ExperimentalWarning'],
      env: { ...env, NODE_COMPILE_CACHE: cache },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    this.exit = new Promise((resolve) => {
      this.#process.once('exit', (code, signal) => {
        this.#ended = { code, signal };
        for (const settle of this.#waiting.values()) settle({ kind: 'died', exit: this.#ended });
        this.#waiting.clear();
        resolve(this.#ended);
      });
    });
    this.ready = new Promise((resolve) => this.#waiting.set(0, resolve)).then(() => {
      this.#loaded = true;
    });
    this.#process.on('message', (reply: Reply) => {
      if (reply.kind === 'progress') return this.#onProgress();
      const settle = this.#waiting.get(reply.id);
      this.#waiting.delete(reply.id);
      if (reply.kind === 'done') settle?.({ kind: 'done', value: reply.value });
      else settle?.({ kind: 'failed', code: reply.code, message: reply.message });
    });
    // The channel may close under a message that is being sent to a child that was just killed.
    this.#process.on('error', () => {});
  }

  get pid(): number {
    const { pid } = this.#process;
    if (pid === undefined) throw new Error('the worker did not start');
    return pid;
  }

  get alive(): boolean {
    return this.#ended === undefined;
  }

  get loaded(): boolean {
    return this.#loaded;
  }

  /**
   * Sends a command; the answer is `died` when the process ends before it answers, `failed` when it
   * hangs.
   */
  call<Name extends CommandName>(
    name: Name,
    asks: Commands[Name]['asks'],
    onProgress: () => void = () => {},
  ): Promise<Answer<Commands[Name]['answers']>> {
    if (this.#ended !== undefined) return Promise.resolve({ kind: 'died', exit: this.#ended });
    this.#asked += 1;
    const id = this.#asked;
    return new Promise((resolve) => {
      const hangs = () => {
        this.#waiting.delete(id);
        resolve({
          kind: 'failed',
          code: 'hangs',
          message: `no answer to ${name} in ${HANGS_MS} ms`,
        });
      };
      const timer = setTimeout(hangs, HANGS_MS);
      this.#onProgress = onProgress;
      this.#waiting.set(id, (answer) => {
        clearTimeout(timer);
        resolve(answer as Answer<Commands[Name]['answers']>);
      });
      this.#process.send({ ...asks, id, name });
    });
  }

  /** The answer of a command that must succeed. */
  async ask<Name extends CommandName>(
    name: Name,
    asks: Commands[Name]['asks'],
  ): Promise<Commands[Name]['answers']> {
    const answer = await this.call(name, asks);
    if (answer.kind === 'done') return answer.value;
    const why =
      answer.kind === 'died' ? JSON.stringify(answer.exit) : `${answer.code} ${answer.message}`;
    throw new Error(`worker ${this.pid} could not ${name}: ${why}`);
  }

  signal(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void {
    this.#process.kill(signal);
  }

  /**
   * True once the operating system reports the process as stopped; false when it answered or ended
   * instead.
   */
  async stopped(answer: Promise<unknown>): Promise<boolean> {
    let answered = false;
    const stop = () => {
      answered = true;
    };
    answer.then(stop, stop);
    while (!answered) {
      if (stateOf(this.pid) === 'T') return true;
      await sleep(1);
    }
    return false;
  }
}

/**
 * The scheduler's one-letter state of a process, after the parenthesised name that may itself hold
 * spaces.
 */
function stateOf(pid: number): string | undefined {
  try {
    return /\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.[1];
  } catch {
    return undefined;
  }
}

/**
 * Keeps processes started and loaded ahead of need, because a killed one cannot be used again and a
 * full start costs more than the operation it dies in. A child is lent to one case at a time and
 * comes back only with its runtime closed, so it knows nothing of any earlier case.
 */
export class Pool {
  readonly #size: number;
  readonly #cache = mkdtempSync(join(tmpdir(), 'effectmatch-crash-cache-'));
  readonly #all = new Set<Child>();
  readonly #idle: Child[] = [];
  #closed = false;

  /** `size` counts lent children too: one more is started at once when one has died. */
  constructor(size: number) {
    this.#size = size;
    this.#refill();
  }

  /**
   * A child that is loaded and has nothing open. One that is meant to die is the newest, the others
   * the most used: warmed-up code is quicker, and killing it would waste that.
   */
  async take(options: { readonly toDie: boolean } = { toDie: false }): Promise<Child> {
    if (this.#closed) throw new Error('the pool is closed');
    const isLoaded = (candidate: Child) => candidate.loaded;
    const at = options.toDie ? this.#idle.findIndex(isLoaded) : this.#idle.findLastIndex(isLoaded);
    const child = this.#idle.splice(Math.max(at, 0), 1)[0] ?? this.#start();
    await child.ready;
    return child.alive ? child : this.take(options);
  }

  /** Takes a child back. A child that cannot close its runtime is ended, never lent again. */
  async give(child: Child): Promise<void> {
    const closed = await child.call('close', {});
    if (closed.kind === 'done' && this.#all.size <= this.#size && !this.#closed)
      this.#idle.push(child);
    else if (child.alive) child.signal('SIGKILL');
  }

  /** Ends every process that this pool has started, stopped ones included. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const child of this.#all) child.signal('SIGKILL');
    await Promise.all([...this.#all].map((child) => child.exit));
    rmSync(this.#cache, { recursive: true, force: true });
  }

  #refill(): void {
    while (!this.#closed && this.#all.size < this.#size) this.#idle.unshift(this.#start());
  }

  #start(): Child {
    const child = new Child(this.#cache);
    this.#all.add(child);
    child.exit.then(() => {
      this.#all.delete(child);
      this.#refill();
    });
    return child;
  }
}
