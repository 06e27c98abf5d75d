import { after } from 'node:test';
import type { MysqlOptions } from '../../src/adapters/mysql/index.ts';
import { insert, read, update } from '../../src/protocol/draft.ts';
import type { AdapterKit } from '../../src/testing/index.ts';
import { type ProtectedMariadb, protectedMariadb } from '../mysql/protected.ts';

const SCHEMA = `
  create table invoice (id int primary key, status varchar(20) not null, amount decimal(10, 2) not null);
  create table audit (id int primary key, invoice int not null, text varchar(20) not null);
  create trigger paid after update on invoice for each row
    if new.status = 'paid' then insert ignore into audit values (new.id, new.id, 'paid'); end if;
`;

/** A database with a trigger, so that an action leaves more than its statement says. */
export function mysqlKit(settings: Partial<MysqlOptions> = {}): AdapterKit {
  const idle: ProtectedMariadb[] = [];
  const all: ProtectedMariadb[] = [];
  after(async () => {
    for (const database of all) await database.db.drop();
  });
  const create = async () => {
    const relations = ['invoice', 'audit'];
    const made = await protectedMariadb(SCHEMA, { relations, lockTimeoutMs: 1000, ...settings });
    all.push(made);
    return made;
  };
  return {
    async fresh() {
      const database = idle.pop() ?? (await create());
      const { db, control, factory } = database;
      await db.run(`delete from invoice; delete from audit; delete from ${control}.marker;
        delete from ${control}.probe;
        insert into invoice values (1, 'pending', 35), (2, 'pending', 70)`);
      const pay = { sql: "update invoice set status = 'paid' where id = ?", values: [1] };
      const note = { sql: "update invoice set status = 'late' where id = 2" };
      return {
        factory: factory(),
        readDurable: async () => ({
          invoice: await db.run('select * from invoice order by id'),
          audit: await db.run('select * from audit order by id'),
        }),
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
        close: async () => {
          idle.push(database);
        },
      };
    },
  };
}
