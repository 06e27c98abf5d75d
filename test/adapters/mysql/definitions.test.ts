// Goal: a survey reads definitions again whenever one may have changed, in whatever way it was
// changed, and only then. Method: a real server; definitions are changed between and during surveys.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createConnection } from 'mysql2/promise';
import { systemClock } from '../../../src/contract/clock.ts';
import { unobserved } from '../../../src/contract/steps.ts';
import { to, update } from '../../../src/index.ts';
import { skipWithoutMariadb } from '../../mysql/binaries.ts';
import { type MariadbOffice, openMariadbOffice } from '../../mysql/office.ts';
import { type MariadbServer, startServer } from '../../mysql/server.ts';

const SCHEMA = `
  create table t (id int primary key, v int not null); insert into t values (1, 0);
  create table hidden (id int primary key);
  create function act() returns int return 1;
  create procedure widen() alter table t add column (by_procedure int);
  create view seen as select * from t;
  create trigger noted after update on t for each row set @a = (select act() from seen limit 1);
`;

const CONTEXT = { name: 'db', clock: systemClock, reached: unobserved };

/** Ways to change something that a certificate rests on. */
const CHANGES: readonly string[] = [
  'alter table t add column (plain int)',
  "execute immediate 'alter table t add column (dynamic int)'",
  "prepare p from 'alter table t add column (prepared int)'; execute p",
  'call widen()',
  'begin not atomic alter table t add column (compound int); end',
  'set statement max_statement_time = 9 for alter table t add column (stated int)',
  'rename table t to other; create table t like other',
  'drop trigger noted',
  'create trigger again before update on t for each row set new.v = act()',
  'create or replace function act() returns int return 2',
  "update mysql.proc set body_utf8 = 'return 3' where name = 'act'",
  'create or replace view seen as select 1 as id; create or replace trigger again before update on t for each row set new.v = (select id from seen)',
  'create or replace view seen as select 2 as id',
  'alter table t add constraint own foreign key (v) references t (id) on delete cascade',
  'create index more on t (v)',
  'create or replace procedure {control}.observe() select 1',
  'grant select on hidden to {exec}',
  'revoke select on t from {exec}',
  "set global init_connect = 'select 1'",
];

describe('MariaDB: definitions', { skip: skipWithoutMariadb() }, () => {
  let server: MariadbServer;
  const open = async (): Promise<MariadbOffice> =>
    await openMariadbOffice(SCHEMA, { relations: ['t'] }, await server.createDatabase());
  before(async () => {
    server = await startServer();
  });
  after(() => server.stop());

  test('whatever changes a definition, a right or a setting changes the next survey', async () => {
    await using office = await open();
    const { db, control, runtime } = office;
    let known = await runtime.survey('db');
    assert.equal((await runtime.survey('db')).configuration, known.configuration);
    for (const change of CHANGES) {
      const sql = change.replace('{control}', control).replace('{exec}', db.unique('em_exec'));
      await db.run(sql);
      const now = await runtime.survey('db');
      assert.notEqual(now.configuration, known.configuration, sql);
      known = now;
    }
    await db.run('set global init_connect = default');
  });

  test('definitions are read once while none changes', async () => {
    await using office = await open();
    await office.runtime.survey('db');
    const read = async () =>
      (await office.db.run("show global status like 'Com_show_create_table'"))[0]?.Value;
    const once = await read();
    await office.db.run('update t set v = 1; create temporary table x (id int)');
    await office.runtime.survey('db');
    assert.equal(await read(), once);
  });

  test('a definition that is being changed while it is read is not kept', async () => {
    await using office = await open();
    const [reader, owner] = [
      await createConnection(office.db.url()),
      await createConnection(office.db.url()),
    ];
    await reader.query('start transaction');
    await reader.query('select * from t');
    // Counted by the server, and waiting for the reader.
    const altering = owner.query('alter table t add column (late int)');
    const waits = "select 1 from information_schema.processlist where state like 'Waiting for%'";
    while ((await office.db.run(waits)).length === 0);
    const during = await office.runtime.survey('db');
    await reader.query('commit');
    await altering;
    const afterwards = await office.runtime.survey('db');
    assert.notEqual(afterwards.configuration, during.configuration);
    for (const connection of [reader, owner]) connection.destroy();
  });

  test('a table or right that changes after the approval stops the run, with what changed', async () => {
    await using office = await open();
    const effects = [update('t', { id: 1 }, { v: to(7) })];
    const action = { sql: 'update t set v = 7 where id = 1' };
    const license = await office.approve(effects);
    await office.db.run(`grant delete on hidden to ${office.db.unique('em_exec')}`);
    const stopped = await office.runtime.execute(license, action);
    assert.ok(stopped.kind === 'rejected');
    assert.deepEqual([stopped.at, stopped.reason], ['boundary', 'outlet-unclassified']);
    assert.match(stopped.detail, /DELETE ON .*hidden/);
    assert.deepEqual(await office.db.run('select v from t'), [{ v: 0 }]);

    const adapter = await office.factory().open(CONTEXT);
    const before = await adapter.survey();
    await office.db.run('alter table t add key more (v); drop trigger noted');
    const changes = await adapter.explainChange?.(before, await adapter.survey());
    await adapter.close();
    assert.match(changes?.find((line) => line.startsWith('relation t:')) ?? '', /KEY `more`/);
    assert.ok(changes?.some((line) => /^trigger .*\.noted: there → gone$/.test(line)));
  });
});
