import { join } from 'node:path';
import { type Connection, createConnection } from 'mysql2/promise';
import type { Reached } from '../../../src/contract/steps.ts';
import { approver, generateApprover } from '../../../src/crypto/approver.ts';
import { generated, insert, update } from '../../../src/protocol/draft.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { type ProtectedMariadb, protectedMariadb } from '../../../test/mysql/protected.ts';
import { type MariadbServer, startServer } from '../../../test/mysql/server.ts';
import { temporaryFolder } from '../../temporary.ts';
import type { Path } from '../pg-cost/paths.ts';

/** A table that one statement fills, changes and empties. */
export const BULK_TABLE = 'line';
const RELATIONS = ['invoice', 'account', 'payment', 'entry', 'notification', BULK_TABLE];

/** Tables with `rows` rows each, and the trigger that writes the fifth effect. */
function schema(rows: number): string {
  return `
    create table invoice (id int primary key, status varchar(20) not null, amount_cents int not null);
    create table account (id int primary key, balance_cents int not null);
    create table payment (id int auto_increment primary key, invoice_id int not null, amount_cents int not null);
    create table entry (id int auto_increment primary key, account_id int not null, amount_cents int not null);
    create table notification (id int auto_increment primary key, invoice_id int not null, text varchar(20) not null);
    create table ${BULK_TABLE} (id int primary key, amount_cents int not null, text varchar(20) not null);
    insert into invoice select seq, 'pending', 100 from seq_1_to_${rows};
    insert into account select seq, 1000 from seq_1_to_${rows};
    create trigger notify after update on invoice for each row
      insert into notification (invoice_id, text) values (new.id, 'paid');`;
}

/** Two updates and two inserts by the operation, one insert by the trigger. */
export const STATEMENTS = [
  "update invoice set status = 'paid' where id = ?",
  'update account set balance_cents = balance_cents - 100 where id = ?',
  'insert into payment (invoice_id, amount_cents) values (?, 100)',
  'insert into entry (account_id, amount_cents) values (?, -100)',
];

function effectsOf(id: number) {
  return [
    update('invoice', { id }, { status: ['pending', 'paid'] }),
    update('account', { id }, { balance_cents: [1000, 900] }),
    insert('payment', { id: generated('payment'), invoice_id: id, amount_cents: 100 }),
    insert('entry', { id: generated('entry'), account_id: id, amount_cents: -100 }),
    insert('notification', { id: generated('notification'), invoice_id: id, text: 'paid' }),
  ];
}

/** A server for the study alone, on which all tables fit into memory. Every commit is flushed. */
export async function startBenchServer(binaryLog: boolean): Promise<MariadbServer> {
  const log = { 'log-bin': 'binlog', 'server-id': '1', 'sync-binlog': '1' };
  return await startServer({
    'innodb-buffer-pool-size': '1G',
    'innodb-log-file-size': '1G',
    ...(binaryLog && log),
  });
}

/** The same books twice: in a database that was never provisioned, and in one that is protected. */
export interface MariadbSite extends AsyncDisposable {
  readonly plainUrl: string;
  readonly held: ProtectedMariadb;
  readonly folder: string;
  /** Runs a statement in the database that is not protected. */
  runPlain(sql: string): Promise<unknown>;
  /** How often the server has flushed a log to disk. */
  flushes(): Promise<number>;
  /** How many rows the server has looked at. */
  rowsRead(): Promise<number>;
}

