import { asFault, MysqlConnection } from './connection.ts';
import type { MysqlConnectionOptions, MysqlSettings } from './options.ts';
import { SQL_MODE } from './provision.ts';

/** How much longer than a stage its answer may take. */
const ANSWER_GRACE_MS = 5000;
const TRUSTED_DEADLINE_MS = 30_000;

/** Modes under which agent statements run: those of a new server, so that bad values are errors. */
const AGENT_MODE = 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION';

/** Variables that decide what a statement means, or whether a check is made. */
const WATCHED = [
  ...['sql_mode', 'time_zone', 'foreign_key_checks', 'unique_checks', 'check_constraint_checks'],
  ...['autocommit', 'tx_isolation', 'tx_read_only', 'character_set_client', 'collation_connection'],
  ...['character_set_results', 'sql_select_limit', 'sql_safe_updates', 'sql_log_bin', 'old_mode'],
  ...['innodb_lock_wait_timeout', 'max_statement_time', 'idle_transaction_timeout', 'insert_id'],
  ...['auto_increment_increment', 'auto_increment_offset', 'explicit_defaults_for_timestamp'],
  ...['default_storage_engine', 'div_precision_increment', 'skip_replication', 'big_tables'],
  ...['system_versioning_asof', 'system_versioning_insert_history', 'lc_time_names'],
];
const READ_WATCHED =
  `select ${WATCHED.map((name) => `@@session.${name}`).join(', ')}, ` +
  'abs(@@session.timestamp - unix_timestamp(sysdate(6))) < 2';

/** The session's variables as one text. */
export async function readVariables(session: MysqlConnection): Promise<string> {
  const [row] = await session.texts(READ_WATCHED);
  return [...WATCHED, 'clock'].map((name, index) => `${name}=${row?.[index]}`).join(' ');
}

/** The trusted account's session, opened again when it was lost. It runs trusted queries only. */
export class ControlAccount {
  readonly #options: MysqlConnectionOptions;
  #connection: Promise<MysqlConnection> | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: MysqlConnectionOptions) {
    this.#options = options;
  }

  /** A separate session, for what must not share one with anything else. */
  async open(): Promise<MysqlConnection> {
    try {
      const connection = await MysqlConnection.open(this.#options, TRUSTED_DEADLINE_MS);
      await connection.query(
        `set session sql_mode = '${SQL_MODE},ERROR_FOR_DIVISION_BY_ZERO', time_zone = '+00:00',
          tx_isolation = 'READ-COMMITTED', innodb_lock_wait_timeout = 1`,
      );
      return connection;
    } catch (error) {
      throw asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', 'the control account could not connect');
    }
  }

  /** A live session. */
  async connection(): Promise<MysqlConnection> {
    const known = await this.#connection?.catch(() => undefined);
    if (known?.isAlive) return known;
    this.#connection = this.open();
    return await this.#connection;
  }

  /** A session for several statements in a row, one caller after another. */
  async withSession<T>(use: (session: MysqlConnection) => Promise<T>): Promise<T> {
    const result = this.#turn.then(async () => await use(await this.connection()));
    this.#turn = result.catch(() => {});
    return await result;
  }

  async close(): Promise<void> {
    const known = await this.#connection?.catch(() => undefined);
    known?.close();
  }
}

/** A session of the execution account, with its variables as they were before agent SQL ran. */
export interface ExecutionSession {
  readonly connection: MysqlConnection;
  readonly variables: string;
}

/** Opens sessions of the execution account. Each serves one candidate; one is kept ready. */
export class ExecutionSessions {
  readonly #options: MysqlConnectionOptions;
  readonly #settings: MysqlSettings;
  #ready: Promise<ExecutionSession> | undefined;
  #isClosed = false;

  constructor(options: MysqlConnectionOptions, settings: MysqlSettings) {
    this.#options = options;
    this.#settings = settings;
  }

  async take(): Promise<ExecutionSession> {
    const ready = await this.#ready?.catch(() => undefined);
    this.#ready = undefined;
    const session = ready?.connection.isAlive ? ready : await this.#open();
    if (!this.#isClosed) {
      this.#ready = this.#open();
      this.#ready.catch(() => {});
    }
    return session;
  }

  /** The session that the next candidate will take, for questions about the account. */
  async peek(): Promise<MysqlConnection> {
    const ready = await this.#ready?.catch(() => undefined);
    if (ready?.connection.isAlive) return ready.connection;
    this.#ready = this.#open();
    return (await this.#ready).connection;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const ready = await this.#ready?.catch(() => undefined);
    ready?.connection.close();
  }

  async #open(): Promise<ExecutionSession> {
    const { stageTimeoutMs, lockTimeoutMs, isolation } = this.#settings;
    const connection = await MysqlConnection.open(this.#options, stageTimeoutMs + ANSWER_GRACE_MS);
    const seconds = Math.max(1, Math.ceil(stageTimeoutMs / 1000));
    const lockSeconds = Math.max(1, Math.ceil(lockTimeoutMs / 1000));
    await connection.query(
      `set session sql_mode = '${AGENT_MODE}', time_zone = '+00:00', foreign_key_checks = 1,
        unique_checks = 1, check_constraint_checks = 1, autocommit = 1, sql_safe_updates = 0,
        tx_isolation = '${isolation.replace(' ', '-').toUpperCase()}', sql_select_limit = default,
        innodb_lock_wait_timeout = ${lockSeconds}, lock_wait_timeout = ${lockSeconds},
        max_statement_time = ${seconds}, idle_transaction_timeout = ${seconds}`,
    );
    return { connection, variables: await readVariables(connection) };
  }
}
