// Goal: a session serves the next operation as if it were new. Method: one session; an operation
// looks at everything a session can carry, another one leaves all of it behind (committed, then
// discarded), and the first looks again. Both use functions with every right.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { demandHeld, openPort, type Port } from './drive.ts';

const SCHEMA = `
  create table seen (look text, what text, found text, primary key (look, what));
  create table drawn (id serial primary key, n integer);
  create role "ROLE";
  create function look(name text) returns void language plpgsql security definer as $$
  declare last text := 'none';
  begin
    begin last := lastval()::text; exception when others then null; end;
    insert into public.seen values
      (name, 'session', pg_backend_pid()::text),
      (name, 'random', random()::text),
      (name, 'settings', (select md5(string_agg(s.name || '=' || s.setting, ',' order by s.name)) from pg_settings as s
         where s.name not in ('transaction_timeout', 'lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout'))),
      (name, 'work_mem', current_setting('work_mem')),
      (name, 'search_path', current_setting('search_path')),
      (name, 'isolation by default', current_setting('default_transaction_isolation')),
      (name, 'custom setting', coalesce(nullif(current_setting('app.tenant', true), ''), 'none')),
      (name, 'login', session_user),
      (name, 'role', current_setting('role')),
      (name, 'prepared statements', (select string_agg(p.name, ',') from pg_prepared_statements as p where p.from_sql)),
      (name, 'cursors', (select string_agg(c.name, ',') from pg_cursors as c where c.name <> '')),
      (name, 'temporary schema', pg_my_temp_schema()::text),
      (name, 'temporary tables', (select string_agg(c.relname, ',') from pg_class as c where c.relpersistence = 't')),
      (name, 'advisory locks', (select count(*)::text from pg_locks as l where l.locktype = 'advisory' and l.pid = pg_backend_pid())),
      (name, 'channels', (select string_agg(c, ',') from pg_listening_channels() as c)),
      (name, 'last value', last);
  end $$;
  create function leave() returns void language plpgsql security definer as $$ begin
    insert into drawn (n) values (1);
    perform set_config('work_mem', '99MB', false), set_config('search_path', 'pg_catalog', false),
      set_config('app.tenant', 'acme', false), set_config('default_transaction_isolation', 'repeatable read', false),
      set_config('timezone', 'Asia/Tokyo', false), set_config('effectmatch.own', 'x', false);
    perform pg_advisory_lock(42), pg_advisory_lock_shared(43), setseed(0.25);
    execute 'listen gossip';
    execute 'declare open_cursor cursor for select 1';
  end $$;
  create function leave_more() returns void language plpgsql security definer as $$ begin
    perform leave();
    execute 'prepare left_over as select 1';
    execute 'declare kept_cursor cursor with hold for select 1';
    create temporary table left_table (a integer);
  end $$;
  create function become() returns void language plpgsql as $$ begin
    execute 'set role "ROLE"';
  end $$;`;

const open = async (): Promise<Port> => {
  const role = `other_${process.pid}_${Date.now()}`;
  const port = await openPort(SCHEMA.replaceAll('ROLE', role), {
    relations: ['seen', 'drawn'],
    entryPoints: ['look', 'leave', 'leave_more', 'become'],
    sessions: { max: 1 },
  });
  await port.db.run(`grant "${role}" to "${port.db.role('em_exec')}"`);
  return Object.assign(port, {
    async [Symbol.asyncDispose]() {
      await port.adapter.close();
      await port.db.run(`drop role "${role}"`);
      await port.db.drop();
    },
  });
};

/** What a look found. Its random number and its session are told apart from the rest. */
async function look(port: Port, name: string) {
  assert.equal((await port.commit({ call: 'look', values: [name] })).kind, 'confirmed');
  const rows = await port.db.run('select what, found from seen where look = $1 order by what', [
    name,
  ]);
  const { random, session, ...rest } = Object.fromEntries(
    rows.map(({ what, found }) => [String(what), found]),
  );
  return { random: Number(random), session, rest };
}

test('nothing that a session can carry reaches the next operation', async () => {
  await using port = await open();
  const first = await look(port, 'first');
  assert.equal(first.rest['custom setting'], 'none');
  assert.equal(first.rest['last value'], 'none');

  assert.equal((await port.commit({ call: 'leave' })).kind, 'confirmed');
  const second = await look(port, 'after a commit');
  assert.equal(second.session, first.session, 'the session was used again');
  assert.deepEqual(second.rest, first.rest);

  const more = demandHeld(await port.hold({ call: 'leave_more' }));
  assert.equal(more.observation.kind, 'incomplete');
  await more.stage.discard();
  const third = await look(port, 'after a discard');
  assert.equal(third.session, first.session);
  assert.deepEqual(third.rest, first.rest);

  const become = await port.hold({ call: 'become' });
  assert.deepEqual(
    become.kind === 'failed' && become.reason,
    'denied',
    'no other role may observe',
  );
  const fourth = await look(port, 'after another role');
  assert.equal(fourth.session, first.session);
  assert.deepEqual(fourth.rest, first.rest);
});

test('a seed that an operation planted says nothing about the next one', async () => {
  await using port = await open();
  const [planted] = await port.db.run(
    'select setseed(0.25); select array[random(), random(), random()] as numbers',
  );
  await port.commit({ call: 'leave' });
  const { random } = await look(port, 'look');
  assert.ok(Array.isArray(planted?.numbers) && !planted.numbers.includes(random));
});

test('what one operation leaves is there within it', async () => {
  await using port = await open();
  const held = demandHeld(
    await port.hold({ statements: [{ call: 'leave' }, { call: 'look', values: ['same'] }] }),
  );
  const found = new Map(
    [...held.evidence.records].flatMap(({ target, after }) =>
      target === 'seen' ? [[after?.what, after?.found]] : [],
    ),
  );
  await held.stage.discard();
  assert.equal(found.get('custom setting'), 'acme');
  assert.equal(found.get('advisory locks'), '2');
  assert.equal(found.get('work_mem'), '99MB');
  assert.equal(found.get('cursors'), 'open_cursor');
  assert.equal(found.get('last value'), '1');
});

test('sessions that are not used again are other sessions', async () => {
  await using port = await openPort(SCHEMA.replaceAll('create role "ROLE";', ''), {
    relations: ['seen', 'drawn'],
    entryPoints: ['look'],
    sessions: { max: 1, reuse: false },
  });
  assert.notEqual((await look(port, 'first')).session, (await look(port, 'second')).session);
});

test('the session of the last operation serves the next one, though there may be more', async () => {
  await using port = await openPort(SCHEMA.replaceAll('create role "ROLE";', ''), {
    relations: ['seen', 'drawn'],
    entryPoints: ['look'],
    sessions: { max: 5 },
  });
  const sessions = new Set<unknown>();
  for (const name of ['a', 'b', 'c']) {
    assert.equal((await port.commit({ call: 'look', values: [name] })).kind, 'confirmed');
  }
  for (const { found } of await port.db.run("select found from seen where what = 'session'"))
    sessions.add(found);
  assert.equal(sessions.size, 1);
});

test('a stage that is refused for what it should read keeps no session', async () => {
  await using port = await openPort('create table item (id integer primary key)', {
    relations: ['item'],
    sessions: { max: 1 },
  });
  const add = { sql: 'insert into item values (1)' };
  await assert.rejects(
    port.hold(add, [{ target: 'nowhere', key: { id: 1 } }]),
    /"nowhere" cannot be read/,
  );
  assert.equal((await port.commit(add)).kind, 'confirmed');
});