export async function openMariadbSite(server: MariadbServer, rows: number): Promise<MariadbSite> {
  const folder = temporaryFolder();
  const plain = await server.createDatabase();
  await plain.run(schema(rows));
  const settings = { relations: RELATIONS, lockTimeoutMs: 30_000, stageTimeoutMs: 300_000 };
  const held = await protectedMariadb(schema(rows), settings, await server.createDatabase());
  const sum = async (counters: string) => {
    const found = await plain.run(`show global status where variable_name ${counters}`);
    return found.reduce((all, { Value }) => all + Number(Value), 0);
  };
  return {
    ...{ plainUrl: plain.url(), held, folder: folder.path, runPlain: plain.run },
    flushes: () => sum("in ('Innodb_data_fsyncs', 'Binlog_group_commits')"),
    rowsRead: () => sum("like 'Handler\\_read\\_%'"),
    async [Symbol.asyncDispose]() {
      await held[Symbol.asyncDispose]();
      await plain.drop();
      folder[Symbol.dispose]();
    },
  };
}

async function openDirect(
  { plainUrl }: MariadbSite,
  clients: number,
  path: Pick<Path, 'name'> & {
    begin(connection: Connection, id: number): Promise<void>;
    commit(connection: Connection, id: number): Promise<void>;
  },
): Promise<Path> {
  const opening = Array.from({ length: clients }, () => createConnection(plainUrl));
  const connections = await Promise.all(opening);
  return {
    name: path.name,
    writesOnce: false,
    approve: async () => {},
    async run(id, client) {
      const connection = connections[client % clients];
      if (connection === undefined) throw new Error('there is no client');
      await path.begin(connection, id);
      for (const sql of STATEMENTS) await connection.execute(sql, [id]);
      await path.commit(connection, id);
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(connections.map((connection) => connection.end()));
    },
  };
}

/** The statements as an application runs them. */
export async function openPlain(site: MariadbSite, clients: number): Promise<Path> {
  return await openDirect(site, clients, {
    name: 'plain transaction',
    begin: (connection) => connection.beginTransaction(),
    commit: (connection) => connection.commit(),
  });
}

/** The same statements in an XA branch, as the adapter holds them, and nothing else. */
export async function openXa(site: MariadbSite, clients: number): Promise<Path> {
  return await openDirect(site, clients, {
    name: 'direct XA',
    async begin(connection, id) {
      await connection.query(`xa start 'bench ${id}'`);
    },
    async commit(connection, id) {
      await connection.query(`xa end 'bench ${id}'`);
      await connection.query(`xa commit 'bench ${id}' one phase`);
    },
  });
}

const KEY = generateApprover('bench');

export async function openRuntime(site: MariadbSite, reached?: Reached): Promise<Runtime> {
  const name = `ledger-${crypto.randomUUID()}`;
  const config = {
    store: join(site.folder, `${name}.db`),
    keyring: join(site.folder, `${name}.json`),
    issuers: { bench: { key: KEY.publicKey, may: ['books'] } },
    adapters: { books: site.held.factory() },
  };
  return await createRuntime(config, reached === undefined ? {} : { reached });
}

type Effects = Parameters<Runtime['prepare']>[0]['effects'];

/** A license for the effects, `occurrences` times. */
export async function approve(
  runtime: Runtime,
  task: string,
  effects: Effects,
  occurrences = 1,
): Promise<unknown> {
  const request = { adapter: 'books', task, planRevision: 1, effects, occurrences };
  return approver(KEY).sign(await runtime.prepare(request), { expiresIn: '1h' });
}

/** The statements under a license. */
export async function openProtected(site: MariadbSite, reached?: Reached): Promise<Path> {
  const runtime = await openRuntime(site, reached);
  const licenses = new Map<number, unknown>();
  return {
    name: 'protected',
    writesOnce: true,
    async approve(ids) {
      for (const id of ids)
        licenses.set(id, await approve(runtime, `invoice-${id}`, effectsOf(id)));
    },
    async run(id) {
      const statements = STATEMENTS.map((sql) => ({ sql, values: [id] }));
      const terminal = await runtime.execute(licenses.get(id), { statements });
      if (terminal.kind !== 'committed')
        throw new Error(`not committed: ${JSON.stringify(terminal)}`);
    },
    [Symbol.asyncDispose]: () => runtime.close(),
  };
}
