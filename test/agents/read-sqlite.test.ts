// Goal: a read tool reads and cannot do anything else. Method: attacks on a real SQLite file, with
// the file compared byte by byte afterwards, and queries that never end.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { openOffice } from '../requests/office.ts';

const code = (wanted: string) => (error: { readonly code?: string }) => error.code === wanted;

const ATTACKS: Readonly<Record<string, string>> = {
  insert: "insert into payment values (1, 'crook', 1)",
  returning: "insert into payment values (1, 'crook', 1) returning id",
  update: 'update budget set left = 0',
  'common table expression': 'with x as (select 1) delete from budget',
  create: 'create table loot (id)',
  'temporary table': 'create temp table loot (id)',
  drop: 'drop table budget',
  attach: "attach '/tmp/loot.db' as loot",
  vacuum: "vacuum into '/tmp/loot.db'",
  'query_only off': 'pragma query_only = off',
  'any pragma': 'pragma table_info(budget)',
  'pragma as a table': "select * from pragma_table_info('budget')",
  load_extension: "select load_extension('/tmp/loot.so')",
  readfile: "select readfile('/etc/passwd')",
  writefile: "select writefile('/tmp/loot', 'x')",
  begin: 'begin immediate',
  savepoint: 'savepoint s',
  commit: 'commit',
  'two statements': 'select 1; delete from budget',
  'no rows': 'reindex',
  'our tables': 'select * from effectmatch_marker',
};

test('a query cannot write, set, attach, load or call outside', async () => {
  using office = openOffice();
  await using host = await office.start();
  const { runtime } = host;
  const ask = (sql: string) => runtime.query({ adapter: 'books', action: { sql } });
  assert.deepEqual((await ask('select left from budget')).rows, [{ left: 100 }]);
  const before = filesOf(office.folder);
  for (const [name, sql] of Object.entries(ATTACKS))
    await assert.rejects(ask(sql), code('ERR_EM_QUERY_REFUSED'), name);
  const script = { statements: [{ sql: 'select 1' }, { sql: 'select 2' }] };
  const two = runtime.query({ adapter: 'books', action: script });
  await assert.rejects(two, code('ERR_EM_QUERY_REFUSED'));
  assert.deepEqual(filesOf(office.folder), before);
  assert.deepEqual((await ask('select left from budget')).rows, [{ left: 100 }]);
});

test('parameters are bound, and big, binary and missing values arrive as plain data', async () => {
  using office = openOffice();
  await using host = await office.start();
  const sql = "select ? as t, 9007199254740993 as big, x'01ff' as bytes, null as missing";
  const action = { sql, values: ["'; drop table budget"] };
  const { rows, more } = await host.runtime.query({ adapter: 'books', action });
  const expected = {
    t: "'; drop table budget",
    big: '9007199254740993',
    bytes: '\\x01ff',
    missing: null,
  };
  assert.deepEqual(rows, [expected]);
  assert.equal(more, false);
});

const COUNT = 'with recursive c(x) as (select 1 union all select x + 1 from c)';

test('rows and time are bounded, and the next query is answered', async () => {
  using office = openOffice();
  await using host = await office.start();
  const { runtime } = host;
  const ask = (sql: string, limits = {}) =>
    runtime.query({ adapter: 'books', action: { sql }, ...limits });
  const many = await ask(`${COUNT} select x from c`, { rows: 3 });
  assert.deepEqual(many, { rows: [{ x: 1 }, { x: 2 }, { x: 3 }], more: true });
  const wide = await ask(`${COUNT} select printf('%.*c', 400000, 'x') as t from c`);
  assert.deepEqual([wide.rows.length, wide.more], [2, true]);
  const since = performance.now();
  const endless = ask(`${COUNT} select count(*) from c`, { timeoutMs: 300 });
  const behind = ask('select 1 as one');
  await assert.rejects(endless, code('ERR_EM_QUERY_REFUSED'));
  assert.ok(performance.now() - since < 5000);
  assert.deepEqual((await behind).rows, [{ one: 1 }]);
});

test('queries that waited for their time behind slow ones are not run', async () => {
  using office = openOffice();
  await using host = await office.start();
  const ask = (sql: string, timeoutMs: number) =>
    host.runtime.query({ adapter: 'books', action: { sql }, timeoutMs });
  const since = performance.now();
  const endless = Array.from({ length: 20 }, () => ask(`${COUNT} select count(*) from c`, 500));
  const patient = ask('select 1 as one', 10_000);
  const refusals = await Promise.allSettled(endless);
  assert.ok(refusals.every(({ status }) => status === 'rejected'));
  assert.deepEqual((await patient).rows, [{ one: 1 }]);
  assert.ok(performance.now() - since < 5000);
});

test('a query with a huge row is ended before it fills the memory', async () => {
  using office = openOffice();
  await using host = await office.start();
  const values = Array.from({ length: 200 }, (_, index) => `zeroblob(200000000) as c${index}`);
  const ask = (sql: string) =>
    host.runtime.query({ adapter: 'books', action: { sql }, timeoutMs: 60_000 });
  const since = performance.now();
  await assert.rejects(ask(`select ${values.join()}`), code('ERR_EM_QUERY_REFUSED'));
  assert.ok(performance.now() - since < 40_000);
  assert.deepEqual((await ask('select 1 as one')).rows, [{ one: 1 }]);
});

/** The database and its log; the index of the log moves when it is read. */
function filesOf(folder: string): Readonly<Record<string, string>> {
  const names = readdirSync(folder).filter((name) => /^books\.db(-wal)?$/.test(name));
  return Object.fromEntries(
    names.map((name) => [name, readFileSync(`${folder}/${name}`).toString('hex')]),
  );
}
