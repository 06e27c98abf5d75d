import { hash } from 'node:crypto';
import type { CommitLog } from '../../contract/adapter.ts';
import { EffectMatchError } from '../../errors.ts';
import { COMMIT_LOG } from '../../postgres/commit-log.ts';
import {
  asFault,
  Connection,
  type ConnectionOptions,
  sqlState,
  TRUSTED_DEADLINE_MS,
} from '../../postgres/connection.ts';
import { type Fingerprints, prepareFingerprint } from './certify/fingerprint.ts';
import { PINNED_SEARCH_PATH } from './formats.ts';
import { type BoundaryTier, refused } from './options.ts';
import { VERSION } from './provision/provision.ts';

const INSUFFICIENT_PRIVILEGE = '42501';

/** The control login's session, which is reopened if it is lost. It runs only our own queries. */
export class Control {
  readonly #options: ConnectionOptions;
  /** The server's commit log, as the latest session read it. */
  #log: string | undefined;
  #served: Pick<PostgresDeployment, 'backend' | 'major'> | undefined;
  #connection: Promise<Connection> | undefined;
  /** The same session once it is open, for use without waiting. */
  #open: Connection | undefined;
  /** Prepared on one session. A new session must prepare them again. */
  #fingerprints:
    | { readonly connection: Connection; readonly prepared: Promise<Fingerprints> }
    | undefined;
  #roles: readonly string[] = [];
  /** Transactions that were promoted through this adapter. */
  #promoted = new Set<bigint>();
  #next: Promise<string> | undefined;
  #running: Promise<unknown> = Promise.resolve();
  #closed = false;

  readonly #tier: BoundaryTier;

  constructor(options: ConnectionOptions, tier: BoundaryTier = 'server') {
    this.#options = options;
    this.#tier = tier;
  }

