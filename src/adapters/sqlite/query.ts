import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { queryRefused, singleStatement } from '../../backend/query.ts';
import type { QueryLimits, QueryRows } from '../../contract/adapter.ts';
import type { CheckedSqliteAction } from './action.ts';
import type { QueryAnswer, QueryOrder } from './query-child.ts';

const SCRIPT = fileURLToPath(
  new URL(`./query-child${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url),
);

/**
 * Runs queries one at a time in a separate process with a read-only connection. SQLite cannot be
 * interrupted from JavaScript, so a query that takes too long is ended by killing its process.
 */
export class QueryProcess {
  readonly #file: string;
  #child: ChildProcess | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(file: string) {
    this.#file = file;
  }

  async query(action: CheckedSqliteAction, limits: QueryLimits): Promise<QueryRows> {
    const statement = singleStatement(action.statements);
    const until = performance.now() + limits.timeoutMs;
    const asked = this.#last.then(() => {
      // Otherwise slow queries, even of disconnected clients, would delay all others.
      if (performance.now() > until) return LATE;
      return this.#ask({ statement, rows: limits.rows }, limits);
    });
    this.#last = asked.catch(() => {});
    const answer = await asked;
    if (answer.kind === 'refused') throw queryRefused(answer.why);
    return answer.found;
  }

  close(): void {
    this.#isClosed = true;
    this.#end();
  }

  async #ask(order: QueryOrder, { timeoutMs }: QueryLimits): Promise<QueryAnswer> {
    if (this.#isClosed) throw queryRefused('the adapter is closed');
    const child = this.#start();
    const done = new AbortController();
    const { signal } = done;
    const timer = setTimeout(() => this.#end(), timeoutMs);
    try {
      child.send(order);
      const ended = once(child, 'exit', { signal }).then(() => ENDED);
      const [first] = await Promise.race([once(child, 'message', { signal }), ended]);
      return first as QueryAnswer;
    } catch {
      return DIED;
    } finally {
      clearTimeout(timer);
      done.abort();
    }
  }

  /** The process gets an empty environment, so it has none of the host's secrets. */
  #start(): ChildProcess {
    if (this.#child?.connected) return this.#child;
    const child = fork(SCRIPT, [this.#file], {
      execArgv: ['--no-warnings'],
      env: {},
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    child.unref();
    child.channel?.unref();
    this.#child = child;
    return child;
  }

  #end(): void {
    this.#child?.kill('SIGKILL');
    this.#child = undefined;
  }
}

const LATE = {
  kind: 'refused',
  why: 'it waited too long for other queries; call again',
} as const;
const DIED = {
  kind: 'refused',
  why: 'it took too long or too much memory, and was ended',
} as const;
const ENDED: readonly [QueryAnswer] = [DIED];
