// Goal: a query reads and cannot do anything else. Method: attacks on a real server through the
// adapter, and past its parser with the most privileged login there is: the transaction holds them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { queryRows } from '../../../src/adapters/postgres/query.ts';
import { systemClock } from '../../../src/contract/clock.ts';
import { unobserved } from '../../../src/contract/steps.ts';
import { Connection } from '../../../src/postgres/connection.ts';
import { protectedDatabase } from '../../postgres/protected.ts';
import { openDatabase } from './session.ts';

const LIMITS = { timeoutMs: 5000, rows: 3 };
const refused = (error: { readonly code?: string }) => error.code === 'ERR_EM_QUERY_REFUSED';
const invalid = (error: { readonly code?: string }) => error.code === 'ERR_EM_ACTION_INVALID';
const SCHEMA = `create table account (id integer primary key, balance integer not null);
  insert into account select n, 100 from generate_series(1, 5) as n`;

test('a query returns rows within bounds and holds nothing afterwards', async () => {
  await using bank = await protectedDatabase(SCHEMA, {
    relations: ['account'],
    sessions: { max: 1 },
  });
  const context = { name: 'bank', clock: systemClock, reached: unobserved };
  const adapter = await bank.factory().open(context);
  const ask = async (sql: string, values: readonly unknown[] = []) =>
    await adapter.query?.(adapter.parseAction({ sql, values }), LIMITS);
  try {
    const found = await ask('select id, balance from account where id > $1 order by id', [3]);
    const expected = [
      { id: 4, balance: 100 },
      { id: 5, balance: 100 },
    ];
    assert.deepEqual(found, { rows: expected, more: false });
    const cut = await ask('select id from account order by id');
    assert.deepEqual(cut, { rows: [{ id: 1 }, { id: 2 }, { id: 3 }], more: true });
    for (const sql of [
      'update account set balance = 0 returning id',
      'with gone as (delete from account returning id) select * from gone',
      'select id from account for update',
      'select * from nowhere',
    ])
      await assert.rejects(ask(sql), refused, sql);
    for (const sql of [
      'select 1; select 2',
      'set transaction read write',
      'begin',
      "select set_config('transaction_read_only', 'off', false)",
      'select pg_sleep(100)',
      "select nextval('x')",
      'select lo_create(0)',
      "select dblink_exec('', 'drop table account')",
      "copy account to program 'id'",
      'listen x',
      'select * from effectmatch.marker',
    ])
      await assert.rejects(ask(sql), invalid, sql);
    const [first, second] = await Promise.allSettled([ask('select 1 as n'), ask('select 2 as n')]);
    assert.deepEqual(first.status === 'fulfilled' && first.value?.rows, [{ n: 1 }]);
    assert.match(String(second.status === 'rejected' && second.reason), /too many other queries/);
    const again = await ask('select sum(balance)::int as total from account');
    assert.deepEqual(again?.rows, [{ total: 500 }]);
  } finally {
    await adapter.close();
  }
});

test('a query that reaches an open outlet waits until it is closed', async () => {
  await using bank = await protectedDatabase(SCHEMA, { relations: ['account'] });
  const context = { name: 'bank', clock: systemClock, reached: unobserved };
  const adapter = await bank.factory().open(context);
  try {
    await bank.db.run(
      `create function ping() returns int language plpgsql as $$
        declare said text := current_user; begin execute said; return 1; end $$`,
    );
    const ask = async (sql: string) => await adapter.query?.(adapter.parseAction({ sql }), LIMITS);
    await assert.rejects(ask('select ping()'), { code: 'ERR_EM_BOUNDARY_OPEN' });
    assert.deepEqual((await ask('select 1 as one'))?.rows, [{ one: 1 }]);
  } finally {
    await adapter.close();
  }
});

const ATTACKS: Readonly<Record<string, string>> = {
  'a data-modifying common table expression':
    'with gone as (delete from account returning id) select * from gone',
  'a sequence': "select nextval('counter')",
  'read write by a setting': "select set_config('transaction_read_only', 'off', false)",
  'read write': 'set transaction read write',
  'several statements': 'select 1; delete from account',
  'a function that writes': 'select drain()',
  'a function that becomes read write': 'select become()',
  'a long sleep': 'select pg_sleep(60)',
  'a row lock': 'select * from account for update',
  'a table': 'create table loot (id int)',
  'an explained write': 'explain analyze delete from account',
};

const ARMED = `${SCHEMA}; create sequence counter;
  create function drain() returns int language plpgsql as $$
    begin delete from account; return 1; end $$;
  create function become() returns int language plpgsql as $$
    begin set transaction read write; delete from account; return 1; end $$;`;

test('past the parser, even a superuser cannot write in a query', async () => {
  await using bank = await openDatabase(ARMED);
  await using session = await Connection.open(bank.database.url(), 'test query');
  for (const [name, sql] of Object.entries(ATTACKS)) {
    const action = { statements: [{ sql, values: [], returnsRows: true }] };
    const asked = queryRows(session, action, { timeoutMs: 300, rows: 3 });
    await assert.rejects(asked, refused, name);
  }
  const { rows } = await bank.control.query(
    'select count(*), sum(balance), (select last_value from counter where is_called) from account',
  );
  assert.deepEqual(rows, [['5', '500', null]]);
  const { rows: lasting } = await session.query(
    "select current_setting('transaction_read_only'), current_setting('statement_timeout')",
  );
  assert.deepEqual(lasting, [['off', '0']], 'the session is as it was');
});
