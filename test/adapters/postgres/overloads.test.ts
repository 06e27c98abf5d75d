// Goal: one of several functions of one name can be registered, granted and called, and none of the
// others with it. Method: overloaded functions and procedures, with defaults and outputs, through
// the whole runtime on a real server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { update } from '../../../src/index.ts';
import { type ProtectedDatabase, protectedDatabase } from '../../postgres/protected.ts';
import { runApproved, tellEnd } from './approve.ts';

const SCHEMA = `
  create schema app;
  create table invoice (id integer primary key, status text not null, paid numeric(10, 2));
  insert into invoice values (1, 'pending', 0), (2, 'pending', 0);
  create type app.mood as enum ('sad', 'happy');
  create function pay(which integer) returns void language sql
    as $$ update invoice set status = 'paid' where id = which $$;
  create function pay(which integer, amount numeric) returns void language sql
    as $$ update invoice set status = 'paid', paid = amount where id = which $$;
  create function pay(many integer[]) returns void language sql
    as $$ update invoice set status = 'paid' where id = any(many) $$;
  create function pay(which varchar, how app.mood) returns void language sql
    as $$ update invoice set status = how::text where id = which::integer $$;
  create function credit(which integer, amount numeric default 5) returns void language sql
    as $$ update invoice set status = 'paid', paid = amount where id = which $$;
  create function credit(which text) returns void language sql as $$ update invoice set status = which $$;
  create procedure settle(which integer, out done boolean, inout note text) language plpgsql as $$ begin
    update invoice set status = note where id = which; done := true; end $$;
  create procedure settle(which text) language sql as $$ update invoice set status = 'text' $$;
  revoke execute on all routines in schema public from public;
  grant usage on schema app to public;`;

const open = (...entryPoints: readonly string[]) =>
  protectedDatabase(SCHEMA, { relations: ['invoice'], entryPoints });
const becomes = (id: number, status: string, paid?: number) =>
  update(
    'invoice',
    { id },
    { status: ['pending', status], ...(paid === undefined ? {} : { paid: [0, paid] }) },
  );

const CALLS: readonly (readonly [
  entry: string,
  call: string,
  values: readonly (number | string | number[])[],
  after: string,
])[] = [
  ['pay(integer)', 'pay(integer)', [1], 'paid'],
  ['pay(INT)', 'public.pay', [1], 'paid'],
  ['pay(which integer)', 'pay( int4 )', [1], 'paid'],
  ['pay(int[])', 'pay(integer[])', [[1]], 'paid'],
  ['pay(varchar(3), app.mood)', 'pay(character varying, app.mood)', ['1', 'happy'], 'happy'],
  ['settle(integer, text)', 'settle', [1, 'settled'], 'settled'],
];
for (const [entry, call, values, after] of CALLS) {
  test(`${entry} is registered, and called as ${call}`, async () => {
    await using place = await open(entry);
    const terminal = await runApproved(place, {
      effects: [becomes(1, after)],
      action: { call, values },
    });
    assert.equal(tellEnd(terminal), 'committed');
  });
}

test('an argument with a default is stated like any other', async () => {
  await using place = await open('credit(integer, numeric)');
  const effects = [becomes(1, 'paid', 3)];
  const short = await runApproved(place, { effects, action: { call: 'credit', values: [1] } });
  assert.match(
    tellEnd(short),
    /^rejected at action \(action-invalid\): .*credit\(integer, numeric\) takes 2 values/,
  );
  const action = { call: 'credit', values: [1, 3] };
  assert.equal(tellEnd(await runApproved(place, { effects, action })), 'committed');
});

test('two of one name are told apart by their signatures, and a bare name lists them', async () => {
  await using place = await open('pay(integer)', 'pay(integer, numeric)');
  const effects = [becomes(1, 'paid')];
  const bare = await runApproved(place, { effects, action: { call: 'pay', values: [1] } });
  assert.match(
    tellEnd(bare),
    /^rejected at action \(action-invalid\): .*several.*pay\(integer\), pay\(integer, numeric\)/,
  );
  const other = await runApproved(place, { effects, action: { call: 'pay(text)', values: ['1'] } });
  assert.match(
    tellEnd(other),
    /^rejected at action \(action-invalid\): .*registered are pay\(integer\), pay\(integer, numeric\)/,
  );
  assert.equal(
    tellEnd(await runApproved(place, { effects, action: { call: 'pay(integer)', values: [1] } })),
    'committed',
  );
  const second = {
    effects: [becomes(2, 'paid', 4)],
    action: { call: 'pay(int,numeric)', values: [2, 4] },
  };
  assert.equal(tellEnd(await runApproved(place, second)), 'committed');
});

test('the others of the name are not granted along, for SQL of an agent neither', async () => {
  await using place = await open('pay(integer)', 'settle(integer, text)');
  const effects = [becomes(1, 'paid', 3)];
  const asked = (sql: string) => runApproved(place, { effects, action: { sql } });
  assert.match(tellEnd(await asked('select pay(1, 3)')), /^rejected at stage \(denied\): .*pay/);
  assert.match(
    tellEnd(await asked("call settle('1'::text)")),
    /^rejected at stage \(denied\): .*settle/,
  );
});

const REFUSED: readonly (readonly [entry: string, message: RegExp])[] = [
  [
    'pay',
    /there are 4 of this name; write one of pay\(character varying, app\.mood\), pay\(integer\), pay\(integer, numeric\), pay\(integer\[\]\)/,
  ],
  [
    'pay(text)',
    /none of this name takes \(text\); there are pay\(character varying, app\.mood\), /,
  ],
  ['pay()', /none of this name takes \(\); there are /],
  ['pey(integer)', /there is no such function or procedure \(did you mean "pay"/],
  ['pay(integer', /is not a name/],
  ['pay(integer) extra', /is not a name/],
];
for (const [entry, message] of REFUSED) {
  test(`${entry} is refused, by provisioning as well as by opening`, async () => {
    await assert.rejects(open(entry), { code: 'ERR_EM_ADAPTER_REFUSED', message });
    await using place = await open('pay(integer)');
    await assert.rejects(opened(place, [entry]), { code: 'ERR_EM_ADAPTER_REFUSED', message });
  });
}

test('one function registered under two names is refused', async () => {
  await using place = await open('pay(integer)');
  await assert.rejects(
    opened(place, ['pay(integer)', 'pay(int4)']),
    /"pay\(integer\)" is registered twice/,
  );
});

const opened = (place: ProtectedDatabase, entryPoints: readonly string[]) =>
  runApproved(place, {
    effects: [becomes(1, 'paid')],
    action: { call: 'pay' },
    options: { entryPoints },
  });
