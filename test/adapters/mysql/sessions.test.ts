// Goal: a session that trusted statements share in one message still takes one agent statement at a
// time, shows every change of a variable, and forgets it with the next login. Method: a real server,
// each variable changed in turn.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { MysqlConnection, textsOf } from '../../../src/adapters/mysql/connection.ts';
import {
  ControlAccount,
  parseVariables,
  readVariables,
} from '../../../src/adapters/mysql/sessions.ts';
import { skipWithoutMariadb } from '../../mysql/binaries.ts';
import { freshDatabase, startServer } from '../../mysql/server.ts';

/** A value of each watched variable that a new session does not have. */
const OTHER = {
  sql_mode: "'ANSI'",
  time_zone: "'+03:00'",
  foreign_key_checks: '0',
  unique_checks: '0',
  check_constraint_checks: '0',
  autocommit: '0',
  tx_isolation: "'SERIALIZABLE'",
  tx_read_only: '1',
  character_set_client: 'latin1',
  collation_connection: 'latin1_bin',
  character_set_results: 'null',
  sql_select_limit: '18446744073709551614',
  sql_safe_updates: '1',
  sql_log_bin: '0',
  old_mode: "'NO_PROGRESS_INFO'",
  innodb_lock_wait_timeout: '77',
  max_statement_time: '55.5',
  idle_transaction_timeout: '44',
  insert_id: '99',
  auto_increment_increment: '3',
  auto_increment_offset: '2',
  explicit_defaults_for_timestamp: '0',
  default_storage_engine: 'Aria',
  div_precision_increment: '9',
  skip_replication: '1',
  big_tables: '1',
  system_versioning_asof: "'2020-01-01 00:00:00'",
  system_versioning_insert_history: '1',
  lc_time_names: "'de_DE'",
  timestamp: '1000',
};

test('MariaDB: an answer that lacks a variable is not compared', () => {
  const names = Object.keys(OTHER);
  const answer = (values: readonly string[]) => [
    [Buffer.from(values.join('\x1f')), Buffer.from('7')],
  ];
  const { variables, atMs } = parseVariables(answer(names));
  assert.deepEqual([variables.split(' ').length, atMs], [names.length, 7000]);
  for (const rows of [undefined, [], answer(names.slice(1)), answer([...names, 'more'])])
    assert.throws(() => parseVariables(rows), /shows every variable/);
});

/** Ignores the rows of a statement. */
const NO_ROWS = { begin: () => {}, add: () => {} };

