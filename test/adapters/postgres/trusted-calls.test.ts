// Goal: what the runtime prepared on a session is what runs there, and nothing gets between an
// observation and its COMMIT. Method: a routine of the application puts a statement of its own in
// the place of a trusted call, forges its answer and removes the traces; rows are locked after the
// observation; all driven through the port, without a survey.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { demandHeld, openPort, type Port } from './drive.ts';

const TABLE = `
  create table item (id integer primary key, n integer);
  insert into item values (1, 1), (2, 2);`;
const SCHEMA = `${TABLE}
  create function forge(watched oid[], sequences oid[], hides boolean)
    returns table (relation oid, op "char", images bigint, was text, became text) language plpgsql as $$ begin
      return query select o.relation, o.op, o.images,
          regexp_replace(regexp_replace(o.was, '\\n.*\\n', E'\\n\\n'), '\\d$', '0'), o.became
        from effectmatch.observe(watched, sequences) as o where o.op = 'F';
      if hides then execute 'deallocate effectmatch_observe'; end if;
    end $$;
  create function hijack(hides boolean) returns void language plpgsql as $$ begin
    insert into item values (100, 100);
    execute 'deallocate effectmatch_observe';
    execute format('prepare effectmatch_observe(oid[], oid[]) as select * from public.forge($1, $2, %L)', hides);
  end $$;
  create table drawn (id serial primary key, n integer not null);
  create function forge_open() returns table (xid text, at_ms bigint, marker text, positions text, done text)
    language sql as $$ select '1', 1::bigint, null::text, 'forged', '' $$;
  create function hijack_open() returns void language plpgsql as $$ begin
    execute 'deallocate effectmatch_open';
    execute 'prepare effectmatch_open(text, oid[], integer, integer) as select * from public.forge_open()';
  end $$;
  create table seen (n integer primary key, texts text);
  create function hijack_text() returns void language plpgsql as $$ declare name text; begin
    for name in select p.name from pg_prepared_statements as p where p.name like 'action%' loop
      execute format('deallocate %I', name);
      execute format('prepare %I as insert into item values (200, 200)', name);
    end loop;
  end $$;
  create function forget() returns void language plpgsql as $$ begin
    update item set n = n + 1 where id = 1;
    execute 'deallocate all';
  end $$;`;

const open = () =>
  openPort(SCHEMA, {
    relations: ['item', 'drawn', 'seen'],
    entryPoints: ['hijack', 'hijack_open', 'hijack_text', 'forget'],
    sessions: { max: 1 },
  });

async function commitNext(port: Port): Promise<void> {
  const held = demandHeld(await port.hold({ sql: 'update item set n = 20 where id = 2' }));
  assert.deepEqual(held.evidence.records.length, 1, 'the next operation is observed as it is');
  assert.equal((await held.promote()).kind, 'confirmed');
}

for (const hides of [false, true]) {
  test(`a forged observation does not commit (the statement behind it ${hides ? 'removes itself' : 'stays'})`, async () => {
    await using port = await open();
    const held = demandHeld(await port.hold({ call: 'hijack', values: [hides] }));
    assert.deepEqual(held.evidence.records, [], 'the forgery is believed up to here');
    assert.equal(held.observation.kind, 'complete');
    const promotion = await held.promote();
    assert.equal(promotion.kind, 'refused');
    assert.deepEqual(await port.db.run('select * from item where id = 100'), []);
    await commitNext(port);
  });
}

test('what a failed operation left behind is not told by a statement in the place of a trusted call', async () => {
  await using port = await open();
  const draw = { sql: 'insert into drawn (n) values (null)' };
  const attempt = await port.hold({ statements: [{ call: 'hijack_open' }, draw] });
  assert.ok(attempt.kind === 'failed' && attempt.reason === 'constraint');
  assert.deepEqual(attempt.residue, [
    { kind: 'sequence', name: 'drawn_id_seq', from: null, to: '1' },
  ]);
  await commitNext(port);
});

test('a routine that removes all prepared statements fails alone', async () => {
  await using port = await open();
  const attempt = await port.hold({ call: 'forget' });
  assert.equal(attempt.kind, 'failed');
  await commitNext(port);
});

