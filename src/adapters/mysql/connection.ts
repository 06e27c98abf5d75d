import { hash } from 'node:crypto';
import type { Socket } from 'node:net';
import mysql, {
  type Connection as Driver,
  type PrepareStatementInfo,
  type Query,
  type SslOptions,
} from 'mysql2';
import { EffectMatchError, messageOf } from '../../errors.ts';
import { connectionParts, type MysqlConnectionOptions } from './options.ts';
import { quoteText } from './sql.ts';

/** A row as the server sent it. */
export type RawRow = readonly (Buffer | null)[];

export type RawRows = readonly RawRow[];

/** A row of a trusted query, as text. */
export type TextCells = readonly (string | null)[];

/** A row that an agent statement returned. */
type ReturnedRow = Readonly<Record<string, unknown>>;

/** Takes the rows of an agent statement one by one, because there may be too many to keep. */
export interface RowReceiver {
  /** Called once, before the first row. */
  begin(returnsRows: boolean): void;
  add(row: ReturnedRow): void;
}

/** The result of an agent statement; `rows` is undefined if the statement cannot return rows. */
type Executed =
  | { readonly kind: 'ran'; readonly rows: number | undefined }
  | { readonly kind: 'mismatch'; readonly takes: number };

/**
 * An error from the server or the network. The driver's own errors also carry the statement, which
 * may contain the name of a branch, so they are not passed on.
 */
export class MysqlFailure extends Error {
  /** The server's error number; undefined if the connection was lost. */
  readonly number: number | undefined;

  constructor(cause: unknown) {
    const { message, errno, sqlState } = cause as Partial<Record<string, unknown>>;
    super(typeof message === 'string' ? message : String(cause));
    // Network errors also have an `errno`, the operating system's; only server errors have an
    // SQLSTATE.
    this.number = sqlState === undefined ? undefined : Number(errno);
  }
}

/** The server's error number; undefined if the error does not come from the server. */
export function errorNumber(error: unknown): number | undefined {
  return error instanceof MysqlFailure ? error.number : undefined;
}

const CHARSET = 'utf8mb4_bin';

/** Shorter statements take the server no longer than finding them by name. */
const LONG = 100;

/** Leaves cells as raw bytes, so that they can be decoded by column type without loss. */
const AS_SENT = { rowsAsArray: true, typeCast: false };

/**
 * How many statements the server accepts in one message. Sessions that run agent statements accept
 * one, although those are prepared and the server never prepares more than one.
 */
type PerMessage = 'one statement' | 'several statements';

