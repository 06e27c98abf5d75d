// Goal: what the MariaDB adapter cannot protect, or cannot reach, is refused with a clear reason and
// changes nothing. Method: real servers with unsuitable tables, accounts, options and settings.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type MysqlOptions, mysql, planProvisioning } from '../../../src/adapters/mysql/index.ts';
import type { PromotableAdapter } from '../../../src/contract/adapter.ts';
import { systemClock } from '../../../src/contract/clock.ts';
import { unobserved } from '../../../src/contract/steps.ts';
import { approver, createRuntime, generateApprover, update } from '../../../src/index.ts';
import { testKeyring } from '../../keyring.ts';
import { temporaryLedgers } from '../../ledger/temporary.ts';
import { skipWithoutMariadb } from '../../mysql/binaries.ts';
import { protectedMariadb } from '../../mysql/protected.ts';
import { freshDatabase, startServer } from '../../mysql/server.ts';

const CONTEXT = { name: 'db', clock: systemClock, reached: unobserved };
const TABLE = "create table t (id int primary key, v varchar(20)); insert into t values (1, 'old')";
const KEY = generateApprover('approver');

/** Tables that cannot be registered, and the words that say why. */
const UNSUITABLE: Readonly<Record<string, RegExp>> = {
  'create table t (a int)': /no primary key/,
  'create table t (a int primary key) engine = myisam': /engine MyISAM/,
  'create table t (a int primary key) engine = aria': /engine Aria/,
  'create table t (a int primary key) engine = memory': /engine MEMORY/,
  'create view t as select 1 as a': /view/,
  'create sequence t': /sequence/,
  'create table t (a int primary key) with system versioning': /system versioned/,
  'create table t (a int primary key) partition by hash (a) partitions 2': /partitioned/,
  'create table t (a int, s date, e date, period for p (s, e), primary key (a))': /period/,
  'create table t (a text, primary key (a(5)))': /part of a column/,
  'create table t (a double primary key)': /floating-point/,
  'create table t (a int primary key, p point)': /type point/,
  'create table t (a int primary key, s varchar(5) character set sjis)': /character set sjis/,
  "create table t (a int primary key, e enum('', 'x'))": /empty or quoted label/,
  'create table t (a int primary key, x text, fulltext key (x))': /full-text/,
  'create table t (__proto__ int primary key)': /named __proto__/,
  'create table t2 (a int primary key)': /there is no such table.*t2/,
};

/** Settings that new sessions take over. */
const TAKEN_OVER = {
  ...{ autocommit: '0', tx_read_only: '1', sql_select_limit: '3', sql_quote_show_create: '0' },
};

