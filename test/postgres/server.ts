// Real PostgreSQL for tests: nothing to install, nothing left behind.
//
// await using db = await freshDatabase(); // a database of its own on the server of this test run
// const exec = db.role('effectmatch_exec'); // a role name that no other test uses; dropped with
// the database
// new pg.Client({ connectionString: db.url(exec) }) // no password needed: every login from
// 127.0.0.1 is trusted
//
// await using server = await startServer({ settings: { synchronous_commit: 'off' } }); // a server
// of one's own,
// await server.kill(); await server.restart(); // to kill or to configure
//
// `npm test` starts one server of each version for all files and names it in EFFECTMATCH_TEST_POSTGRES
// or EFFECTMATCH_TEST_POSTGRES_15; a file run alone with `node --test` starts its own. Version 17 comes from the npm package; 15 is Debian's package
// (`isInstalled(15)`), which unlike the other compiles expensive statements (JIT). A test that names no
// version gets 17, or the one in EFFECTMATCH_POSTGRES_VERSION. EFFECTMATCH_POSTGRES_BIN names the folder of
// another server's programs, 16 or 18 for example; such tests, and those for each of VERSIONS, then use
// that server alone. Roles, settings by ALTER SYSTEM and kills
// concern the whole server: on the shared one use `db.role`, and leave the others to a server of
// one's own. A second process, the keeper, owns the server and removes it however the test ends. Of
// a commit that only waits in memory (synchronous_commit off) the WAL writer makes a durable one
// within `wal_writer_delay`: raise it in a test that kills the server to see such a commit lost.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DEFAULT_VERSION, type Version } from './binaries.ts';
import type { ClusterOrder, Settings } from './cluster.ts';
import { type Address, createDatabase, type TestDatabase, urlOf } from './database.ts';
import { openKeeper } from './keeper-channel.ts';

export {
  DEFAULT_VERSION,
  installVersion15,
  isInstalled,
  VERSIONS,
  type Version,
} from './binaries.ts';
export type { TestDatabase } from './database.ts';

/** A server on which any test may create databases. */
export interface SharedServer extends Address {
  readonly version: Version;
  /** The superuser's URL of the database `postgres`. */
  readonly adminUrl: string;
  createDatabase(name?: string, options?: { readonly template?: string }): Promise<TestDatabase>;
}

/** A server that one test has for itself, and may kill. */
export interface TestServer extends SharedServer, AsyncDisposable {
  /** The data folder and the unix socket are in here. */
  readonly folder: string;
  /** What the server has logged so far. */
  readLog(): string;
  /** The process id of the postmaster; undefined while the server is down. */
  readonly pid: number | undefined;
  /**
   * Kills all processes of the server at once, as a crash would, and returns when they have ended.
   */
  kill(): Promise<void>;
  /**
   * Starts again on the same data folder and port: after `kill` with crash recovery, otherwise
   * after an orderly end.
   */
  restart(): Promise<void>;
  /** Ends the server and removes its folder. */
  stop(): Promise<void>;
}

/** How a server differs from the usual one. */
export interface ServerOptions {
  readonly version?: Version;
  /** Lines of postgresql.conf, by name. */
  readonly settings?: Settings;
  /** The folder of another installation's programs. */
  readonly bin?: string;
}

const variableOf = (version: Version) =>
  version === 17 ? 'EFFECTMATCH_TEST_POSTGRES' : `EFFECTMATCH_TEST_POSTGRES_${version}`;

function shareable(address: Address, version: Version): SharedServer {
  return {
    ...address,
    version,
    adminUrl: urlOf(address, 'postgres'),
    createDatabase: (name, options) => createDatabase(address, name, options),
  };
}

/**
 * Starts a server and returns when it takes connections. It ends with `stop`, with disposal or with
 * this process.
 */
export async function startServer({
  version = DEFAULT_VERSION,
  settings = {},
  bin,
}: ServerOptions = {}): Promise<TestServer> {
  const keeper = openKeeper<ClusterOrder>(new URL('./keeper.ts', import.meta.url));
  const stop = () => keeper.end();
  let report = await keeper
    .order({ kind: 'create', version, settings, ...(bin && { bin }) })
    .catch(async (error: unknown) => {
      await stop();
      throw error;
    });
  const { port, folder, socketFolder } = report;
  return {
    ...shareable({ host: '127.0.0.1', port, socketFolder }, version),
    folder,
    readLog: () => readFileSync(join(folder, 'log'), 'utf8'),
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

/** The environment that makes `sharedServer` in child processes use this server. */
export function environmentOf({
  host,
  port,
  socketFolder,
  version,
}: SharedServer): Record<string, string> {
  return { [variableOf(version)]: JSON.stringify({ host, port, socketFolder }) };
}

const started = new Map<Version, Promise<SharedServer>>();

/**
 * The server of this test run, if it has the version; otherwise one that this process starts once
 * and keeps.
 */
export function sharedServer(version: Version = DEFAULT_VERSION): Promise<SharedServer> {
  const text = process.env[variableOf(version)];
  if (text !== undefined) return Promise.resolve(shareable(JSON.parse(text) as Address, version));
  const running = started.get(version) ?? startServer({ version });
  started.set(version, running);
  return running;
}

/** A database of one's own on the shared server: `await using db = await freshDatabase()`. */
export async function freshDatabase(
  options: { readonly version?: Version; readonly template?: string } = {},
): Promise<TestDatabase> {
  const { version, ...rest } = options;
  return (await sharedServer(version)).createDatabase(undefined, rest);
}
