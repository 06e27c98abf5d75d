import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sqlite } from '../../../src/adapters/sqlite/index.ts';
import { generated, insert, update } from '../../../src/protocol/draft.ts';
import type { Backend, OperationShape, StoredMarker } from './backend.ts';

const FILE = 'business.db';
const RELATIONS = ['account', 'entry', 'deposit', 'message', 'notice', 'sheet'];
/**
 * Rows of nearly a page each, so that a `bulk` commit writes many pages and takes long enough to be
 * cut in two.
 */
const SHEETS = 24;

const SCHEMA = `
  create table account (id integer primary key not null, balance integer not null);
  create table entry (id integer primary key autoincrement not null, ref integer not null, amount integer not null check (amount > 0));
  create table deposit (ref integer primary key not null, amount integer not null);
  create table message (ref integer primary key not null, body text not null);
  create table notice (id integer primary key not null, ref integer not null);
  create table sheet (id integer primary key not null, op integer not null, mark integer not null, filler text not null);
  create trigger credit after insert on deposit begin
    update account set balance = balance + new.amount where id = new.ref;
  end;
  create trigger alert after insert on message begin
    insert into notice (ref) values (new.ref);
  end;
`;

const amountOf = (n: number) => 10 + n;
const sheetId = (n: number, index: number) => n * 1000 + index;
const range = (length: number) => Array.from({ length }, (_, index) => index);

/**
 * SQLite in one journal mode: what a crash leaves behind, a log or a hot journal, differs between
 * the two.
 */
export function sqliteBackend(journal: 'wal' | 'delete'): Backend {
  return {
    name: `sqlite-${journal}`,
    // SQLite has one writer: whoever stages, promotes or voids keeps every other writer out until
    // it ends.
    blocksAt: [
      'adapter:stage-opened',
      'adapter:action-done',
      'path:staged',
      'path:observed',
      'path:permit-bound',
      'path:gate-passed',
      'adapter:marker-written',
      'adapter:void-written',
    ],

    async create(folder, operations) {
      withDatabase(folder, (db) => {
        db.exec(`pragma journal_mode = ${journal}; begin; ${SCHEMA}`);
        const account = db.prepare('insert into account (id, balance) values (?, 100)');
        const sheet = db.prepare('insert into sheet (id, op, mark, filler) values (?, ?, 0, ?)');
        for (const { n, kind } of operations) {
          account.run(n);
          if (kind !== 'bulk') continue;
          for (const index of range(SHEETS)) sheet.run(sheetId(n, index), n, 'x'.repeat(3000));
        }
        db.exec('commit');
      });
    },

    factory: (folder) => sqlite({ file: join(folder, FILE), relations: RELATIONS }),

    plan({ n, kind }) {
      const amount = amountOf(n);
      switch (kind) {
        case 'append':
          return {
            effects: [insert('entry', { id: generated('entry'), ref: n, amount })],
            action: { sql: 'insert into entry (ref, amount) values (?, ?)', values: [n, amount] },
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
              sql: 'insert into entry (ref, amount) values (?, ?), (?, -1)',
              values: [n, amount, n],
            },
          };
      }
    },

    readState: async (folder) =>
      withDatabase(folder, (db) => [
        ...linesOf(db, 'account', 'select id, balance from account'),
        ...linesOf(db, 'entry', 'select ref, amount from entry'),
        ...linesOf(db, 'deposit', 'select ref, amount from deposit'),
        ...linesOf(db, 'message', 'select ref, body from message'),
        ...linesOf(db, 'notice', 'select ref from notice'),
        ...linesOf(db, 'sheet', 'select id, op, mark, length(filler) from sheet'),
        ...linesOf(db, 'integrity', 'pragma integrity_check'),
      ]),

    expectState: (operations, committed) => [
      ...operations.flatMap((operation) => linesAfter(operation, committed.has(operation.n))),
      'integrity ok',
    ],

    readMarkers: async (folder) =>
      withDatabase(folder, (db) =>
        db
          .prepare('select occurrence, disposition, text from effectmatch_marker')
          .all()
          .map(({ occurrence, disposition, text }) => {
            const { execution } = JSON.parse(String(text)) as StoredMarker;
            return { occurrence: String(occurrence), disposition: String(disposition), execution };
          }),
      ),

    async falsify(folder, { n, kind }) {
      const sql = {
        append: 'delete from entry where ref = ?',
        derive: 'update account set balance = balance + 1 where id = ?',
        bulk: 'update sheet set mark = 0 where id = (select max(id) from sheet where op = ?)',
        surprise: 'insert into notice (ref) values (?)',
        failing: 'insert into entry (ref, amount) values (?, 1)',
      }[kind];
      withDatabase(folder, (db) => db.prepare(sql).run(n));
    },

    async loseMarker(folder, occurrence) {
      withDatabase(folder, (db) =>
        db.prepare('delete from effectmatch_marker where occurrence = ?').run(occurrence),
      );
    },
  };
}

function linesAfter({ n, kind }: OperationShape, committed: boolean): readonly string[] {
  const amount = amountOf(n);
  const credited = committed && kind === 'derive';
  const account = `account ${n} ${credited ? 100 + amount : 100}`;
  const mark = committed ? 1 : 0;
  const sheets =
    kind === 'bulk'
      ? range(SHEETS).map((index) => `sheet ${sheetId(n, index)} ${n} ${mark} 3000`)
      : [];
  const written = !committed
    ? []
    : kind === 'append'
      ? [`entry ${n} ${amount}`]
      : credited
        ? [`deposit ${n} ${amount}`]
        : [];
  return [account, ...sheets, ...written];
}

function linesOf(db: DatabaseSync, name: string, sql: string): readonly string[] {
  return db
    .prepare(sql)
    .all()
    .map((row) => [name, ...Object.values(row)].join(' '));
}

function withDatabase<T>(folder: string, use: (db: DatabaseSync) => T): T {
  const db = new DatabaseSync(join(folder, FILE), { timeout: 10_000 });
  try {
    return use(db);
  } finally {
    db.close();
  }
}
