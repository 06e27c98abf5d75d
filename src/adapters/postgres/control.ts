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

/**
 * The control login's session, opened again when it was lost. It runs our own
 * queries and nothing else.
 */
export class Control {
  readonly #options: ConnectionOptions;
  /** Where the server writes its commits, as its newest session said. */
  #log: string | undefined;
  #served: Pick<PostgresDeployment, 'backend' | 'major'> | undefined;
  #connection: Promise<Connection> | undefined;
  /** Prepared on the session of that moment; another session needs its own. */
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
   * server version: an address can come to lead to a copy, a restored database or an upgraded
   * server while the adapter is open, and licenses, claims and markers are those of the one it was
   * opened on.
   */
  async open(application: string): Promise<Connection> {
    const connection = await Connection.open(this.#options, application, TRUSTED_DEADLINE_MS);
    try {
      // A path stored on the role or database would let objects of the application answer for the
      // server's own. Compiling a query takes longer than running it.
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

  /** Reads which database this is, and stays with it. */
  async deployment(): Promise<PostgresDeployment> {
    const deployment = await readDeployment(await this.connection());
    this.#served = deployment;
    return deployment;
  }

  /** A live session. */
  async connection(): Promise<Connection> {
    if (this.#closed)
      throw asFault(new Error('the adapter is closed'), 'ERR_EM_ADAPTER_UNAVAILABLE', 'control');
    const known = await this.#connection?.catch(() => undefined);
    if (known?.isAlive) return known;
    this.#connection = this.open('effectmatch control');
    try {
      return await this.#connection;
    } catch (error) {
      throw asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', 'the control login could not connect');
    }
  }

  /** A separate session, for what must not share a transaction with anything else. */
  async withConnection<T>(use: (connection: Connection) => Promise<T>): Promise<T> {
    try {
      await using connection = await this.open('effectmatch control');
      return await use(connection);
    } catch (error) {
      throw asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', 'the database could not be read');
    }
  }

  /**
   * Makes the fingerprint cover these roles and what they are members of, also if a known name now
   * belongs to a different role.
   */
  watchRoles(roles: readonly string[]): void {
    this.#roles = roles;
    this.#fingerprints = undefined;
  }

  /**
   * Takes note of a transaction that was promoted. The server counted what it wrote, up to its
   * COMMIT, and that was registered rows alone: its end does not make the configuration be read
   * again. To be taken before the transaction begins: ids of an earlier session's server mean
   * nothing on a later one.
   */
  promotedTransactions(): (xid: string) => void {
    const promoted = this.#promoted;
    return (xid) => promoted.add(BigInt(xid));
  }

  /** The log of this server, for a ledger that may be in it; see {@link promotedTransactions}. */
  commitLog(): CommitLog | undefined {
    const name = this.#log;
    return name === undefined ? undefined : { name, note: this.promotedTransactions() };
  }

  /**
   * What the configuration looks like now. One read serves all callers that asked before it began;
   * later callers get the next one, so that no answer is older than its question.
   */
  async fingerprint(): Promise<string> {
    if (this.#next !== undefined) return await this.#next;
    const next = this.#running.then(async () => {
      this.#next = undefined;
      return await this.#readFingerprint();
    });
    this.#next = next;
    this.#running = next.catch(() => {});
    return await next;
  }

  async #readFingerprint(): Promise<string> {
    const connection = await this.connection();
    if (this.#fingerprints?.connection !== connection) {
      // Another session begins with a full reading, and may meet a server that took over and gives
      // out the same ids again.
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

  /** Refuses a database that was never provisioned, with what to do about it. */
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

  /** Who owns the records, and who this login is, as the server calls them. */
  async roles(): Promise<{ readonly owner: string; readonly control: string }> {
    const { rows } = await (await this.connection()).query(
      `select pg_catalog.pg_get_userbyid(nspowner), session_user from pg_catalog.pg_namespace where nspname = 'effectmatch'`,
    );
    const [owner, control] = rows[0] ?? [];
    return { owner: String(owner), control: String(control) };
  }

  /** What became of a transaction, by the server's own record. */
  async transactionStatus(xid: string): Promise<string | null> {
    const control = await this.connection();
    const { rows } = await control.query('select pg_catalog.pg_xact_status($1)', [xid]);
    return rows[0]?.[0] ?? null;
  }

  /**
   * Ends sessions that hold a transaction longer than any stage may; needs the right to signal
   * them.
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

  /** Removes records and stages of transactions that are over, which are never read again. */
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

/** What the control login may know and agent SQL may not. */
export interface PostgresDeployment {
  readonly backend: string;
  /** The server's major version. What a value means to it may change with the next one. */
  readonly major: string;
  /**
   * Authenticates a call of a trusted function, so that agent SQL in the same session cannot make
   * it.
   */
  sign(...parts: readonly string[]): Buffer;
}

/** Reads who this database is, and the secret by which its trusted functions know the runtime. */
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
    // A database made from this one as a template has the same row, but not the same object id.
    backend: `${backend}.${database}`,
    major: String(major),
    sign: (...parts) => digest(outerPad, digest(innerPad, Buffer.from(parts.join('\n')))),
  };
}

/** Undefined where a crash can lose commits, or where this login may not ask. */
async function readLog(control: Connection): Promise<string | undefined> {
  const { replies } = await control.run([{ text: COMMIT_LOG }]);
  return replies[0]?.rows[0]?.[0] ?? undefined;
}

function digest(pad: Buffer, message: Buffer): Buffer {
  return hash('sha256', Buffer.concat([pad, message]), 'buffer');
}