test('rows that are locked after the observation do not keep it from its COMMIT', async () => {
  // Declared state is read only while no outlet is open.
  await using port = await openPort(TABLE, { relations: ['item'], sessions: { max: 2 } });
  const hold = async () =>
    demandHeld(await port.hold({ sql: 'update item set n = n + 1 where id = 1' }));
  const read = (id: number) => ({ target: 'item', key: { id } });
  for (const reads of [[read(1)], [read(2), read(1)], []]) {
    const held = await hold();
    if (reads.length > 0) await held.stage.read(reads);
    assert.equal((await held.promote()).kind, 'confirmed', `${reads.length} locks`);
  }
  assert.deepEqual(await port.db.run('select n from item where id = 1'), [{ n: 4 }]);
});

/** Notes which texts of actions its session has prepared. */
const NOTE = `insert into seen select $1, string_agg(p.name, ',' order by p.name)
  from pg_prepared_statements as p where p.name like 'action%'`;

test('a session prepares the text of an action once, and only so many texts', async () => {
  await using port = await open();
  const note = async (n: number) => {
    assert.equal((await port.commit({ sql: NOTE, values: [n] })).kind, 'confirmed');
    const [row] = await port.db.run('select texts from seen where n = $1', [n]);
    return String(row?.texts).split(',');
  };
  const first = await note(1);
  assert.equal(first.length, 1);
  assert.deepEqual(await note(2), first);
  for (let n = 0; n < 40; n += 1) {
    const sql = `update item set n = ${n} where id = 1`;
    assert.equal((await port.commit({ sql })).kind, 'confirmed');
  }
  assert.ok((await note(3)).length <= 16);
  const long = `update item set n = 1 where id = 1 /* ${'x'.repeat(10_000)} */`;
  assert.equal((await port.commit({ sql: long })).kind, 'confirmed');
  assert.ok((await note(4)).length <= 16);
});

test('a text that was prepared before a table changed runs on the table as it is', async () => {
  const other = 'create table other (a integer); insert into other values (1);';
  await using port = await openPort(TABLE + other, { relations: ['item'], sessions: { max: 1 } });
  await port.db.run(`grant select on other to "${port.db.role('em_exec')}"`);
  await port.adapter.survey();
  const action = { sql: 'update item set n = n + 1 from other where id = 1 returning other.*' };
  assert.equal((await port.commit(action)).kind, 'confirmed');
  await port.db.run('alter table other add column b integer');
  await port.adapter.survey();
  assert.equal((await port.commit(action)).kind, 'confirmed');
  assert.equal((await port.commit(action)).kind, 'confirmed');
});

test('a statement in the place of the text of an action does not commit', async () => {
  await using port = await open();
  const action = { sql: 'update item set n = 1 where id = 1' };
  assert.equal((await port.commit(action)).kind, 'confirmed');
  const held = demandHeld(await port.hold({ call: 'hijack_text' }));
  assert.equal((await held.promote()).kind, 'refused');
  assert.equal((await port.commit(action)).kind, 'confirmed');
  assert.deepEqual(await port.db.run('select * from item where id = 200'), []);
});

test('a literal means what it means in a new session, whatever ran before it', async () => {
  const settings = `create table due (id integer primary key, day date);
    create function speak_german() returns void language plpgsql as $$ begin
      set local datestyle = 'German';
    end $$;`;
  await using port = await openPort(settings, {
    relations: ['due'],
    entryPoints: ['speak_german'],
    sessions: { max: 1 },
  });
  const insert = (id: string) => `insert into due values (${id}, '01-02-2024')`;
  const first = { statements: [{ call: 'speak_german' }, { sql: insert('$1'), values: [1] }] };
  assert.equal((await port.commit(first)).kind, 'confirmed');
  assert.equal((await port.commit({ sql: insert('$1'), values: [2] })).kind, 'confirmed');
  assert.equal((await port.commit({ sql: insert('3') })).kind, 'confirmed');
  const rows = await port.db.run('select id, day::text from due order by id');
  assert.deepEqual(
    rows.map(({ day }) => day),
    ['2024-02-01', '2024-01-02', '2024-01-02'],
  );
});
