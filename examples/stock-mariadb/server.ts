import { randomBytes } from 'node:crypto';
import { createConnection } from 'mysql2/promise';

/** A database for this example only, reached with the administrator's account. */
export interface Database extends AsyncDisposable {
  readonly name: string;
  /** The address of the database for an account; the administrator's unless another is named. */
  url(user?: string, password?: string): string;
  /** This name of an account or a database, made unique: both belong to the whole server. */
  unique(name: string): string;
  /** Runs SQL directly, without EffectMatch, and returns the rows of the last statement as text. */
  run(sql: string): Promise<readonly string[]>;
}

/**
 * Creates a database on the server of `MARIADB_URL`, an administrator's account. Without it, starts a
 * temporary server in the way this project's tests do.
 */
export async function openDatabase(options: { readonly kept: boolean }): Promise<Database> {
  const given = process.env.MARIADB_URL;
  if (given !== undefined) return await createDatabase(given, options);
  const { startServer } = await import('../../test/mysql/server.ts');
  const server = await startServer();
  const database = await createDatabase(`mysql://root@127.0.0.1:${server.port}`, { kept: true });
  return { ...database, [Symbol.asyncDispose]: () => server.stop() };
}

async function createDatabase(
  admin: string,
  { kept }: { readonly kept: boolean },
): Promise<Database> {
  const suffix = randomBytes(4).toString('hex');
  const name = `warehouse_${suffix}`;
  const unique = (base: string) => `${base}_${suffix}`;
  await query(admin, `create database ${name} character set utf8mb4`);
  const url = (user?: string, password?: string) => {
    const address = new URL(admin);
    address.pathname = `/${name}`;
    if (user !== undefined) Object.assign(address, { username: user, password: password ?? '' });
    return address.href;
  };
  return {
    ...{ name, url, unique },
    run: (sql) => query(url(), sql),
    async [Symbol.asyncDispose]() {
      if (kept) return;
      const logins = ['em_exec', 'em_control'].map((login) => `'${unique(login)}'@'%'`);
      const accounts = [...logins, `'${unique('em_owner')}'@'localhost'`];
      await query(admin, `drop database ${name}; drop database ${unique('effectmatch')}`);
      await query(admin, `drop user ${accounts.join(', ')}`);
    },
  };
}

async function query(uri: string, sql: string): Promise<readonly string[]> {
  const connection = await createConnection({ uri, multipleStatements: true });
  try {
    const [result] = await connection.query(sql);
    if (!Array.isArray(result)) return [];
    const last: unknown = Array.isArray(result.at(-1)) ? result.at(-1) : result;
    if (!Array.isArray(last)) return [];
    return last.map((row: object) => Object.values(row).join(' '));
  } finally {
    await connection.end();
  }
}