describe('MariaDB: refusals', { skip: skipWithoutMariadb() }, () => {
  test('tables that cannot be observed are refused by provisioning, which changes nothing', async () => {
    await using db = await freshDatabase();
    const options: MysqlOptions = {
      ...{ owner: db.unique('o'), controlDatabase: db.unique('effectmatch'), relations: ['t'] },
      control: db.url(db.unique('c')),
      execution: db.url(db.unique('e')),
    };
    for (const [sql, why] of Object.entries(UNSUITABLE)) {
      await db.run(sql);
      await assert.rejects(planProvisioning(db.url(), options), (error: Error) => {
        assert.match(error.message, why);
        return (error as { code?: string }).code === 'ERR_EM_ADAPTER_REFUSED';
      });
      const [, kind, name] = /^create (\w+) (\w+)/.exec(sql) ?? [];
      await db.run(`drop ${kind} ${name}`);
    }
    const made = await db.run(`select 1 from mysql.user where user = '${db.unique('o')}'`);
    assert.deepEqual(made, []);
  });

  test('a server that cannot be reached is unavailable', async () => {
    const options = { control: 'mysql://c@127.0.0.1:1/d', execution: 'mysql://e@127.0.0.1:1/d' };
    await assert.rejects(mysql({ ...options, relations: ['t'] }).open(CONTEXT), {
      code: 'ERR_EM_ADAPTER_UNAVAILABLE',
    });
    await assert.rejects(mysql({ ...options, relations: [] }).open(CONTEXT), {
      code: 'ERR_EM_ADAPTER_REFUSED',
    });
  });

  test('a database that was not provisioned is refused with the remedy', async () => {
    await using db = await freshDatabase();
    await db.run(TABLE);
    const [control, execution] = [db.unique('c'), db.unique('e')];
    await db.run(
      `create user ${control}; create user ${execution}; grant select on *.* to ${control}`,
    );
    const options = { control: db.url(control), execution: db.url(execution), relations: ['t'] };
    const factory = mysql({ ...options, controlDatabase: db.unique('effectmatch') });
    await assert.rejects(factory.open(CONTEXT), {
      code: 'ERR_EM_ADAPTER_REFUSED',
      message: /not provisioned.*effectmatch provision/,
    });
  });

  test('provisioning can be repeated, printed without secrets, and removed', async () => {
    await using place = await protectedMariadb(TABLE, { relations: ['t'] });
    const { db, options, control } = place;
    const [before] = await db.run(`select backend from ${control}.deployment`);
    const again = await planProvisioning(db.url(), options);
    assert.doesNotMatch(again.print(), /secret of/);
    assert.doesNotMatch(again.print(), /x'[0-9a-f]{128}'/);
    assert.match(again.print(), /identified by '…'/);
    await again.apply();
    assert.deepEqual((await db.run(`select backend from ${control}.deployment`))[0], before);
    const adapter = await place.factory().open(CONTEXT);
    const { outlets } = await adapter.survey();
    assert.deepEqual(
      outlets.filter((one) => one.disposition === 'unclassified'),
      [],
    );
    await adapter.close();

    await db.run(`insert into ${control}.stage values (1, 2, 'occ_lost')`);
    await (await planProvisioning(db.url(), options, 'remove')).apply();
    const kept = await db.run(
      `select table_name from information_schema.tables where table_schema = '${control}' order by 1`,
    );
    assert.deepEqual(
      kept.map(({ table_name: name }) => name),
      ['deployment', 'marker', 'record', 'stage'],
      'a commit without a marker leaves its trace',
    );
    assert.deepEqual((await db.run(`select backend from ${control}.deployment`))[0], before);
    await (await planProvisioning(db.url(), options, 'remove-markers')).apply();
    const left =
      await db.run(`select trigger_name from information_schema.triggers where trigger_schema = '${db.name}'
      union select schema_name from information_schema.schemata where schema_name = '${control}'`);
    assert.deepEqual(left, []);
    await db.run("update t set v = 'by the application'");
    await (await planProvisioning(db.url(), options, 'remove')).apply();
  });

  test('what provisioning prints can be run by hand', async () => {
    await using db = await freshDatabase();
    await db.run(TABLE);
    const options: MysqlOptions = {
      ...{ owner: db.unique('o'), controlDatabase: db.unique('effectmatch'), relations: ['t'] },
      control: db.url(db.unique('c'), 'by hand'),
      execution: db.url(db.unique('e'), 'by hand'),
    };
    const printed = (await planProvisioning(db.url(), options)).print();
    assert.match(printed, /^delimiter \/\/\ncreate or replace definer/m);
    assert.match(
      printed,
      /^grant select, show view, trigger, process on \*\.\* to .*;$/im,
      'no delimiter where none is needed',
    );
    // The server reads code itself; only the client needs a delimiter.
    const sql = printed
      .replace(/^delimiter .*$/gm, '')
      .replace(/ \/\/$/gm, ';')
      .replaceAll('…', 'by hand');
    await db.run(sql);
    const adapter = await mysql(options).open(CONTEXT);
    const { outlets } = await adapter.survey();
    await adapter.close();
    assert.deepEqual(
      outlets.filter((one) => one.disposition === 'unclassified'),
      [],
    );
  });

  test('writes of the application are neither recorded nor stopped', async () => {
    await using place = await protectedMariadb(TABLE, { relations: ['t'] });
    await place.db.run(
      "update t set v = 'direct'; insert into t values (2, 'x'); delete from t where id = 2",
    );
    assert.deepEqual(await place.db.run(`select id from ${place.control}.record`), []);
  });

  test('a statement of 16 MB, too many values and wrong counts are refused and change nothing', async () => {
    await using place = await protectedMariadb(TABLE, { relations: ['t'] });
    await using runtime = await createRuntime({
      store: temporaryLedgers(),
      keyring: testKeyring(),
      issuers: { approver: { key: KEY.publicKey, may: ['db'] } },
      adapters: { db: place.factory() },
    });
    const effects = [update('t', { id: 1 }, { v: ['old', 'new'] })];
    const task = { adapter: 'db', task: 'refusals', planRevision: 1, effects };
    const sign = async () => approver(KEY).sign(await runtime.prepare(task), { expiresIn: '5m' });
    const long = { sql: `select '${'x'.repeat(16 * 1024 * 1024)}'` };
    const many = { sql: 'select 1', values: Array.from({ length: 70_000 }, () => 1) };
    for (const action of [
      long,
      many,
      { sql: 'select 1', value: [] },
      { sql: '' },
      { sql: 'a\0' },
    ]) {
      const terminal = await runtime.execute(await sign(), action);
      assert.equal(terminal.kind === 'rejected' && terminal.at, 'action');
    }
    const few = { sql: 'update t set v = ? where id = ?', values: ['new'] };
    const short = await runtime.execute(await sign(), few);
    assert.match(short.kind === 'rejected' ? short.detail : '', /takes 2 values, but 1 was given/);
    for (const target of ['t2', 'T']) {
      const stray = { ...task, effects: [update(target, { id: 1 }, { v: ['old', 'new'] })] };
      await assert.rejects(runtime.prepare(stray), { code: 'ERR_EM_MANIFEST_INVALID' });
    }
    const column = { ...task, effects: [update('t', { id: 1 }, { w: ['old', 'new'] })] };
    await assert.rejects(runtime.prepare(column), {
      code: 'ERR_EM_MANIFEST_INVALID',
      message: /"w"/,
    });
    const strays = { 'update t set w = 1': 'action-failed', 'update t2 set v = 1': 'denied' };
    for (const [sql, reason] of Object.entries(strays)) {
      const terminal = await runtime.execute(await sign(), { sql });
      assert.equal(terminal.kind === 'rejected' && terminal.reason, reason, sql);
      assert.match(terminal.kind === 'rejected' ? terminal.detail : '', /was not admitted/);
    }
    assert.deepEqual(await place.db.run('select v from t'), [{ v: 'old' }]);
  });

  test('a server without durable commits, with init_connect or an unsafe binary log is refused', async () => {
    await using server = await startServer({ 'log-bin': 'binlog', 'server-id': '1' });
    const db = await server.createDatabase();
    const place = await protectedMariadb(TABLE, { relations: ['t'] }, db);
    const adapter = (await place.factory().open(CONTEXT)) as PromotableAdapter;
    const open = async () =>
      (await adapter.survey()).outlets
        .filter(({ disposition }) => disposition === 'unclassified')
        .map(({ outlet }) => outlet);
    assert.deepEqual(await open(), ['sync_binlog = 0']);
    await db.run('set global sync_binlog = 1');
    assert.deepEqual(await open(), []);
    await db.run('set global innodb_flush_log_at_trx_commit = 0');
    assert.deepEqual(await open(), ['innodb_flush_log_at_trx_commit = 0']);
    await adapter.close();
  });

  for (const [setting, value] of Object.entries(TAKEN_OVER))
    test(`a server with ${setting} = ${value} is used like any other`, async () => {
      await using server = await startServer();
      const db = await server.createDatabase();
      await db.run(`set global ${setting} = ${value}`);
      const all = 'set autocommit = 1, tx_read_only = 0, lock_wait_timeout = 5;';
      const place = await protectedMariadb(`${all} ${TABLE}`, { relations: ['t'] }, db);
      await using runtime = await createRuntime({
        store: temporaryLedgers(),
        keyring: testKeyring(),
        issuers: { approver: { key: KEY.publicKey, may: ['db'] } },
        adapters: { db: place.factory() },
      });
      const effects = [update('t', { id: 1 }, { v: ['old', 'new'] })];
      const task = { adapter: 'db', task: 'run', planRevision: 1, effects };
      const license = approver(KEY).sign(await runtime.prepare(task), { expiresIn: '5m' });
      const sql = "update t set v = 'new' where id = 1";
      const terminal = await runtime.execute(license, { sql });
      assert.equal(terminal.kind, 'committed', JSON.stringify(terminal));
      await db.run(`${all} alter table t add more int`);
    });

  test('a server that ignores the character set of the handshake reads what was sent', async () => {
    await using server = await startServer({
      ...{ 'skip-character-set-client-handshake': '1', 'character-set-server': 'gbk' },
    });
    const db = await server.createDatabase();
    // Read as GBK, the last byte of the name would take the quote that follows it.
    const table = TABLE.replaceAll(' t ', ' `caf\u00e9` ');
    const place = await protectedMariadb(
      `set names utf8mb4; ${table}`,
      { relations: ['caf\u00e9'] },
      db,
    );
    await using runtime = await createRuntime({
      store: temporaryLedgers(),
      keyring: testKeyring(),
      issuers: { approver: { key: KEY.publicKey, may: ['db'] } },
      adapters: { db: place.factory() },
    });
    const v = '\u00e9\u{1f600}\u4e2d';
    const effects = [update('caf\u00e9', { id: 1 }, { v: ['old', v] })];
    const task = { adapter: 'db', task: v, planRevision: 1, effects };
    const license = approver(KEY).sign(await runtime.prepare(task), { expiresIn: '5m' });
    const sql = `update \`caf\u00e9\` set v = '${v}' where id = 1`;
    const terminal = await runtime.execute(license, { sql });
    assert.equal(terminal.kind, 'committed', JSON.stringify(terminal));
    const [stored] = await db.run('set names utf8mb4; select hex(v) as v from `caf\u00e9`');
    assert.equal(stored?.v, Buffer.from(v).toString('hex').toUpperCase());
  });

  test('a server that restarts between plan and run is found again, and the run commits', async () => {
    await using server = await startServer();
    const db = await server.createDatabase();
    const place = await protectedMariadb(TABLE, { relations: ['t'] }, db);
    await using runtime = await createRuntime({
      store: temporaryLedgers(),
      keyring: testKeyring(),
      issuers: { approver: { key: KEY.publicKey, may: ['db'] } },
      adapters: { db: place.factory() },
    });
    const effects = [update('t', { id: 1 }, { v: ['old', 'new'] })];
    const task = { adapter: 'db', task: 'restart', planRevision: 1, effects };
    const license = approver(KEY).sign(await runtime.prepare(task), { expiresIn: '5m' });
    await server.kill();
    await server.restart();
    const terminal = await runtime.execute(license, { sql: "update t set v = 'new' where id = 1" });
    assert.equal(terminal.kind, 'committed', JSON.stringify(terminal));
  });
});
