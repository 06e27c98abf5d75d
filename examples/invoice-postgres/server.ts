import { randomBytes } from 'node:crypto';
import pg from 'pg';

/** A database for this example only, reached with the administrator's login. */
export interface Database extends AsyncDisposable {
  readonly name: string;
  /** The address of the database for a login; the administrator's unless another is named. */
  url(user?: string, password?: string): string;
  /** This role name, made unique: roles belong to the whole server. */
  role(name: string): string;
  /**
   * Runs SQL directly, without EffectMatch, and returns the rows of the last statement as lines of
   * text.
   */
  run(sql: string): Promise<readonly string[]>;
}

/**
 * Creates a database on the server of `DATABASE_URL`, a superuser's login. Without it, starts a
 * temporary PostgreSQL from the package that this project's tests use.
 */
export async function openDatabase(options: { readonly kept: boolean }): Promise<Database> {
  const given = process.env.DATABASE_URL;
  if (given !== undefined) return await createDatabase(given, options);
  const { startServer } = await import('../../test/postgres/server.ts');
  const server = await startServer();
  const database = await createDatabase(server.adminUrl, { kept: true });
  return { ...database, [Symbol.asyncDispose]: () => server.stop() };
}

async function createDatabase(
  admin: string,
  { kept }: { readonly kept: boolean },
): Promise<Database> {
  const suffix = randomBytes(4).toString('hex');
  const name = `invoices_${suffix}`;
  await query(admin, `create database ${name}`);
  const url = (user?: string, password?: string) => {
    const address = new URL(admin);
    address.pathname = `/${name}`;
    if (user !== undefined) Object.assign(address, { username: user, password: password ?? '' });
    return address.href;
  };
  return {
    name,
    url,
    role: (role) => `${role}_${suffix}`,
    run: (sql) => query(url(), sql),
    async [Symbol.asyncDispose]() {
      if (kept) return;
      await query(admin, `drop database ${name} with (force)`);
      const roles = await query(
        admin,
        `select rolname from pg_roles where rolname like 'em\\_%\\_${suffix}'`,
      );
      if (roles.length > 0) await query(admin, `drop role ${roles.join(', ')}`);
    },
  };
}

async function query(url: string, sql: string): Promise<readonly string[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const result: pg.QueryResult | pg.QueryResult[] = await client.query(sql);
    const last = Array.isArray(result) ? result.at(-1) : result;
    return (last?.rows ?? []).map((row: object) => Object.values(row).join(' '));
  } finally {
    await client.end();
  }
}
