import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PostgresOptions } from '../../../src/adapters/postgres/index.ts';
import type { LedgersFactory } from '../../../src/contract/ledgers.ts';
import { postgresLedgers } from '../../../src/ledger/postgres/index.ts';
import { protectedDatabase } from '../../../test/postgres/protected.ts';
import { startServer, type TestServer } from '../../../test/postgres/server.ts';
import { BULK_TABLE, booksSchema, tableNames } from './books.ts';

/**
 * A server for the study alone. Every commit is flushed, as PostgreSQL has it. Checkpoints are kept
 * out of the measurements, and all tables fit into memory, so that every block meets the same
 * server.
 */
export async function startBenchServer(): Promise<TestServer> {
  return await startServer({
    settings: {
      fsync: 'on',
      shared_buffers: '1GB',
      max_wal_size: '8GB',
      checkpoint_timeout: '1h',
      max_connections: '300',
    },
  });
}

/** The same books twice: in a database that was never provisioned, and in one that is protected. */
export interface Site extends AsyncDisposable {
  readonly rows: number;
  readonly plainUrl: string;
  readonly options: PostgresOptions;
  /** For the ledger and its keys. */
  readonly folder: string;
  /** A ledger in a schema beside the protected books. */
  createLedger(): Promise<LedgersFactory>;
  /** Creates such a ledger and says where it is, for another process. */
  createLedgerPlace(): Promise<LedgerPlace>;
  /** Empties the table of bulk statements in the protected books. */
  emptyBulk(): Promise<void>;
}

/** How to reach a ledger in a database. */
export interface LedgerPlace {
  readonly url: string;
  readonly schema: string;
}

/**
 * Creates both databases with `relations` tables, all registered, and `rows` rows in each that the
 * operation writes.
 */
export async function openSite(
  server: TestServer,
  relations: number,
  rows: number,
  boundary: PostgresOptions['boundary'] & {} = 'server',
): Promise<Site> {
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-bench-'));
  const schema = booksSchema(relations, rows);
  const plain = await server.createDatabase();
  await plain.run(schema);
  const registered = tableNames(relations).map((name) =>
    name === BULK_TABLE ? { name, bulk: true } : name,
  );
  const db = await server.createDatabase();
  const held = await protectedDatabase(
    schema,
    { relations: registered, sessions: { max: 40 }, boundary },
    { db },
  );
  // Autovacuum would come at a moment of its own choosing.
  for (const database of [plain, db]) await database.run('vacuum (freeze, analyze)');
  await db.run('checkpoint');
  let ledgers = 0;
  const createLedgerPlace = async () => {
    ledgers += 1;
    const schema = db.role(`ledger${ledgers}`);
    const url = db.url(db.role(`appender${ledgers}`));
    await (await postgresLedgers(url, { schema }).provisioning(db.url(), 'provision')).apply();
    return { url, schema };
  };
  return {
    rows,
    createLedgerPlace,
    async createLedger() {
      const { url, schema } = await createLedgerPlace();
      return postgresLedgers(url, { schema });
    },
    async emptyBulk() {
      await db.run(`truncate ${BULK_TABLE}`);
    },
    plainUrl: plain.url(),
    options: held.options,
    folder,
    async [Symbol.asyncDispose]() {
      await held[Symbol.asyncDispose]();
      await plain.drop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
