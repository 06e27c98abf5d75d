import { after } from 'node:test';
import { insert, read, update } from '../../src/protocol/draft.ts';
import type { AdapterKit } from '../../src/testing/index.ts';
import { type ProtectedDatabase, protectedDatabase } from '../postgres/protected.ts';
import type { Version } from '../postgres/server.ts';

const SCHEMA = `
  create table invoice (id integer primary key, status text not null, amount numeric(10, 2) not null);
  create table audit (id integer primary key, invoice integer not null, text text not null);
  create function note() returns trigger language plpgsql as $$ begin
    insert into audit (id, invoice, text) values (new.id, new.id, 'paid') on conflict do nothing;
    return null;
  end $$;
  create trigger paid after update of status on invoice for each row when (new.status = 'paid') execute function note();
`;

/** Databases are slow to make, so one that is given back is emptied and used again. */
const FIRST_STATE = `
  truncate invoice, audit, effectmatch.marker, effectmatch.record, effectmatch.probe;
  insert into invoice values (1, 'pending', 35), (2, 'pending', 70);
`;

/** A database with a trigger, so that an action leaves more than its statement says. */
export function postgresKit(
  isolation: 'read committed' | 'serializable',
  version?: Version,
): AdapterKit {
  const idle: ProtectedDatabase[] = [];
  const all: ProtectedDatabase[] = [];
  after(async () => {
    for (const database of all) await database.db.drop();
  });
  const create = async () => {
    const relations = ['invoice', 'audit'];
    const made = await protectedDatabase(
      SCHEMA,
      { relations, isolation, lockTimeoutMs: 500 },
      version === undefined ? {} : { version },
    );
    all.push(made);
    return made;
  };
  return {
    async fresh() {
      const database = idle.pop() ?? (await create());
      const { db, factory } = database;
      await db.run(FIRST_STATE);
      const pay = { sql: "update invoice set status = 'paid' where id = $1", values: [1] };
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
          statements: [pay, { sql: 'insert into invoice values (2, $1, 1)', values: ['pending'] }],
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
