// Goal: constraint triggers that check at the end of an operation can be used, and none of them
// writes after it. Method: double-entry bookkeeping and its abuses, through the whole runtime on a
// real server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { insert } from '../../../src/index.ts';
import { type ProtectedDatabase, protectedDatabase } from '../../postgres/protected.ts';
import { openBoundary, runApproved, tellEnd } from './approve.ts';

const LEDGER = `
  create table entry (id integer primary key, posting integer not null, amount numeric(10, 2) not null);
  create table audit (posting integer primary key);
  create table stray (n integer);`;

const BALANCED = `
  create function balance() returns trigger language plpgsql as $$ begin
    if (select sum(amount) from entry where posting = new.posting) <> 0 then
      raise exception 'posting % is not balanced', new.posting using errcode = 'check_violation';
    end if;
    return null;
  end $$;
  revoke execute on function balance() from public;
  create constraint trigger balance after insert or update on entry deferrable initially deferred
    for each row execute function balance();`;

const RELATIONS = { relations: ['entry', 'audit'] };

const POSTING = [
  insert('entry', { id: 1, posting: 7, amount: 35 }),
  insert('entry', { id: 2, posting: 7, amount: -35 }),
];
const statement = (id: number, amount: number) => ({
  sql: 'insert into entry values ($1, 7, $2)',
  values: [id, amount],
});
const POST = { statements: [statement(1, 35), statement(2, -35)] };

const rows = async ({ db }: ProtectedDatabase, table = 'entry') =>
  Number((await db.run(`select count(*)::int as n from ${table}`))[0]?.n);

test('a deferred trigger that only checks lets a balanced posting commit', async () => {
  await using place = await protectedDatabase(LEDGER + BALANCED, RELATIONS);
  const terminal = await runApproved(place, { effects: POSTING, action: POST });
  assert.equal(tellEnd(terminal), 'committed');
  assert.equal(await rows(place), 2);
});

test('a posting that is not balanced is rejected in the words of the trigger', async () => {
  await using place = await protectedDatabase(LEDGER + BALANCED, RELATIONS);
  const effects = POSTING.slice(0, 1);
  const terminal = await runApproved(place, { effects, action: statement(1, 35) });
  assert.match(tellEnd(terminal), /^rejected at stage \(constraint\): .*posting 7 is not balanced/);
  assert.equal(await rows(place), 0);
});

const trigger = (body: string, more = '') => `
  create function late() returns trigger language plpgsql ${more} as $$ begin ${body}; return null; end $$;
  revoke execute on function late() from public;
  create constraint trigger late after insert on entry deferrable initially deferred
    for each row execute function late();`;

test('what a deferred trigger writes when it is forced is part of the comparison', async () => {
  const schema = LEDGER + trigger('insert into audit values (new.posting) on conflict do nothing');
  await using place = await protectedDatabase(schema, RELATIONS);
  const unapproved = await runApproved(place, { effects: POSTING, action: POST });
  assert.match(tellEnd(unapproved), /^rejected at comparison \(DIVERGED\)/);
  const effects = [...POSTING, insert('audit', { posting: 7 })];
  assert.equal(tellEnd(await runApproved(place, { effects, action: POST })), 'committed');
});

test('a deferred trigger that writes where nothing is recorded is INDETERMINATE', async () => {
  const schema =
    LEDGER +
    trigger('insert into stray values (1)', 'security definer set search_path = public, pg_temp');
  const handed = `create role books; alter table stray owner to books; alter function late() owner to books;`;
  await using place = await protectedDatabase(schema, RELATIONS);
  await place.db.run(handed.replaceAll('books', `"${place.db.role('books')}"`));
  await place.db.run(`grant usage on schema public to "${place.db.role('books')}"`);
  const terminal = await runApproved(place, { effects: POSTING, action: POST });
  assert.match(tellEnd(terminal), /^rejected at comparison \(INDETERMINATE\): .*stray/s);
  assert.equal(await rows(place, 'stray'), 0);
});