describe('MariaDB: sessions', { skip: skipWithoutMariadb() }, () => {
  test('a session is closed after more rows than asked for, and only then', async () => {
    await using db = await freshDatabase();
    await using session = await MysqlConnection.open(db.url(), 10_000);
    let added = 0;
    const rows = { begin: () => {}, add: () => (added += 1) };
    const select = async (count: number) => {
      added = 0;
      const ran = await session.select(`select seq from seq_1_to_${count}`, [], rows, 10);
      return [ran.kind === 'ran' && ran.rows, added, session.isAlive];
    };
    assert.equal((await session.select('do 1', [], rows, 10)).kind, 'ran');
    assert.deepEqual(await select(10), [10, 10, true]);
    // It would take minutes to read all of these, and the server would send them for as long.
    const { thread } = session;
    assert.deepEqual(await select(4_000_000_000), [11, 10, false]);
    const open = `select id from information_schema.processlist where id = ${thread}`;
    while ((await db.run(open)).length > 0) await sleep(20);
  });

  test('who waits for an answer is told at once that the session was closed', async () => {
    await using db = await freshDatabase();
    await using session = await MysqlConnection.open(db.url(), 300_000);
    const waiting = assert.rejects(session.query('select sleep(200)'), /the connection was lost/);
    session.close();
    await waiting;
    await assert.rejects(session.query('do 1'), /the connection was lost/);
  });

  test('rows of an agent statement are passed on as they arrive, and not kept', async () => {
    await using db = await freshDatabase();
    await using session = await MysqlConnection.open(db.url(), 60_000);
    const begun: boolean[] = [];
    let [count, most] = [0, 0];
    const before = process.memoryUsage().heapUsed;
    const add = () => {
      count += 1;
      if (count % 1000 === 0) most = Math.max(most, process.memoryUsage().heapUsed - before);
    };
    const rows = { begin: (returnsRows: boolean) => begun.push(returnsRows), add };
    const sql = "select repeat('x', 1000) as text from seq_1_to_400000";
    assert.deepEqual(await session.execute(sql, [], rows), { kind: 'ran', rows: 400_000 });
    assert.deepEqual(await session.execute('do 1', [], rows), { kind: 'ran', rows: undefined });
    assert.deepEqual([count, begun], [400_000, [true, false]]);
    assert.ok(most < 200e6, `${Math.round(most / 1e6)} MB for rows of 400 MB`);
  });

  test('a control session has no time limit from the server', async () => {
    await using server = await startServer();
    const db = await server.createDatabase();
    await db.run('set global max_statement_time = 7');
    const control = new ControlAccount(db.url());
    const connection = await control.connection();
    assert.deepEqual(await connection.texts('select @@max_statement_time'), [['0.000000']]);
    await control.close();
  });

  test('every change of a watched variable is seen, and ends with the next login', async () => {
    await using db = await freshDatabase();
    await using sessions = new AsyncDisposableStack();
    const logIn = async (earlier: MysqlConnection) => sessions.use(await earlier.logInAgain());
    // The first login of a session has other SQL modes than all later ones.
    let session = await logIn(await MysqlConnection.open(db.url(), 10_000));
    const { variables: began } = await readVariables(session);
    for (const [name, value] of Object.entries(OTHER)) {
      await session.query(`set session ${name} = ${value}`);
      const { variables } = await readVariables(session);
      const shown = name === 'timestamp' ? 'clock=0' : `${name}=`;
      const changed = variables.split(' ').filter((part) => !began.split(' ').includes(part));
      assert.ok(
        changed.some((part) => part.startsWith(shown)),
        `${name}: ${changed}`,
      );
      session = await logIn(session);
      assert.equal((await readVariables(session)).variables, began, `${name} after a login`);
    }
  });

  const ACCEPTED = ['one statement', 'several statements'] as const;

  test('several statements give the same results together and one by one', async () => {
    await using db = await freshDatabase();
    for (const accepted of ACCEPTED) {
      await using session = await MysqlConnection.open(db.url(), 10_000, accepted);
      await session.query('create or replace procedure two() begin select 2; select null; end');
      const results = await session.queryAll(['select 1', 'do 0', 'call two()', 'select 3']);
      assert.deepEqual(results.map(textsOf), [[['1']], [['2']], [[null]], [['3']]], accepted);
      const none = await session.queryAll(['select 1 from dual where false', 'do 0']);
      assert.deepEqual(none, [[]], accepted);
    }
  });

  test('a session for agent statements accepts one statement in a message', async () => {
    await using db = await freshDatabase();
    await using session = await MysqlConnection.open(db.url(), 10_000);
    await assert.rejects(session.query('select 1; select 2'), { number: 1064 });
  });

  test('a text of several statements is not prepared, whatever the session accepts', async () => {
    await using db = await freshDatabase();
    await using session = await MysqlConnection.open(db.url(), 10_000, 'several statements');
    for (const text of ['select 1; select 2', 'select 1; xa recover', 'select 1;\nselect 2;']) {
      await assert.rejects(session.parse(text), { number: 1064 });
      await assert.rejects(session.execute(text, [], NO_ROWS), { number: 1064 });
      await assert.rejects(session.select(text, [], NO_ROWS, 10), { number: 1064 });
    }
  });

  test('none of several statements is run after one that fails', async () => {
    await using db = await freshDatabase();
    for (const accepted of ACCEPTED) {
      await using session = await MysqlConnection.open(db.url(), 10_000, accepted);
      await session.query('create or replace table t (id int primary key)');
      const failing = ['insert into t values (1)', 'insert into t values (1)', 'delete from t'];
      await assert.rejects(session.queryAll(failing), { number: 1062 });
      assert.deepEqual(await session.texts('select id from t'), [['1']], accepted);
    }
  });

  test('a question that comes again is answered anew', async () => {
    await using db = await freshDatabase();
    await using session = await MysqlConnection.open(db.url(), 10_000, 'several statements');
    await session.query('create table t (id int primary key)');
    const long = `select group_concat(id order by id) from t where id >= 0 ${'and id < 1000 '.repeat(9)}`;
    const ask = async () => (await session.queryAgain([long, 'select 7'])).map(textsOf);
    assert.deepEqual(await ask(), [[[null]], [['7']]]);
    await session.query('insert into t values (1), (2)');
    assert.deepEqual(await ask(), [[['1,2']], [['7']]]);
    await session.query('drop table t');
    await assert.rejects(ask(), { number: 1146 });
    await session.query('create table t (id int primary key, v int)');
    assert.deepEqual(await ask(), [[[null]], [['7']]]);
  });
});