  /**
   * Opens a session. Once the deployment was read, every session must find the same database and
   * server version. While the adapter is open, its address may come to lead to a copy, a restored
   * database or an upgraded server, but licenses, claims and markers belong to the database that it
   * was opened on.
   */
  async open(application: string): Promise<Connection> {
    const connection = await Connection.open(this.#options, application, TRUSTED_DEADLINE_MS);
    try {
      // A search path stored on the role or database would let application objects shadow built-in
      // ones. Compiling these queries takes longer than running them.
      await connection.script(`set search_path = ${PINNED_SEARCH_PATH}; set jit = off`);
      const served = this.#served;
      const found = served && (await readDeployment(connection));
      if (found?.backend === served?.backend && found?.major === served?.major) {
        this.#log = await readLog(connection);
        return connection;
      }
      const what =
        'postgres: the address leads to another database, or another server version, than when it was opened';
      throw new EffectMatchError(
        'ERR_EM_ADAPTER_UNAVAILABLE',
        `${what}; restart, and sign again what is for this one`,
      );
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  /** Reads which database this is. Later sessions must find the same one. */
  async deployment(): Promise<PostgresDeployment> {
    const deployment = await readDeployment(await this.connection());
    this.#served = deployment;
    return deployment;
  }

  /** The shared session, reopened if it was lost. */
  async connection(): Promise<Connection> {
    if (this.#closed)
      throw asFault(new Error('the adapter is closed'), 'ERR_EM_ADAPTER_UNAVAILABLE', 'control');
    if (this.#open?.isAlive) return this.#open;
    const known = await this.#connection?.catch(() => undefined);
    if (known?.isAlive) return known;
    this.#connection = this.open('effectmatch control');
    try {
      this.#open = await this.#connection;
      return this.#open;
    } catch (error) {
      throw asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', 'the control login could not connect');
    }
  }

  /** Uses a separate session, for work that must not share a transaction with anything else. */
  async withConnection<T>(use: (connection: Connection) => Promise<T>): Promise<T> {
    try {
      await using connection = await this.open('effectmatch control');
      return await use(connection);
    } catch (error) {
      throw asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', 'the database could not be read');
    }
  }

  /**
   * Makes the fingerprint cover these roles and the roles they are members of. Names are resolved
   * again each time, because a name may now belong to a different role.
   */
  watchRoles(roles: readonly string[]): void {
    this.#roles = roles;
    this.#fingerprints = undefined;
  }

  /**
   * Returns a function that notes a promoted transaction. The server counted everything that it
   * wrote up to its COMMIT, and that was only registered rows, so its end does not require reading
   * the configuration again. Call this before the transaction begins: transaction ids of one
   * session's server mean nothing on the server of a later session.
   */
  promotedTransactions(): (xid: string) => void {
    const promoted = this.#promoted;
    return (xid) => promoted.add(BigInt(xid));
  }

  /**
   * The commit log of this server, for a ledger that may share it; see
   * {@link promotedTransactions}.
   */
  commitLog(): CommitLog | undefined {
    const name = this.#log;
    return name === undefined ? undefined : { name, note: this.promotedTransactions() };
  }

  /**
   * The current fingerprint of the configuration. One read serves all callers that asked before it
   * began. Later callers get the next one, so that no answer is older than its question.
   */
  fingerprint(): Promise<string> {
    if (this.#next !== undefined) return this.#next;
    const next = this.#running.then(() => {
      this.#next = undefined;
      return this.#readFingerprint();
    });
    this.#next = next;
    this.#running = next.catch(() => {});
    return next;
  }

  async #readFingerprint(): Promise<string> {
    const connection = await this.connection();
    if (this.#fingerprints?.connection !== connection) {
      // A new session starts with a full read. It may be on a server that took over and assigns the
      // same transaction ids again.
      this.#promoted = new Set();
      const prepared = prepareFingerprint(connection, this.#roles, this.#tier);
      this.#fingerprints = { connection, prepared };
    }
    try {
      return await (await this.#fingerprints.prepared).read(this.#promoted);
    } catch (error) {
      this.#fingerprints = undefined;
      if (sqlState(error) === INSUFFICIENT_PRIVILEGE) {
        const what =
          'postgres: provisioning left out what only a superuser may grant; have one run `effectmatch provision`, ' +
          "or set boundary: 'managed' where there is none";
        throw asFault(error, 'ERR_EM_ADAPTER_REFUSED', what);
      }
      throw asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', 'the configuration could not be read');
    }
  }

  /** Refuses a database that is not provisioned or not encoded in UTF-8, with a remedy. */
  async demandProvisioned(): Promise<void> {
    const control = await this.connection();
    const { rows } = await control.query(
      `select pg_catalog.to_regprocedure('effectmatch.describe()') is not null
          and pg_catalog.has_function_privilege('effectmatch.describe()', 'execute'),
        pg_catalog.current_setting('server_encoding')`,
    );
    if (rows[0]?.[0] !== 't') {
      throw refused(
        'the database is not provisioned for this control login; run `effectmatch provision`',
      );
    }
    if (rows[0]?.[1] !== 'UTF8') {
      throw refused(
        `the server encoding is ${rows[0]?.[1]}, in which text cannot be compared exactly; use UTF8`,
      );
    }
  }

  /** The owner of the records and this login, by their names on the server. */
  async roles(): Promise<{ readonly owner: string; readonly control: string }> {
    const { rows } = await (await this.connection()).query(
      `select pg_catalog.pg_get_userbyid(nspowner), session_user from pg_catalog.pg_namespace where nspname = 'effectmatch'`,
    );
    const [owner, control] = rows[0] ?? [];
    return { owner: String(owner), control: String(control) };
  }

  /** The status of a transaction, according to the server. */
  async transactionStatus(xid: string): Promise<string | null> {
    const control = await this.connection();
    const { rows } = await control.query('select pg_catalog.pg_xact_status($1)', [xid]);
    return rows[0]?.[0] ?? null;
  }

  /**
   * Ends a login's sessions that hold a transaction longer than any stage may. Needs the right to
   * signal them.
   */
  async endOverdue(login: string, stageTimeoutMs: number): Promise<number> {
    const control = await this.connection();
    const { rows } = await control.query(
      `select pg_catalog.pg_terminate_backend(pid, 5000) from pg_catalog.pg_stat_activity
        where usename = $1 and datname = pg_catalog.current_database()
          and xact_start < pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => $2)`,
      [login, String(stageTimeoutMs / 1000)],
    );
    return rows.filter(([ended]) => ended === 't').length;
  }

  /** Removes records and stages of finished transactions, which are never read again. */
  async sweep(): Promise<void> {
    const control = await this.connection();
    const isOver = 'xid < pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())';
    for (const table of ['record', 'stage'])
      await control.query(`delete from effectmatch.${table} where ${isOver}`);
  }

  async close(): Promise<void> {
    this.#closed = true;
    const known = await this.#connection?.catch(() => undefined);
    await known?.close();
  }
}

/** What the control login may read and agent SQL may not. */
export interface PostgresDeployment {
  readonly backend: string;
  /** The server's major version. The meaning of a value may change with the next one. */
  readonly major: string;
  /**
   * Authenticates a call of a trusted function, so that agent SQL in the same session cannot make
   * it.
   */
  sign(...parts: readonly string[]): Buffer;
}

/**
 * Reads the database's identity, and the secret that authenticates the runtime to its trusted
 * functions.
 */
export async function readDeployment(control: Connection): Promise<PostgresDeployment> {
  const query = `select d.backend, d.version, d.inner_pad::text, d.outer_pad::text,
      (select oid from pg_catalog.pg_database where datname = current_database()),
      current_setting('server_version_num')::integer / 10000
    from effectmatch.describe() as d`;
  const { rows } = await control.query(query);
  const [backend, version, inner, outer, database, major] = rows[0] ?? [];
  if (backend == null || inner == null || outer == null || Number(version) !== VERSION) {
    throw new EffectMatchError(
      'ERR_EM_ADAPTER_REFUSED',
      `postgres: the database was provisioned by another release (${version ?? 'none'}, this one needs ${VERSION}); provision it again`,
    );
  }
  const [innerPad, outerPad] = [inner, outer].map((pad) => Buffer.from(pad.slice(2), 'hex')) as [
    Buffer,
    Buffer,
  ];
  return {
    // A database created from this one as a template has the same row, but a different object id.
    backend: `${backend}.${database}`,
    major: String(major),
    sign: (...parts) => digest(outerPad, digest(innerPad, Buffer.from(parts.join('\n')))),
  };
}

/** Undefined if a crash can lose commits, or if this login may not read the log's name. */
async function readLog(control: Connection): Promise<string | undefined> {
  const { replies } = await control.run([{ text: COMMIT_LOG }]);
  return replies[0]?.rows[0]?.[0] ?? undefined;
}

function digest(pad: Buffer, message: Buffer): Buffer {
  return hash('sha256', Buffer.concat([pad, message]), 'buffer');
}
