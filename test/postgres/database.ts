import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { quoteName } from '../../src/postgres/identifier.ts';

/**
 * Where a server listens. `socketFolder` is empty where the path would be too long for a unix
 * socket.
 */
export interface Address {
  readonly host: '127.0.0.1';
  readonly port: number;
  readonly socketFolder: string;
}

/** A database that one test has for itself. */
export interface TestDatabase extends AsyncDisposable {
  readonly name: string;
  /** A connection URL; the superuser unless another user is named. */
  url(user?: string, password?: string): string;
  /**
   * This role name made unique on the server, where roles are shared by all databases. At most 44
   * characters long.
   */
  role(name: string): string;
  /**
   * Runs SQL as superuser in this database, over a connection of its own, and returns the rows of
   * the last statement.
   */
  run(sql: string, parameters?: readonly unknown[]): Promise<readonly Record<string, unknown>[]>;
  /** Drops the database, whoever is connected, and then the roles named by `role`. */
  drop(): Promise<void>;
}

/** The URL of one database over TCP. */
export function urlOf(
  { host, port }: Address,
  database: string,
  user = 'postgres',
  password?: string,
): string {
  const login =
    encodeURIComponent(user) + (password === undefined ? '' : `:${encodeURIComponent(password)}`);
  return `postgres://${login}@${host}:${port}/${encodeURIComponent(database)}`;
}

async function withClient<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {}); // A server killed under us fails the query; the event repeats it.
  try {
    await client.connect();
    return await use(client);
  } finally {
    await client.end().catch(() => {});
  }
}

async function runAs(url: string, sql: string, parameters: readonly unknown[] = []) {
  return withClient(url, async (client) => {
    const result: pg.QueryResult | pg.QueryResult[] = await client.query(
      sql,
      parameters.length > 0 ? [...parameters] : undefined,
    );
    const last = Array.isArray(result) ? result.at(-1) : result;
    return (last?.rows ?? []) as readonly Record<string, unknown>[];
  });
}

/**
 * Creates a database, by default an empty one with a name of its own. A template must have no open
 * connections. The default template is template0, to which nobody can connect, so any number of
 * tests create databases at once.
 */
export async function createDatabase(
  address: Address,
  name?: string,
  { template = 'template0' }: { readonly template?: string } = {},
): Promise<TestDatabase> {
  const suffix = `_${randomBytes(8).toString('hex')}`;
  const database = name ?? `test${suffix}`;
  const admin = urlOf(address, 'postgres');
  await runAs(admin, `CREATE DATABASE ${quoteName(database)} TEMPLATE ${quoteName(template)}`);
  const drop = () =>
    withClient(admin, async (client) => {
      await client.query(`DROP DATABASE IF EXISTS ${quoteName(database)} WITH (FORCE)`);
      const roles = await client.query(
        'SELECT rolname FROM pg_roles WHERE right(rolname, $1) = $2',
        [suffix.length, suffix],
      );
      const names = roles.rows.map(({ rolname }) => quoteName(rolname));
      if (names.length > 0) await client.query(`DROP ROLE IF EXISTS ${names.join(', ')}`);
    });
  return {
    name: database,
    url: (user, password) => urlOf(address, database, user, password),
    role(base) {
      if (Buffer.byteLength(base + suffix) > 63)
        throw new Error(`role name too long to be made unique: ${base}`);
      return base + suffix;
    },
    run: (sql, parameters) => runAs(urlOf(address, database), sql, parameters),
    drop,
    [Symbol.asyncDispose]: drop,
  };
}
