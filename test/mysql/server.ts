// Real MariaDB for tests, on a private data folder, as a user that is not root.
//
// await using db = await freshDatabase(); // a database on the server of this test run
// db.account('exec') // an account name that no other test uses; dropped with the database
//
// await using server = await startServer({ 'log-bin': 'on' }); // a separate server,
// await server.kill(); await server.restart(); // to kill or to configure
//
// `npm test` starts one server for all files and names it in EFFECTMATCH_TEST_MARIADB; a file run
// alone with `node --test` starts one for itself.
import { randomBytes } from 'node:crypto';
import { createConnection } from 'mysql2/promise';
import { openKeeper } from '../postgres/keeper-channel.ts';
import type { MariadbOrder } from './cluster.ts';

/** A server on which any test may create databases. */
export interface SharedMariadb {
  readonly port: number;
  createDatabase(): Promise<MariadbDatabase>;
}

/** A server that one test has for itself, and may kill. */
export interface MariadbServer extends SharedMariadb, AsyncDisposable {
  readonly folder: string;
  readonly pid: number | undefined;
  /** Kills the server as a crash would, and returns when it has ended. */
  kill(): Promise<void>;
  /** Starts again on the same data folder and port. */
  restart(): Promise<void>;
  /** Ends the server and removes its folder. */
  stop(): Promise<void>;
}

/** A database that one test has for itself. */
export interface MariadbDatabase extends AsyncDisposable {
  readonly name: string;
  /** A connection URL; root unless another account is named. */
  url(user?: string, password?: string): string;
  /** This name made unique on the server: for accounts and for further databases. */
  unique(name: string): string;
  /** Runs statements as root on a separate connection and returns the rows of the last. */
  run(sql: string): Promise<readonly Record<string, unknown>[]>;
  /** Drops the database, and everything that `unique` has named. */
  drop(): Promise<void>;
}

const VARIABLE = 'EFFECTMATCH_TEST_MARIADB';

/** Starts a server and returns when it takes connections. It ends with this process at the latest. */
export async function startServer(settings: MariadbOrder['settings'] = {}): Promise<MariadbServer> {
  const keeper = openKeeper<MariadbOrder>(new URL('./keeper.ts', import.meta.url));
  const stop = () => keeper.end();
  let report = await keeper.order({ kind: 'create', settings }).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  const { port, folder } = report;
  return {
    ...shareable(port),
    folder,
    get pid() {
      return report.pid;
    },
    async kill() {
      report = await keeper.order({ kind: 'crash' });
    },
    async restart() {
      report = await keeper.order({ kind: 'shutdown' });
      report = await keeper.order({ kind: 'start' });
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** The environment that makes `freshDatabase` in child processes use this server. */
export function environmentOf({ port }: SharedMariadb): Record<string, string> {
  return { [VARIABLE]: String(port) };
}

let started: Promise<SharedMariadb> | undefined;

/** The server of this test run; otherwise one that this process starts once and keeps. */
export function sharedServer(): Promise<SharedMariadb> {
  const given = process.env[VARIABLE];
  started ??= given === undefined ? startServer() : Promise.resolve(shareable(Number(given)));
  return started;
}

/** A separate database on the shared server: `await using db = await freshDatabase()`. */
export async function freshDatabase(): Promise<MariadbDatabase> {
  return await (await sharedServer()).createDatabase();
}

function shareable(port: number): SharedMariadb {
  return { port, createDatabase: () => createDatabase(port) };
}

async function createDatabase(port: number): Promise<MariadbDatabase> {
  const suffix = `_${randomBytes(6).toString('hex')}`;
  const name = `test${suffix}`;
  const url = (user = 'root', password = '', database = name) =>
    `mysql://${user}${password && `:${encodeURIComponent(password)}`}@127.0.0.1:${port}/${database}`;
  const run = (sql: string) => runAs(url(), sql);
  await runAs(url('root', '', ''), `create database ${name} character set utf8mb4`);
  const drop = async () => {
    const ends = `like '%\\\\${suffix}'`;
    const databases = await run(
      `select schema_name as name from information_schema.schemata where schema_name ${ends}`,
    );
    const accounts = await run(
      `select user as name, host as host from mysql.user where user ${ends}`,
    );
    const users = accounts.map((account) => `drop user '${account.name}'@'${account.host}';`);
    await run(
      databases.map((database) => `drop database \`${database.name}\`;`).join('') + users.join(''),
    );
  };
  return {
    ...{ name, run, drop },
    url: (user, password) => url(user, password),
    unique: (base) => base + suffix,
    [Symbol.asyncDispose]: drop,
  };
}

async function runAs(uri: string, sql: string): Promise<readonly Record<string, unknown>[]> {
  const connection = await createConnection({
    ...{ uri, multipleStatements: true, dateStrings: true },
    ...{ supportBigNumbers: true, charset: 'utf8mb4' },
  });
  connection.on('error', () => {});
  try {
    const [result] = await connection.query(sql);
    const last = Array.isArray(result) && Array.isArray(result.at(-1)) ? result.at(-1) : result;
    return Array.isArray(last) ? (last as readonly Record<string, unknown>[]) : [];
  } finally {
    connection.destroy();
  }
}
