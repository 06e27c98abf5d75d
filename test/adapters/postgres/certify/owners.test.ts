// Goal: what the server runs with the rights of a table's owner sends nothing past the comparison.
// Method: a real database in which foreign keys write rows whose checks, defaults and triggers call
// pg_notify, which only the owner may; a listener hears what was committed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { openOffice } from '../office.ts';

const HEARD = (who: string) => `pg_notify('heard', '${who}')::text`;

/** Tables whose rows a foreign key writes, by what runs with the rights of their owner. */
const WRITTEN: Readonly<Record<string, { readonly child: string; readonly sql: string }>> = {
  'a check': {
    child: `create table app.child (id int primary key, parent int references app.parent on update cascade,
      check (${HEARD('check')} is not null))`,
    sql: 'update app.parent set id = 2 where id = 1',
  },
  'a default': {
    child: `create table app.child (id int primary key,
      parent int default length(${HEARD('default')}) references app.parent on delete set default)`,
    sql: 'delete from app.parent where id = 1',
  },
  'a domain': {
    child: `create domain app.heard as int check (${HEARD('domain')} is not null);
      create table app.child (id int primary key, parent app.heard references app.parent on update cascade)`,
    sql: 'update app.parent set id = 2 where id = 1',
  },
  'an operator': {
    child: `create operator app.@@@ (leftarg = text, rightarg = text, function = pg_notify);
      create table app.child (id int primary key, parent int references app.parent on update cascade,
        check ((text 'heard' operator(app.@@@) text 'sign')::text is not null))`,
    sql: 'update app.parent set id = 2 where id = 1',
  },
  'the condition of a trigger': {
    child: `create table app.child (id int primary key, parent int references app.parent on update cascade);
      create trigger told before update on app.child for each row when (${HEARD('when')} is not null)
        execute function suppress_redundant_updates_trigger()`,
    sql: 'update app.parent set id = 2 where id = 1',
  },
  'a trigger of a partition that belongs to a different role': {
    child: `create table app.child (id int primary key, parent int references app.parent on delete cascade)
        partition by range (id);
      create table app.child_low partition of app.child for values from (0) to (10);
      create function app.tell() returns trigger language plpgsql as
        $$ begin perform ${HEARD('trigger')}; return old; end $$;
      create trigger tell before delete on app.child_low for each row execute function app.tell();
      revoke all on function app.tell from public; reset role;
      alter table app.child_low owner to pg_database_owner`,
    sql: 'delete from app.parent where id = 1',
  },
};

for (const [what, { child, sql }] of Object.entries(WRITTEN))
  test(`${what}, run by a foreign key as the owner of the table, cannot send a notification`, async () => {
    await using office = await openOffice(
      `create schema app authorization {app}; grant usage on schema app to public; set role {app};
      create table app.parent (id int primary key); insert into app.parent values (0), (1);
      ${child}; insert into app.child values (1, 1); reset role;`,
      { relations: ['app.parent', 'app.child'] },
    );
    const client = new pg.Client({ connectionString: office.db.url() });
    await client.connect();
    const heard: unknown[] = [];
    client.on('notification', ({ payload }) => heard.push(payload));
    try {
      await client.query('listen heard');
      await assert.rejects(office.planned({ sql }), /permission denied for function pg_notify/);
      await client.query('select');
      assert.deepEqual(heard, []);
    } finally {
      await client.end();
    }
  });
