import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sqlite } from '../../src/adapters/sqlite/index.ts';
import { insert, read, update } from '../../src/protocol/draft.ts';
import type { AdapterKit, Specimen } from '../../src/testing/index.ts';

const SCHEMA = `
  create table invoice (id integer primary key, status text not null, amount integer not null);
  create table audit (id integer primary key, invoice integer not null, text text not null);
  create trigger paid after update of status on invoice when new.status = 'paid'
    begin insert into audit (id, invoice, text) values (new.id, new.id, 'paid') on conflict do nothing; end;
  insert into invoice values (1, 'pending', 35), (2, 'pending', 70);
`;

/** A file with a trigger, so that an action leaves more than its statement says. */
export const sqliteKit: AdapterKit = {
  async fresh() {
    const folder = mkdtempSync(join(tmpdir(), 'effectmatch-kit-'));
    const file = join(folder, 'books.db');
    query(file, (db) => db.exec(SCHEMA));
    const pay = { sql: "update invoice set status = 'paid' where id = ?", values: [1] };
    const note = { sql: "update invoice set status = 'late' where id = 2" };
    return {
      factory: sqlite({ file, relations: ['invoice', 'audit'], busyTimeoutMs: 0 }),
      readDurable: async () =>
        query(file, (db) => ({
          invoice: db.prepare('select * from invoice order by id').all(),
          audit: db.prepare('select * from audit order by id').all(),
        })),
      effect: {
        action: pay,
        leaves: [
          update('invoice', { id: 1 }, { status: ['pending', 'paid'] }),
          insert('audit', { id: 1, invoice: 1, text: 'paid' }),
        ],
      },
      extra: { statements: [pay, note] },
      failing: {
        statements: [pay, { sql: 'insert into invoice values (2, ?, 1)', values: ['pending'] }],
      },
      reads: [
        read('invoice', { id: 1 }),
        read('invoice', { id: 2 }, ['amount']),
        read('invoice', { id: 99 }),
      ],
      close: async () => rmSync(folder, { recursive: true }),
    };
  },
};

function query<T>(file: string, work: (db: DatabaseSync) => T): T {
  using db = new DatabaseSync(file);
  return work(db);
}

/** A specimen that is closed at the end of its scope; declare it before what uses it. */
export async function freshSqlite(): Promise<Specimen & AsyncDisposable> {
  const specimen = await sqliteKit.fresh();
  return { ...specimen, [Symbol.asyncDispose]: () => specimen.close() };
}
