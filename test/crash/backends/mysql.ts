import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createConnection } from 'mysql2/promise';
import { type MysqlOptions, mysql } from '../../../src/adapters/mysql/index.ts';
import { generated, insert, update } from '../../../src/protocol/draft.ts';
import { protectedMariadb } from '../../mysql/protected.ts';
import { freshDatabase, type MariadbDatabase } from '../../mysql/server.ts';
import type { Backend, StoredMarker } from './backend.ts';
import { amountOf, initialRows, linesAfter, RELATIONS, SHEETS, sheetId } from './postgres.ts';

/** Where the business data is: processes that know only the folder find it here. */
const FILE = 'business.json';

interface Place {
  readonly database: string;
  readonly control: string;
  readonly accounts: readonly string[];
  readonly admin: string;
  readonly options: MysqlOptions;
}

const SCHEMA = `
  create table account (id int primary key, balance int not null);
  create table entry (id int auto_increment primary key, ref int not null, amount int not null check (amount > 0));
  create table deposit (ref int primary key, amount int not null);
  create table message (ref int primary key, body varchar(20) not null);
  create table notice (id int auto_increment primary key, ref int not null);
  create table sheet (id int primary key, op int not null, mark int not null, filler text not null, key (op));
  create trigger credit after insert on deposit for each row
    update account set balance = balance + new.amount where id = new.ref;
  create trigger alert after insert on message for each row insert into notice (ref) values (new.ref);
`;

const range = (length: number) => Array.from({ length }, (_, index) => index);

/** MariaDB: the processes that die are clients; the server rolls back what they held. */
export const mysqlBackend: Backend = mysqlOn(() => freshDatabase());

/** The same on a separate server: child processes find it by the folder. */
export function mysqlOn(createDatabase: () => Promise<MariadbDatabase>): Backend {
  return {
    name: 'mysql',
    // The marker is in the branch before the branch is ended and committed.
    blocksAt: ['adapter:marker-written', 'adapter:void-written'],

    async create(folder, operations) {
      const settings = { relations: RELATIONS };
      const made = await protectedMariadb(SCHEMA, settings, await createDatabase());
      const { db, options, control } = made;
      const accounts = ['em_exec', 'em_control', 'em_owner'].map((name) => db.unique(name));
      const place: Place = { database: db.name, control, accounts, admin: db.url(), options };
      writeFileSync(join(folder, FILE), JSON.stringify(place));
      await run(folder, initialRows(operations));
    },

    outside: {
      async reset(folder, operations) {
        const { accounts, control } = readPlace(folder);
        const [exec, trusted] = accounts;
        const sessions = await run(
          folder,
          `select id from information_schema.processlist where user in ('${exec}', '${trusted}')`,
        );
        // One that ended meanwhile is what is wanted.
        for (const { id } of sessions) await run(folder, `kill ${id}`).catch(() => {});
        await run(
          folder,
          `${RELATIONS.map((name) => `delete from ${name};`).join(' ')} delete from ${control}.marker;
            delete from ${control}.record; ${initialRows(operations)}`,
        );
      },
      async remove(folder) {
        if (!existsSync(join(folder, FILE))) return;
        const { database, control, accounts } = readPlace(folder);
        await run(folder, `drop database ${control}; drop database ${database}`);
        const hosts = await run(
          folder,
          `select concat('''', user, '''@''', host, '''') as name from mysql.user where user in (${accounts.map((name) => `'${name}'`).join(', ')})`,
          '',
        );
        await run(folder, `drop user ${hosts.map(({ name }) => name).join(', ')}`, '');
      },
    },

    factory: (folder) => mysql(readPlace(folder).options),

    plan({ n, kind }) {
      const amount = amountOf(n);
      const entry = { sql: 'insert into entry (ref, amount) values (?, ?)', values: [n, amount] };
      switch (kind) {
        case 'append':
          return {
            effects: [insert('entry', { id: generated('entry'), ref: n, amount })],
            action: entry,
          };
        case 'derive':
          return {
            effects: [
              insert('deposit', { ref: n, amount }),
              update('account', { id: n }, { balance: [100, 100 + amount] }),
            ],
            action: { sql: 'insert into deposit (ref, amount) values (?, ?)', values: [n, amount] },
          };
        case 'bulk':
          return {
            effects: range(SHEETS).map((index) =>
              update('sheet', { id: sheetId(n, index) }, { mark: [0, 1] }),
            ),
            action: { sql: 'update sheet set mark = mark + 1 where op = ?', values: [n] },
          };
        case 'surprise':
          return {
            effects: [insert('message', { ref: n, body: 'paid' })],
            action: { sql: 'insert into message (ref, body) values (?, ?)', values: [n, 'paid'] },
          };
        case 'failing':
          return {
            effects: [insert('entry', { id: generated('entry'), ref: n, amount })],
            action: {
              statements: [
                entry,
                { sql: 'insert into entry (ref, amount) values (?, -1)', values: [n] },
              ],
            },
          };
      }
    },

    async readState(folder) {
      const rows = await run(
        folder,
        `select concat_ws(' ', 'account', id, balance) as line from account
          union all select concat_ws(' ', 'entry', ref, amount) from entry
          union all select concat_ws(' ', 'deposit', ref, amount) from deposit
          union all select concat_ws(' ', 'message', ref, body) from message
          union all select concat_ws(' ', 'notice', ref) from notice
          union all select concat_ws(' ', 'sheet', id, op, mark, length(filler)) from sheet
          union all select concat_ws(' ', 'unmarked', occurrence) from ${readPlace(folder).control}.stage
          order by line`,
      );
      return rows.map(({ line }) => String(line));
    },

    expectState: (operations, committed) =>
      operations.flatMap((operation) => linesAfter(operation, committed.has(operation.n))),

    async readMarkers(folder) {
      const { control } = readPlace(folder);
      const rows = await run(
        folder,
        `select occurrence, disposition, text from ${control}.marker order by occurrence`,
      );
      return rows.map(({ occurrence, disposition, text }) => {
        const { execution } = JSON.parse(String(text)) as StoredMarker;
        return { occurrence: String(occurrence), disposition: String(disposition), execution };
      });
    },

    async falsify(folder, { n, kind }) {
      const sql = {
        append: `delete from entry where ref = ${n}`,
        derive: `update account set balance = balance + 1 where id = ${n}`,
        bulk: `update sheet set mark = 0 where id = ${sheetId(n, SHEETS - 1)}`,
        surprise: `insert into notice (ref) values (${n})`,
        failing: `insert into entry (ref, amount) values (${n}, 1)`,
      }[kind];
      await run(folder, sql);
    },

    async loseMarker(folder, occurrence) {
      const { control } = readPlace(folder);
      await run(folder, `delete from ${control}.marker where occurrence = '${occurrence}'`);
    },
  };
}

function readPlace(folder: string): Place {
  return JSON.parse(readFileSync(join(folder, FILE), 'utf8')) as Place;
}

/** Statements of root, on a connection that shares nothing with the adapter. */
async function run(
  folder: string,
  sql: string,
  database = readPlace(folder).database,
): Promise<readonly Record<string, unknown>[]> {
  const uri = readPlace(folder).admin.replace(/[^/]*$/, database);
  const connection = await createConnection({ uri, multipleStatements: true });
  try {
    const [result] = await connection.query(sql);
    return Array.isArray(result) ? (result as readonly Record<string, unknown>[]) : [];
  } finally {
    connection.destroy();
  }
}
