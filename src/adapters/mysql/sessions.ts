import { invariant } from '../../errors.ts';
import { RecentMap } from '../../protocol/recent-map.ts';
import { asFault, MysqlConnection, type RawRows } from './connection.ts';
import type { MysqlConnectionOptions, MysqlSettings } from './options.ts';
import { SESSION_BASICS, SQL_MODE } from './provision.ts';
import { SharedAnswer } from './shared-answer.ts';

/** How long to wait for the server to report that it ended an overdue stage. */
const ANSWER_GRACE_MS = 5000;
const TRUSTED_DEADLINE_MS = 30_000;

/** The SQL modes for agent statements: a new server's defaults, so that bad values are errors. */
const AGENT_MODE = 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION';

/** The most questions whose callers can share an answer. */
const MAX_ASKED = 100;

/** Variables that change the meaning of a statement or whether a check is made. */
const WATCHED = [
  ...['sql_mode', 'time_zone', 'foreign_key_checks', 'unique_checks', 'check_constraint_checks'],
  ...['autocommit', 'tx_isolation', 'tx_read_only', 'character_set_client', 'collation_connection'],
  ...['character_set_results', 'sql_select_limit', 'sql_safe_updates', 'sql_log_bin', 'old_mode'],
  ...['innodb_lock_wait_timeout', 'max_statement_time', 'idle_transaction_timeout', 'insert_id'],
  ...['auto_increment_increment', 'auto_increment_offset', 'explicit_defaults_for_timestamp'],
  ...['default_storage_engine', 'div_precision_increment', 'skip_replication', 'big_tables'],
  ...['system_versioning_asof', 'system_versioning_insert_history', 'lc_time_names'],
];

/**
 * Reads the variables as one column, because describing thirty columns costs more than their
 * values. It must be a statement of its own: in a block or a procedure, the server shows other
 * values of some variables, for example of `sql_select_limit`.
 */
export const READ_VARIABLES =
  `select concat_ws(char(31), ${WATCHED.map(readable).join(', ')}, ` +
  'abs(@@session.timestamp - unix_timestamp(sysdate(6))) < 2), unix_timestamp(sysdate(3))';

/** `character_set_results` can be NULL, and a NULL would be left out. */
function readable(name: string): string {
  return `ifnull(@@session.${name}, 'NULL')`;
}

/** The session's variables as one text, and the server's time. */
export function parseVariables(rows: RawRows | undefined) {
  const row = rows?.[0];
  const values = String(row?.[0]).split('\x1f');
  const names = [...WATCHED, 'clock'];
  invariant(values.length === names.length, 'the server shows every variable that is watched');
  const variables = values.map((value, index) => `${names[index]}=${value}`).join(' ');
  return { variables, atMs: readMs(row?.[1]) };
}

export async function readVariables(session: MysqlConnection) {
  return parseVariables(await session.query(READ_VARIABLES));
}

/** Converts a server time from seconds. */
export function readMs(seconds: Buffer | string | null | undefined): number {
  return Math.round(Number(seconds) * 1000);
}

/** The trusted account's session, reopened if it is lost. It runs trusted queries only. */
export class ControlAccount {
  readonly #options: MysqlConnectionOptions;
  #connection: Promise<MysqlConnection> | undefined;
  #turn: Promise<unknown> = Promise.resolve();
  /** The questions of this adapter: a few, because only definitions change them. */
  readonly #asked = new RecentMap<string, SharedAnswer<readonly RawRows[]>>(MAX_ASKED);
  #isClosed = false;

  constructor(options: MysqlConnectionOptions) {
    this.#options = options;
  }

