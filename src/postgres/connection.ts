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
 * SQLSTATE of an error that the server reported; undefined for a lost connection and everything
 * else.
 */
export function sqlState(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

/**
 * Server errors as they read in refusals: message, state, and the hint where there is one. Never
 * the statement.
 */
export function describeError(error: unknown): string {
  // Where a host has several addresses, the error about all of them says nothing itself.
  if (error instanceof AggregateError && error.message === '')
    return error.errors.map(describeError).join('; ');
  if (!(error instanceof pg.DatabaseError)) return String(error);
  const hint = error.hint === undefined ? '' : ` (${error.hint})`;
  return `${error.message} [${error.code ?? 'no SQLSTATE'}]${hint}`;
}

/** A fault of the server or the way to it, under the code that says what could not be used. */
export function asFault<C extends ErrorCode>(error: unknown, code: C, what: string): unknown {
  if (error instanceof EffectMatchError) return error;
  return new EffectMatchError(code, `${what}: ${describeError(error)}`, { cause: error });
}

const CONNECT_TIMEOUT_MS = 10_000;
const CLOSE_TIMEOUT_MS = 5000;

/** How long a trusted login waits for an answer; its queries take milliseconds. */
export const TRUSTED_DEADLINE_MS = 30_000;

/** The login and database that a connection is for, and its password where it is written down. */
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

/** The parts of a connection, whichever way they were given. */
function connectionConfig(
  options: ConnectionOptions,
  application: string,
  deadlineMs?: number,
): pg.ClientConfig {
  const given = typeof options === 'string' ? { connectionString: options } : { ...options };
  return {
    ...given,
    application_name: application,
    client_encoding: 'UTF8',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    pipeline: true,
    ...(deadlineMs !== undefined && { query_timeout: deadlineMs }),
  };
}

/** What is used of the driver's socket. */
interface Stream {
  cork(): void;
  uncork(): void;
  destroy(error?: Error): void;
  prependListener(event: 'data', listener: (chunk: Uint8Array) => void): void;
}

const MAX_ANSWER_BYTES = 256 * 2 ** 20;

/**
 * One session. What is asked is sent at once and answered in order. An error skips the rest of the
 * same message and nothing that was sent after it, so a caller that sends several must not use
 * the answer to a later one after an earlier one failed.
 */
export class Connection implements AsyncDisposable {
  readonly #client: pg.Client;
  #broken: unknown;
  #received = 0;

  private constructor(client: pg.Client) {
    this.#client = client;
    client.on('error', (error) => {
      this.#broken ??= error;
    });
    client.on('end', () => {
      this.#broken ??= new Error('the connection has ended');
    });
  }

  /**
   * Connects as one login. A query that has no answer within `deadlineMs` fails and cuts the
   * connection: a server that stands still, or a host that is gone, must not hold the caller for
   * ever. Without it a query may take any time.
   */
  static async open(
    options: ConnectionOptions,
    application: string,
    deadlineMs?: number,
  ): Promise<Connection> {
    const connection = new Connection(
      new pg.Client(connectionConfig(options, application, deadlineMs)),
    );
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
   * Cuts the session when the answer to what was sent last grows too large. The driver keeps an
   * answer in memory and makes texts of it, and where that fails it takes the process along: a
   * statement of an agent must not do that.
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

  /** The server's process, as it was told at login; a pooler may tell another number. */
  get processId(): number | undefined {
    return (this.#client as unknown as { readonly processID?: number }).processID;
  }

  /** Whether the session can still be used, as far as this side knows. */
  get isAlive(): boolean {
    return this.#broken === undefined;
  }

  /**
   * One statement over the extended protocol: text that follows the first statement is an error of
   * the server.
   */
  async query(text: string, values: readonly ParameterValue[] = []): Promise<Reply> {
    const { replies, failure } = await this.run([{ text, values }]);
    if (failure !== undefined) throw failure.error;
    return replies[0] ?? { command: '', rows: [] };
  }

  /**
   * Several statements of the extended protocol as one message: the first error ends it. Never
   * throws.
   */
  async run(statements: readonly WireStatement[]): Promise<MessageAnswer> {
    return await this.#exchange(writeStatements(statements));
  }

  /** Calls back with the payload of every notification on a channel that the session listens to. */
  onNotification(heard: (payload: string) => void): void {
    this.#client.on('notification', ({ payload = '' }) => heard(payload));
  }

  /** Prepares our own statements under names, for {@link run}. */
  async prepare(named: Readonly<Record<string, string>>): Promise<void> {
    const { failure } = await this.#exchange(writePreparation(named));
    if (failure !== undefined) throw failure.error;
  }

  /**
   * Our own statements over the simple protocol, one after another in one message. Never agent
   * text.
   */
  async script(text: string): Promise<readonly Reply[]> {
    const { replies, failure } = await this.#exchange(writeScript(text));
    if (failure !== undefined) throw failure.error;
    return replies;
  }

  async #exchange(message: Buffer): Promise<MessageAnswer> {
    this.#received = 0;
    const exchange = new Exchange(message);
    this.#client.query(exchange);
    return await exchange.answer;
  }

  /**
   * What is sent in `send` leaves in one write: a separate write for every message costs more
   * than its content.
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
   * Ends the session; what it held is rolled back by the server. A server that does not answer is
   * left.
   */
  async close(): Promise<void> {
    this.#broken ??= new Error('the connection was closed');
    const timer = setTimeout(() => this.destroy(), CLOSE_TIMEOUT_MS);
    await this.#client.end().catch(() => {});
    clearTimeout(timer);
  }

  /** Cuts the connection without waiting for anything. */
  destroy(): void {
    this.#broken ??= new Error('the connection was cut');
    // `end` waits for what is still in the pipeline; the socket does not.
    this.#stream().destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