test('a trigger that puts itself off again is not admitted', async () => {
  await using place = await protectedDatabase(LEDGER, RELATIONS);
  const operation = { effects: POSTING, action: POST };
  const create = () => place.db.run(trigger('set constraints late deferred'));
  assert.match(
    tellEnd(await runApproved(place, operation, create)),
    /^rejected at boundary .*SET CONSTRAINTS/s,
  );
  assert.equal(await rows(place), 0);
  await assert.rejects(
    runApproved(place, operation),
    openBoundary(/trigger late on public\.entry/),
  );
});

test('a reviewed trigger that puts itself off and writes at COMMIT all the same leaves nothing', async () => {
  const body = `
    execute 'set constraints ' || 'late deferred';
    if new.id < 100 then insert into entry values (new.id + 100, 7, 0);
    elsif current_setting('effectmatch.marker', true) <> '' then insert into audit values (1);
    end if`;
  await using place = await protectedDatabase(LEDGER, RELATIONS);
  const create = () => place.db.run(trigger(body));
  const refused = await runApproved(place, { effects: POSTING, action: POST }, create);
  const digest = /declare its digest (\w+)/.exec(tellEnd(refused))?.[1] ?? '';
  const reviews = [{ function: 'public.late()', digest, by: 'a reader in a hurry' }];
  const effects = [
    ...POSTING,
    ...[101, 102].map((id) => insert('entry', { id, posting: 7, amount: 0 })),
  ];
  const terminal = await runApproved(place, { effects, action: POST, options: { reviews } });
  assert.match(
    tellEnd(terminal),
    /^rejected at promotion \(EXACT\): .*after it was observed \[EM001\]/,
  );
  assert.deepEqual([await rows(place), await rows(place, 'audit')], [0, 0]);
});

test('a trigger that cannot be forced, in a schema closed to the login, is refused with what to do', async () => {
  const schema = `${LEDGER}
    create table event (at date not null) partition by range (at);
    create schema cellar;
    create table cellar.event_2026 partition of event for values from ('2026-01-01') to ('2027-01-01');
    create function late() returns trigger language plpgsql as $$ begin perform 1; return null; end $$;
    revoke execute on function late() from public;`;
  await using place = await protectedDatabase(schema, { relations: ['event'] });
  const operation = {
    effects: [insert('event', { at: '2026-05-01' })],
    action: { sql: "insert into event values ('2026-05-01')" },
  };
  const create = () =>
    place.db.run(`create constraint trigger late after insert on event deferrable initially deferred
      for each row execute function late()`);
  const refused = tellEnd(await runApproved(place, operation, create));
  assert.match(
    refused,
    /^rejected at boundary .*trigger late on cellar\.event_2026.*GRANT USAGE ON SCHEMA cellar/s,
  );
  assert.equal(await rows(place, 'event'), 0);
  await assert.rejects(
    runApproved(place, operation),
    openBoundary(/trigger late on cellar\.event_2026/),
  );
  await place.db.run(/GRANT USAGE ON SCHEMA cellar TO "[^"]+"/.exec(refused)?.[0] ?? '');
  assert.equal(tellEnd(await runApproved(place, operation)), 'committed');
});

test('a deferrable constraint over a function of the application is forced like a trigger', async () => {
  const schema = `
    create function bucket(integer) returns integer language sql immutable as 'select $1 % 10';
    create table seat (n integer primary key, exclude using btree (bucket(n) with =) deferrable initially deferred);
    insert into seat values (1)`;
  await using place = await protectedDatabase(schema, { relations: ['seat'] });
  const seat = (n: number) => ({
    effects: [insert('seat', { n })],
    action: { sql: 'insert into seat values ($1)', values: [n] },
  });
  assert.match(
    tellEnd(await runApproved(place, seat(11))),
    /^rejected at stage \(constraint\): .*23P01/,
  );
  assert.equal(tellEnd(await runApproved(place, seat(12))), 'committed');
});
