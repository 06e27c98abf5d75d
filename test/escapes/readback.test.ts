// Goal: nothing that outlives a transaction escapes the reading that judges the escapes. Method: a
// superuser does one thing of each kind; the reading before and after it must name exactly that.
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import pg from 'pg';
import { insert, update } from '../../src/protocol/draft.ts';
import { startServer } from '../postgres/server.ts';
import { unapprovedChanges } from './durable.ts';
import { readDurable } from './readback.ts';
import { listenFor, openMessageWatch } from './signals.ts';

const SCHEMA = `create schema effectmatch; create table effectmatch.marker (disposition text);
  create table kept (id int primary key, what text); insert into kept values (1, 'a');
  create table drawn (id serial primary key); create sequence free; create role somebody`;

/** What is done, and what the reading must call it. */
const ACTS: readonly (readonly [sql: string, named: RegExp])[] = [
  [`update kept set what = 'b'`, /^public\.kept has .*"b".*; public\.kept lacks .*"a"/],
  [`select nextval('free')`, /^sequence public\.free went from 1 to 1\+$/],
  [`select setval('drawn_id_seq', 5); select setval('drawn_id_seq', 2)`, /^$/],
  [`select setval('drawn_id_seq', 1)`, /^sequence public\.drawn_id_seq went from 2\+ to 1\+$/],
  [`create function f() returns int language sql as 'select 1'`, /catalogue pg_proc changed/],
  ['create table fresh ()', /table public\.fresh is new/],
  ['grant pg_monitor to somebody', /catalogue pg_auth_members changed/],
  [`alter role somebody set work_mem = '8MB'`, /catalogue pg_db_role_setting changed/],
  ['select lo_create(4711)', /catalogue pg_largeobject_metadata changed/],
  [`copy kept to '{scratch}/leak'`, /^file leak changed$/],
  [`select pg_create_physical_replication_slot('leak')`, /^replication slots changed$/],
  ['alter system set log_min_messages = error', /^file postgresql\.auto\.conf changed$/],
  [
    `begin; insert into kept values (9, 'z'); prepare transaction 'leak'`,
    /^prepared transactions changed$/,
  ],
  [`insert into effectmatch.marker values ('committed')`, /^1 markers say committed instead of 0$/],
];

test('every kind of durable change is read back and named', async () => {
  await using server = await startServer({
    settings: { max_prepared_transactions: '2', wal_level: 'logical', autovacuum: 'off' },
  });
  const scratch = join(server.folder, 'scratch');
  mkdirSync(scratch);
  chmodSync(scratch, 0o777);
  await using db = await server.createDatabase();
  await db.run(SCHEMA);
  const here = new pg.Client({ connectionString: db.url() });
  const elsewhere = new pg.Client({ connectionString: server.adminUrl });
  await here.connect();
  await elsewhere.connect();
  try {
    const scene = {
      here,
      elsewhere,
      data: join(server.folder, 'data'),
      scratch,
      registered: ['drawn'],
      residue: [],
    };
    let before = await readDurable(scene);
    for (const [sql, named] of ACTS) {
      await db.run(sql.replace('{scratch}', scratch));
      const after = await readDurable(scene);
      assert.match(unapprovedChanges(before, after).join('; '), named, sql);
      before = after;
    }
    await elsewhere.query('create table next_door ()');
    assert.match(
      unapprovedChanges(before, await readDurable(scene)).join('; '),
      /table elsewhere: public\.next_door is new/,
    );
    await elsewhere.query('drop table next_door');
    await db.run(`rollback prepared 'leak'`);

    before = await readDurable(scene);
    await db.run(
      `update kept set what = 'c' where id = 1; insert into effectmatch.marker values ('committed')`,
    );
    const after = await readDurable(scene);
    const approved = [update('public.kept', { id: 1 }, { what: ['b', 'c'] })];
    assert.deepEqual(unapprovedChanges(before, after, approved), []);
    assert.equal(
      unapprovedChanges(before, after, [...approved, insert('public.kept', { id: 2, what: 'x' })])
        .length,
      1,
    );

    const heard = await listenFor(here, {
      name: 'notify other',
      action: null,
      approved: [],
      expectation: { kind: 'committed' },
    });
    const messages = await openMessageWatch(elsewhere);
    await db.run(`begin; select pg_logical_emit_message(false, 'leak', 'x'); rollback`);
    await db.run('notify other');
    assert.match((await messages.sent()).join(), /leak/);
    await here.query('select 1');
    assert.deepEqual(heard, ['other']);
  } finally {
    await here.end();
    await elsewhere.end();
  }
});
