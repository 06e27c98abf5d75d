import pg from 'pg';
import { EffectMatchError, type ErrorCode } from '../errors.ts';
import type { MessageAnswer, Reply, ResultColumn, TextRow } from './answer.ts';
import { Exchange } from './exchange.ts';
import {
  type ParameterValue,
  type WireStatement,
  writePreparation,
  writeScript,
  writeStatements,
} from './frames.ts';
import type { ConnectionOptions } from './options.ts';

export type {
  ConnectionOptions,
  MessageAnswer,
  ParameterValue,
  Reply,
  ResultColumn,
  TextRow,
  WireStatement,
};

/**
 * The SQLSTATE of an error that the server reported. Undefined for any other error, such as a lost
 * connection.
 */
export function sqlState(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

/**
 * Describes a server error for a refusal: message, state, and hint if there is one. Never includes
 * the statement.
 */
export function describeError(error: unknown): string {
  // If a host has several addresses, the combined error has an empty message.
  if (error instanceof AggregateError && error.message === '')
    return error.errors.map(describeError).join('; ');
  if (!(error instanceof pg.DatabaseError)) return String(error);
  const hint = error.hint === undefined ? '' : ` (${error.hint})`;
  return `${error.message} [${error.code ?? 'no SQLSTATE'}]${hint}`;
}

/** The innermost function in the server's account of where an error happened. */
export function failedFunction(error: unknown): string | undefined {
  const where = error instanceof pg.DatabaseError ? error.where : undefined;
  const found = /^(?:PL\/pgSQL function (.+) line \d+ at |SQL function (".+") )/m.exec(where ?? '');
  return found?.[1] ?? found?.[2];
}

/** Wraps an error of the server or the connection in an `EffectMatchError` with this code. */
export function asFault<C extends ErrorCode>(error: unknown, code: C, what: string): unknown {
  if (error instanceof EffectMatchError) return error;
  return new EffectMatchError(code, `${what}: ${describeError(error)}`, { cause: error });
}

const CONNECT_TIMEOUT_MS = 10_000;
const CLOSE_TIMEOUT_MS = 5000;

/** How long a trusted login waits for an answer; its queries take milliseconds. */
export const TRUSTED_DEADLINE_MS = 30_000;

/** The login and database of a connection, and its password if one is configured. */
export function connectionTarget(options: ConnectionOptions): {
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly database: string | undefined;
} {
  const client = new pg.Client(connectionConfig(options, 'effectmatch'));
  const { password } = client as unknown as { password: unknown };
  return {
    user: client.user,
    password: typeof password === 'string' ? password : undefined,
    database: client.database,
  };
}

/** The driver's configuration for these options. */
function connectionConfig(options: ConnectionOptions, application: string): pg.ClientConfig {
  const given = typeof options === 'string' ? { connectionString: options } : { ...options };
  return {
    ...given,
    application_name: application,
    client_encoding: 'UTF8',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    pipeline: true,
  };
}

/** The parts of the driver's socket that we use. */
interface Stream {
  cork(): void;
  uncork(): void;
  destroy(error?: Error): void;
  prependListener(event: 'data', listener: (chunk: Uint8Array) => void): void;
}

const MAX_ANSWER_BYTES = 256 * 2 ** 20;

/** A message may take longer by the time that a slow line needs: an approval may have 200 MB. */
const BYTES_PER_MS = 2000;

/**
 * One session. Messages are sent at once and answered in order. An error skips the rest of its own
 * message, but not messages that were sent after it. A caller that sends several messages must
 * ignore the later answers if an earlier message failed.
 */
export class Connection implements AsyncDisposable {
  readonly #client: pg.Client;
  readonly #deadlineMs: number | undefined;
  /** The messages that are not answered yet, oldest first, and when each must be answered. */
  readonly #unanswered = new Map<Exchange, number>();
  #watching: NodeJS.Timeout | undefined;
  #broken: unknown;
  #received = 0;

  private constructor(client: pg.Client, deadlineMs: number | undefined) {
    this.#client = client;
    this.#deadlineMs = deadlineMs;
    client.on('error', (error) => {
      this.#broken ??= error;
    });
    client.on('end', () => {
      this.#broken ??= new Error('the connection has ended');
    });
  }

  /**
   * Connects as one login. If a query has no answer within `deadlineMs`, and a little longer if it
   * is long, it fails and the connection is cut, so that a hung server or an unreachable host
   * cannot block the caller forever. Without `deadlineMs` there is no limit.
   */
  static async open(
    options: ConnectionOptions,
    application: string,
    deadlineMs?: number,
  ): Promise<Connection> {
    const client = new pg.Client(connectionConfig(options, application));
    const connection = new Connection(client, deadlineMs);
    try {
      await connection.#client.connect();
      connection.#boundAnswers();
      return connection;
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  /**
   * Cuts the session if the answer to the last message grows too large. The driver keeps the whole
   * answer in memory as strings, and running out of memory crashes the process. An agent's
   * statement must not be able to do that.
   */
  #boundAnswers(): void {
    const stream = this.#stream();
    stream.prependListener('data', (chunk) => {
      this.#received += chunk.length;
      if (this.#received <= MAX_ANSWER_BYTES) return;
      const limit = `${MAX_ANSWER_BYTES / 2 ** 20} MiB`;
      stream.destroy(
        new Error(`the database answered with more than ${limit}; select or write less at once`),
      );
    });
  }

  #stream(): Stream {
    return (this.#client as unknown as { connection: { stream: Stream } }).connection.stream;
  }

  /** The server process id that was reported at login. A pooler may report a different one. */
  get processId(): number | undefined {
    return (this.#client as unknown as { readonly processID?: number }).processID;
  }

  /** Whether the session is usable, as far as the client knows. */
  get isAlive(): boolean {
    return this.#broken === undefined;
  }

  /**
   * Runs one statement over the extended protocol. The server rejects text with a second statement.
   */
  async query(text: string, values: readonly ParameterValue[] = []): Promise<Reply> {
    const { replies, failure } = await this.run([{ text, values }]);
    if (failure !== undefined) throw failure.error;
    return replies[0] ?? { command: '', rows: [] };
  }

  /**
   * Runs several statements over the extended protocol as one message, up to the first error. Never
   * throws.
   */
  run(statements: readonly WireStatement[]): Promise<MessageAnswer> {
    return this.#exchange(writeStatements(statements));
  }

  /** Calls `heard` with the payload of every notification that the session receives. */
  onNotification(heard: (payload: string) => void): void {
    this.#client.on('notification', ({ payload = '' }) => heard(payload));
  }

  /** Prepares our own statements under these names, for use with {@link run}. */
  async prepare(named: Readonly<Record<string, string>>): Promise<void> {
    const { failure } = await this.#exchange(writePreparation(named));
    if (failure !== undefined) throw failure.error;
  }

  /** Runs our own statements over the simple protocol, as one message. Never pass agent SQL. */
  async script(text: string): Promise<readonly Reply[]> {
    const { replies, failure } = await this.#exchange(writeScript(text));
    if (failure !== undefined) throw failure.error;
    return replies;
  }

  #exchange(message: Buffer): Promise<MessageAnswer> {
    this.#received = 0;
    const exchange = new Exchange(message, this.#unanswered);
    if (this.#deadlineMs !== undefined) {
      const inMs = this.#deadlineMs + message.length / BYTES_PER_MS;
      this.#unanswered.set(exchange, performance.now() + inMs);
      if (this.#watching === undefined) this.#watch(inMs);
    }
    this.#client.query(exchange);
    return exchange.answer;
  }

  /**
   * Cuts the connection when the oldest message has waited too long. One timer serves many
   * messages, because a timer for each costs more than writing the message. It need not keep the
   * process running: an open socket does.
   */
  #watch(inMs: number): void {
    const timer = setTimeout(() => {
      this.#watching = undefined;
      const [oldest] = this.#unanswered;
      if (oldest === undefined) return;
      const [exchange, dueAt] = oldest;
      const leftMs = dueAt - performance.now();
      if (leftMs > 0) this.#watch(Math.ceil(leftMs));
      else {
        exchange.callback(new Error('Query read timeout'));
        this.#stream().destroy();
      }
    }, inMs);
    this.#watching = timer.unref();
  }

  /**
   * Sends everything in `send` with one write. A separate write for each message costs more than
   * its content.
   */
  together<T>(send: () => T): T {
    const stream = this.#stream();
    stream.cork();
    try {
      return send();
    } finally {
      stream.uncork();
    }
  }

  /**
   * Ends the session, and the server rolls back an open transaction. If the server does not answer,
   * the connection is cut.
   */
  async close(): Promise<void> {
    this.#broken ??= new Error('the connection was closed');
    clearTimeout(this.#watching);
    const timer = setTimeout(() => this.destroy(), CLOSE_TIMEOUT_MS);
    await this.#client.end().catch(() => {});
    clearTimeout(timer);
  }

  /** Cuts the connection without waiting for anything. */
  destroy(): void {
    this.#broken ??= new Error('the connection was cut');
    // `end` waits for queries in the pipeline; destroying the socket does not.
    this.#stream().destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