/** A session of one account. It runs one statement at a time, each within the deadline. */
export class MysqlConnection implements AsyncDisposable {
  readonly #driver: Driver;
  readonly #deadlineMs: number;
  readonly #perMessage: PerMessage;
  /** The names of statements that the server keeps for this session. */
  readonly #prepared = new Map<string, string>();
  /** Ends the wait of each caller that has no answer yet. */
  readonly #waiting = new Set<(why: Error) => void>();
  #isLost = false;
  readonly #lose = () => {
    this.#isLost = true;
  };

  private constructor(driver: Driver, deadlineMs: number, perMessage: PerMessage) {
    this.#driver = driver;
    this.#deadlineMs = deadlineMs;
    this.#perMessage = perMessage;
    driver.on('error', this.#lose);
  }

  static async open(
    options: MysqlConnectionOptions,
    deadlineMs: number,
    perMessage: PerMessage = 'one statement',
  ): Promise<MysqlConnection> {
    const parts = connectionParts(options, 'the connection') as { readonly ssl?: SslOptions };
    const driver = mysql.createConnection({
      ...parts,
      connectTimeout: deadlineMs,
      charset: CHARSET,
      multipleStatements: perMessage === 'several statements',
      // Trusted statements contain their values, so the driver need not look for placeholders.
      queryFormat: (sql: string) => sql,
      // Agent statements return text if a JavaScript number or date would lose information.
      supportBigNumbers: true,
      dateStrings: true,
      flags: ['-LOCAL_FILES', '-CONNECT_ATTRS'],
      infileStreamFactory: refuseFile,
      // The driver closes older statements. Logging in again closes all of them.
      maxPreparedStatements: 50,
    });
    const connection = new MysqlConnection(driver, deadlineMs, perMessage);
    await connection.#within((done) => driver.connect(done));
    return connection;
  }

  /** The server's id of this session. */
  get thread(): number {
    return this.#driver.threadId;
  }

  get isAlive(): boolean {
    return !this.#isLost;
  }

  /** Runs a trusted statement and returns its rows. */
  async query(sql: string): Promise<readonly RawRow[]> {
    const options = { sql, ...AS_SENT } as never;
    const rows = await this.#within((done) => this.#driver.query(options, done));
    return Array.isArray(rows) ? (rows as unknown as readonly RawRow[]) : [];
  }

  /**
   * Runs several trusted statements, in one message if the session accepts that, and returns the
   * rows of those that return rows. None is run after one that fails.
   */
  async queryAll(statements: readonly string[]): Promise<readonly RawRows[]> {
    const isTogether = this.#perMessage === 'several statements' && statements.length > 1;
    const messages = isTogether ? [statements.join(';\n')] : statements;
    const results: unknown[] = [];
    for (const sql of messages) results.push(...(await this.#send(sql, isTogether)));
    return results.filter((result): result is RawRows => Array.isArray(result));
  }

  /** Sends a message and returns its results: several if it has several statements or is a call. */
  async #send(sql: string, isTogether: boolean): Promise<readonly unknown[]> {
    const options = { sql, ...AS_SENT } as never;
    return await this.#within<readonly unknown[]>((done) =>
      this.#driver.query(options, (error, result, fields) => {
        const hasSeveral = isTogether || Array.isArray(fields?.[0]);
        done(error, hasSeveral ? (result as unknown as readonly unknown[]) : [result]);
      }),
    );
  }

  /** Like {@link queryAll}, for statements that come again: the server parses long ones once. */
  async queryAgain(statements: readonly string[]): Promise<readonly RawRows[]> {
    const fresh = new Map<string, string>();
    const texts = statements.flatMap((sql) => {
      const known = this.#prepared.get(sql);
      if (known !== undefined) return [`execute ${known}`];
      if (sql.length < LONG) return [sql];
      const name = `effectmatch_${hash('sha256', sql, 'hex').slice(0, 32)}`;
      fresh.set(sql, name);
      return [`prepare ${name} from ${quoteText(sql)}`, `execute ${name}`];
    });
    const results = await this.queryAll(texts);
    for (const [sql, name] of fresh) this.#prepared.set(sql, name);
    return results;
  }

  /** Runs a trusted statement and returns every cell as text. */
  async texts(sql: string): Promise<readonly TextCells[]> {
    return textsOf(await this.query(sql));
  }

  /** Asks the server to parse a statement without running it. */
  async parse(sql: string): Promise<void> {
    await this.#prepare(sql);
  }

  /** Prepares and runs one statement. Does not run it if the number of values is wrong. */
  async execute(sql: string, values: readonly unknown[], rows: RowReceiver): Promise<Executed> {
    return await this.#withPrepared(sql, values, rows, Number.POSITIVE_INFINITY);
  }

  /** Like `execute`, but only for reading. Closes the session after more than `most` rows. */
  async select(
    sql: string,
    values: readonly unknown[],
    rows: RowReceiver,
    most: number,
  ): Promise<Executed> {
    return await this.#withPrepared(sql, values, rows, most);
  }

  async #withPrepared(
    sql: string,
    values: readonly unknown[],
    rows: RowReceiver,
    most: number,
  ): Promise<Executed> {
    const statement = await this.#prepare(sql);
    const { parameters } = statement as Prepared;
    if (parameters.length !== values.length) return { kind: 'mismatch', takes: parameters.length };
    const returned = await this.#within<number | undefined>((done) => {
      const settle: typeof done = (...result) => {
        this.#driver.off('error', settle);
        done(...result);
      };
      this.#driver.on('error', settle);
      receiveRows(statement.execute(values).on('error', settle), rows, most, settle);
    });
    if (returned !== undefined && returned > most) this.close();
    return { kind: 'ran', rows: returned };
  }

  /**
   * Logs in again. The server then forgets everything about the session but its id. This object can
   * no longer use the session.
   */
  async logInAgain(): Promise<MysqlConnection> {
    if (this.#isLost) throw connectionLost();
    this.#lose();
    this.#driver.off('error', this.#lose);
    const next = new MysqlConnection(this.#driver, this.#deadlineMs, this.#perMessage);
    try {
      // The driver would otherwise log in with the character set that the session had last.
      await next.#within((done) => next.#driver.changeUser({ charset: CHARSET }, done));
      return next;
    } catch (error) {
      next.close();
      throw error;
    }
  }

  /**
   * Closes the session at once. The server rolls back its open transaction. The driver only closes
   * its own direction: it would go on reading what the server still sends. Once its socket is gone
   * it never calls back, so callers that still wait are told here.
   */
  close(): void {
    this.#isLost = true;
    this.#driver.destroy();
    (this.#driver as unknown as { readonly stream: Socket }).stream.destroy();
    for (const end of this.#waiting) end(connectionLost());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  async #prepare(sql: string): Promise<PrepareStatementInfo> {
    return await this.#within((done) => this.#driver.prepare(sql, done));
  }

  async #within<T = unknown>(start: (done: Done<T>) => unknown): Promise<T> {
    if (this.#isLost) throw connectionLost();
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const timer = setTimeout(() => {
      reject(new Error(`no answer within ${this.#deadlineMs} ms`));
      this.close();
    }, this.#deadlineMs);
    this.#waiting.add(reject);
    try {
      start((error, result) => (error ? reject(error) : resolve(result as T)));
      return await promise;
    } catch (error) {
      const failure = new MysqlFailure(error);
      if (failure.number === undefined) this.close();
      throw failure;
    } finally {
      this.#waiting.delete(reject);
      clearTimeout(timer);
    }
  }
}

/** Every cell as text. */
export function textsOf(rows: RawRows): readonly TextCells[] {
  return rows.map((row) => row.map((cell) => cell?.toString('utf8') ?? null));
}

/**
 * Passes on at most `most` rows and returns how many there are, at most one more; undefined if the
 * statement cannot return rows.
 */
function receiveRows(
  answer: Query,
  rows: RowReceiver,
  most: number,
  done: Done<number | undefined>,
): void {
  let count: number | undefined;
  answer.on('fields', (fields: unknown) => {
    if (count !== undefined) return;
    if (fields !== undefined) count = 0;
    rows.begin(count !== undefined);
  });
  answer.on('result', (row) => {
    if (count === undefined) return;
    count += 1;
    if (count > most) done(null, count);
    else rows.add(row as unknown as ReturnedRow);
  });
  answer.on('end', () => done(null, count));
}

type Prepared = PrepareStatementInfo & { readonly parameters: readonly unknown[] };

type Done<T> = (error: Error | null, result?: T) => void;

function connectionLost(): MysqlFailure {
  return new MysqlFailure(new Error('the connection was lost'));
}

function refuseFile(): never {
  throw new Error('the server asked for a file of this machine');
}

/** Wraps a server error in an error with one of our codes. */
export function asFault(
  error: unknown,
  code: 'ERR_EM_ADAPTER_UNAVAILABLE' | 'ERR_EM_ADAPTER_REFUSED',
  what: string,
): EffectMatchError {
  if (error instanceof EffectMatchError) return error;
  const words = messageOf(error);
  return new EffectMatchError(code, `mysql: ${what}: ${words}`, { cause: error });
}