  /** Opens a separate session, for work that must not share one. */
  async open(): Promise<MysqlConnection> {
    try {
      if (this.#isClosed) throw new Error('the adapter is closed');
      const connection = await MysqlConnection.open(
        this.#options,
        TRUSTED_DEADLINE_MS,
        'several statements',
      );
      await connection.query(
        `set session sql_mode = '${SQL_MODE},ERROR_FOR_DIVISION_BY_ZERO', time_zone = '+00:00',
          tx_isolation = 'READ-COMMITTED', innodb_lock_wait_timeout = 1,
          group_concat_max_len = 4294967295, ${SESSION_BASICS}`,
      );
      return connection;
    } catch (error) {
      throw asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', 'the control account could not connect');
    }
  }

  /** Returns a live session. */
  async connection(): Promise<MysqlConnection> {
    const last = this.#connection;
    const known = await last?.catch(() => undefined);
    if (known?.isAlive) return known;
    // Another caller may have opened one in the meantime.
    if (this.#connection === last) this.#connection = this.open();
    return await (this.#connection ?? this.open());
  }

  /**
   * Asks a question that other callers ask in the same words. Callers that come while one is under
   * way share the next answer, so each answer was asked for after its callers came.
   */
  async ask(...questions: readonly string[]): Promise<readonly RawRows[]> {
    const text = questions.join(';\n');
    const known = this.#asked.get(text);
    const asked =
      known ?? new SharedAnswer(async () => await (await this.connection()).queryAgain(questions));
    this.#asked.set(text, asked);
    return await asked.get();
  }

  /** Uses a session for several statements in a row. Callers wait for each other. */
  async withSession<T>(use: (session: MysqlConnection) => Promise<T>): Promise<T> {
    const result = this.#turn.then(async () => await use(await this.connection()));
    this.#turn = result.catch(() => {});
    return await result;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const known = await this.#connection?.catch(() => undefined);
    known?.close();
  }
}

/** A session of the execution account, and its variables before agent SQL ran. */
export interface ExecutionSession {
  readonly connection: MysqlConnection;
  readonly variables: string;
}

/** The maximum number of idle sessions kept for later candidates. */
const MAX_READY = 32;

/** Sessions of the execution account. Each serves one candidate per login. */
export class ExecutionSessions {
  readonly #options: MysqlConnectionOptions;
  readonly #settings: MysqlSettings;
  readonly #ready: Promise<ExecutionSession>[] = [];
  #hasSpare = false;
  #isClosed = false;

  constructor(options: MysqlConnectionOptions, settings: MysqlSettings) {
    this.#options = options;
    this.#settings = settings;
  }

  /** Returns a session that no other candidate uses. */
  async take(): Promise<ExecutionSession> {
    const session = await this.#ready.shift()?.catch(() => undefined);
    return session?.connection.isAlive ? session : await this.#open();
  }

  /** Takes back a session after its transaction has ended, and logs in again in the background. */
  giveBack({ connection }: ExecutionSession): void {
    if (this.#isClosed || this.#ready.length >= MAX_READY) {
      connection.close();
      return;
    }
    this.#keep(connection.logInAgain().then((next) => this.#prepare(next)));
    // Keep one spare session, so that the next candidate does not wait for this login.
    if (!this.#hasSpare) this.#keep(this.#open());
    this.#hasSpare = true;
  }

  #keep(session: Promise<ExecutionSession>): void {
    session.catch(() => {});
    this.#ready.push(session);
  }

  /** Closes the kept sessions, because an open session keeps rights that are revoked later. */
  forget(): void {
    this.#hasSpare = false;
    for (const session of this.#ready.splice(0))
      session.then(({ connection }) => connection.close()).catch(() => {});
  }

  /** The account's grants, as a new login has them. */
  async readGrants(): Promise<readonly string[]> {
    const session = await this.#open();
    const lines = await session.connection.texts('show grants');
    this.giveBack(session);
    return lines.map(([line]) => String(line));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const session of await Promise.allSettled(this.#ready))
      if (session.status === 'fulfilled') session.value.connection.close();
  }

  async #open(): Promise<ExecutionSession> {
    const deadlineMs = this.#settings.stageTimeoutMs + ANSWER_GRACE_MS;
    return await this.#prepare(await MysqlConnection.open(this.#options, deadlineMs));
  }

  /** Sets the variables for agent statements. */
  async #prepare(connection: MysqlConnection): Promise<ExecutionSession> {
    try {
      const set = settingsOf(this.#settings);
      const [rows] = await connection.queryAll([set, READ_VARIABLES]);
      return { connection, variables: parseVariables(rows).variables };
    } catch (error) {
      connection.close();
      throw error;
    }
  }
}

function settingsOf({ stageTimeoutMs, lockTimeoutMs, isolation }: MysqlSettings): string {
  const seconds = Math.max(1, Math.ceil(stageTimeoutMs / 1000));
  const lockSeconds = Math.max(1, Math.ceil(lockTimeoutMs / 1000));
  return `set session sql_mode = '${AGENT_MODE}', time_zone = '+00:00', foreign_key_checks = 1,
    unique_checks = 1, check_constraint_checks = 1, sql_safe_updates = 0, ${SESSION_BASICS},
    tx_isolation = '${isolation.replace(' ', '-').toUpperCase()}',
    innodb_lock_wait_timeout = ${lockSeconds}, lock_wait_timeout = ${lockSeconds},
    max_statement_time = ${seconds}, idle_transaction_timeout = ${seconds}`;
}
