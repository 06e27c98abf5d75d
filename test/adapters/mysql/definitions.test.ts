// Goal: a survey reads definitions again whenever one may have changed, in whatever way it was
// changed, and only then. Method: a real server; definitions are changed between and during surveys.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createConnection } from 'mysql2/promise';
import { readOptions } from '../../../src/adapters/mysql/options.ts';
import { ExecutionSessions } from '../../../src/adapters/mysql/sessions.ts';
import type { PromotableAdapter } from '../../../src/contract/adapter.ts';
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

  test('while no definition changes, definitions and grants are read once, and sessions are kept', async () => {
    await using office = await open();
    await using watcher = await createConnection(office.db.url());
    const write = async (v: number) => {
      const action = { sql: 'update t set v = ? where id = 1', values: [v] };
      const terminal = await office.run([update('t', { id: 1 }, { v: to(v) })], action);
      assert.equal(terminal.kind, 'committed');
    };
    await write(1);
    await write(2);
    const COUNTED = ['Com_show_create_table', 'Com_show_grants', 'Connections'];
    const read = async () => {
      const names = COUNTED.map((name) => `'${name}'`).join(', ');
      return (await watcher.query(`show global status where variable_name in (${names})`))[0];
    };
    const once = await read();
    await watcher.query('update t set v = 1');
    await watcher.query('create temporary table x (id int)');
    await office.runtime.survey('db');
    await write(3);
    assert.deepEqual(await read(), once);
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

  test('a session that serves another candidate knows nothing of the one before', async () => {
    await using office = await open();
    const sessions = new ExecutionSessions(office.options.execution, readOptions(office.options));
    const first = await sessions.take();
    const { connection: used } = first;
    await used.query("set @secret = 'x', session sql_mode = '', session insert_id = 77");
    await used.query("select get_lock('of the first', 0), last_insert_id(41)");
    sessions.giveBack(first);
    await assert.rejects(used.query('select 1'), /the connection was lost/);

    const { connection, variables } = await sessions.take();
    assert.equal(connection.thread, used.thread);
    assert.equal(variables, first.variables);
    const read = "select @secret, is_free_lock('of the first'), last_insert_id()";
    assert.deepEqual(await connection.texts(read), [[null, '1', '0']]);
    connection.close();
    await sessions.close();
  });

  test('a control account that cannot see all definitions is open, and is not believed until it logs in again', async () => {
    await using office = await open();
    const { db, runtime, factory } = office;
    const control = db.unique('em_control');
    // A table in another database: what reaches it is refused only if it can be seen.
    const other = db.unique('other');
    await db.run(`create database ${other}; create table ${other}.loose (id int) engine = myisam;
      create or replace trigger noted after update on t for each row insert into ${other}.loose values (1)`);
    const openOf = async (from: Pick<typeof runtime, 'survey'>) =>
      (await from.survey('db')).outlets
        .filter(({ disposition }) => disposition === 'unclassified')
        .map(({ outlet }) => outlet);
    const code = `trigger ${db.name}.noted`;
    assert.deepEqual(await openOf(runtime), [code]);
    for (const right of ['select', 'show view', 'trigger', 'process']) {
      await db.run(`revoke ${right} on *.* from ${control}`);
      const name = `right ${right.toUpperCase()} ON *.* of the control account`;
      assert.ok((await openOf(runtime)).includes(name), right);
      await db.run(`grant ${right} on *.* to ${control}`);
      assert.deepEqual(await openOf(runtime), [code], right);
    }
    // Another adapter opens while the account sees the databases that it needs, and no others.
    await db.run(`revoke select, show view, trigger on *.* from ${control};
      grant select on mysql.* to ${control};
      grant select, show view, trigger on ${db.name}.* to ${control};
      grant trigger on ${office.control}.* to ${control}`);
    const adapter = (await factory().open(CONTEXT)) as PromotableAdapter;
    const blind = { survey: async () => await adapter.survey() };
    assert.deepEqual(
      await openOf(blind),
      ['SELECT', 'SHOW VIEW', 'TRIGGER'].map((one) => `right ${one} ON *.* of the control account`),
    );
    await db.run(`grant select, show view, trigger on *.* to ${control}`);
    assert.deepEqual(await openOf(blind), [code]);
    await adapter.close();
  });

  test('a session that was opened while the account had more rights serves no candidate', async () => {
    await using office = await open();
    const exec = office.db.unique('em_exec');
    const settings = readOptions(office.options);
    const sessions = new ExecutionSessions(office.options.execution, settings);
    const grants = `on ${office.db.name}.*`;
    await office.db.run(`grant insert ${grants} to ${exec}`);
    for (const first of [await sessions.take(), await sessions.take()]) first.connection.close();
    await office.db.run(`revoke insert ${grants} from ${exec}`);
    sessions.forget();
    const { connection } = await sessions.take();
    await assert.rejects(connection.query('insert into hidden values (7)'), /denied/);
    connection.close();
    await sessions.close();

    // A runtime does the same whenever a right may have changed.
    const effects = [update('t', { id: 1 }, { v: to(3) })];
    await office.run(effects, { sql: 'update t set v = 3 where id = 1' });
    const read = `select id from information_schema.processlist where user = '${exec}'`;
    const before = await office.db.run(read);
    await office.db.run(`grant insert ${grants} to ${exec}; revoke insert ${grants} from ${exec}`);
    await office.runtime.survey('db');
    const kept = new Set(before.map(({ id }) => id));
    while ((await office.db.run(read)).some(({ id }) => kept.has(id))) await sleep(20);
    assert.ok(before.length > 1);
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

  test('a right that is granted while a candidate is held stops it at the final gate', async () => {
    await using office = await open();
    const license = await office.approve([update('t', { id: 1 }, { v: to(7) })]);
    await using owner = await createConnection(office.db.url());
    await owner.beginTransaction();
    await owner.query('update t set v = v where id = 1');
    const executing = office.runtime.execute(license, { sql: 'update t set v = 7 where id = 1' });
    const waits =
      "select 1 from information_schema.processlist where info like 'update t set v = 7%'";
    while ((await office.db.run(waits)).length === 0) await sleep(20);
    await office.db.run(`grant delete on hidden to ${office.db.unique('em_exec')}`);
    await owner.rollback();
    const stopped = await executing;
    assert.ok(stopped.kind === 'rejected', JSON.stringify(stopped));
    assert.deepEqual([stopped.at, stopped.reason], ['final-gate', 'boundary-changed']);
    assert.match(stopped.detail, /DELETE ON .*hidden/);
    assert.deepEqual(await office.db.run('select v from t'), [{ v: 0 }]);
  });
});
