// Goal: what the recorders do not see is seen by the second witness, and an application's
// rolled-back block is neither. Method: recorders disabled, dropped or replaced behind an open
// adapter, driven through the port without a survey; code of the application that writes where
// nobody registered; blocks that catch errors.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Attempt, demandHeld, gapsOf, openPort } from './drive.ts';

const SCHEMA = `
  create table item (id integer primary key, n integer);
  create table bulky (id integer primary key, n integer);
  create table moved (id integer, n integer, primary key (id, n)) partition by range (n);
  create table moved_low partition of moved for values from (0) to (10);
  create table moved_high partition of moved default;
  create table stray (n integer);
  insert into item values (1, 1), (2, 2), (3, 3);
  insert into bulky values (1, 1), (2, 2), (3, 3);
  insert into moved values (1, 1), (2, 20);
  create function write_stray() returns void language sql security definer as 'insert into stray values (1)';
  create function note() returns trigger language plpgsql as $$ begin perform write_stray(); return null; end $$;
  create trigger note after update on item for each row when (new.n = 77) execute function note();
  create function undone(tables text) returns void language plpgsql as $$ begin
    update item set n = n + 10 where id = 1;
    begin
      if tables = 'item' then update item set n = 0; insert into item values (50, 1), (51, 1); end if;
      if tables = 'bulky' then update bulky set n = 0; insert into bulky values (50, 1), (51, 1); end if;
      if tables = 'moved' then update moved set n = n + 15; end if;
      if tables = 'stray' then perform write_stray(); end if;
      raise exception 'undo';
    exception when others then null;
    end;
    update bulky set n = n + 10 where id = 1;
  end $$;
  create function upserted(key integer) returns void language plpgsql as $$ begin
    insert into item values (90, 1), (key, 1);
  exception when unique_violation then
    update item set n = n + 1 where id = key;
  end $$;
  create function commented() returns void language plpgsql security definer as $$ begin
    execute 'comment on table item is ''changed''';
  end $$;
  create function altered() returns void language plpgsql as $$ begin
    execute format('alter role %I set work_mem = ''1MB''', session_user);
  end $$;
  create function disabling() returns void language plpgsql security definer as $$ begin
    alter table stray disable trigger all;
    truncate stray;
  end $$;`;

const SETTINGS = {
  relations: ['item', { name: 'bulky', bulk: true }, 'moved'],
  entryPoints: ['undone', 'upserted', 'commented', 'altered', 'disabling', 'write_stray'],
};

const channels = (gaps: readonly string[]) =>
  [...new Set(gaps.map((gap) => /^Channel "(\w+)"/.exec(gap)?.[1] ?? gap))].sort();

test('a write past a recorder that is disabled, dropped or hollow is counted', async (t) => {
  const cases: readonly (readonly [string, string, string])[] = [
    [
      'disabled',
      'alter table item disable trigger effectmatch_record',
      'update item set n = 9 where id = 1',
    ],
    ['dropped', 'drop trigger effectmatch_record on item', 'delete from item where id = 2'],
    [
      'hollow',
      `create or replace function effectmatch.record_row() returns trigger language plpgsql as
       'begin return null; end'`,
      'insert into item values (9, 9)',
    ],
    [
      'disabled for statements',
      'alter table bulky disable trigger effectmatch_record_update',
      'update bulky set n = 9',
    ],
    [
      'disabled on one leaf',
      'alter table moved_high disable trigger effectmatch_record',
      'update moved set n = 21 where n = 20',
    ],
    [
      'disabled on the leaf that a row leaves',
      'alter table moved_high disable trigger effectmatch_record',
      'update moved set n = 2 where n = 20',
    ],
  ];
  for (const [name, sabotage, sql] of cases) {
    await t.test(name, async () => {
      await using port = await openPort(SCHEMA, SETTINGS);
      await port.db.run(sabotage);
      assert.deepEqual(channels(await gapsOf(await port.hold({ sql }))), ['counters']);
      for (const other of ['item', 'bulky', 'moved']) {
        const mixed = { statements: [{ sql }, { call: 'undone', values: [other] }] };
        assert.deepEqual(
          channels(await gapsOf(await port.hold(mixed))),
          ['counters'],
          `mixed with what ${other} undid`,
        );
      }
    });
  }
});

test('what a block wrote and rolled back is no gap and no effect', async () => {
  await using port = await openPort(SCHEMA, SETTINGS);
  const effectsOf = async (attempt: Attempt) => {
    const { observation, stage } = demandHeld(attempt);
    await stage.discard();
    assert.deepEqual(observation.kind === 'incomplete' ? observation.gaps : [], []);
    return observation.kind === 'complete' ? observation.effects : [];
  };
  const left = [
    { op: 'update', target: 'item', key: { id: 1 }, before: { n: 1 }, after: { n: 11 } },
    { op: 'update', target: 'bulky', key: { id: 1 }, before: { n: 1 }, after: { n: 11 } },
  ];
  for (const tables of ['none', 'item', 'bulky', 'moved']) {
    assert.deepEqual(
      await effectsOf(await port.hold({ call: 'undone', values: [tables] })),
      left,
      tables,
    );
  }
  // The classic: the insert fails on the second of two rows, after both were counted and before any
  // was recorded.
  assert.deepEqual(await effectsOf(await port.hold({ call: 'upserted', values: [2] })), [
    { op: 'update', target: 'item', key: { id: 2 }, before: { n: 2 }, after: { n: 3 } },
  ]);
});

test('a recorder that was off for a while explains nothing until it is surveyed again', async () => {
  await using port = await openPort(SCHEMA, SETTINGS);
  await port.db.run('alter table item disable trigger effectmatch_record');
  await port.db.run('alter table item enable always trigger effectmatch_record');
  const upsert = { call: 'upserted', values: [2] };
  assert.deepEqual(channels(await gapsOf(await port.hold(upsert))), ['counters']);
  assert.deepEqual(
    await gapsOf(await port.hold({ sql: 'update item set n = 5 where id = 1' })),
    [],
    'all is recorded',
  );
  await port.adapter.survey();
  assert.deepEqual(await gapsOf(await port.hold(upsert)), []);
});

test('a write to a table that nobody registered is seen, also where it was rolled back', async () => {
  await using port = await openPort(SCHEMA, SETTINGS);
  const route = 'public.write_stray() as named in trigger note on public.item';
  const gap = [
    `Channel "relations" saw "stray" touched, which is not registered; it can be written through ${route}.`,
  ];
  assert.deepEqual(
    await gapsOf(await port.hold({ call: 'write_stray' })),
    gap,
    'by a function with other rights',
  );
  assert.deepEqual(
    await gapsOf(await port.hold({ sql: 'update item set n = 77 where id = 1' })),
    gap,
    'by a trigger',
  );
  assert.deepEqual(
    await gapsOf(await port.hold({ call: 'undone', values: ['stray'] })),
    gap,
    'rolled back',
  );
  assert.deepEqual(await port.db.run('select * from stray'), []);
});

test('a write to a catalogue is seen', async () => {
  await using port = await openPort(SCHEMA, SETTINGS);
  const touched = async (call: string) => {
    const gaps = await gapsOf(await port.hold({ call }));
    return gaps.map((gap) => /saw "([^"]+)" touched/.exec(gap)?.[1] ?? gap);
  };
  assert.deepEqual(await touched('commented'), ['pg_catalog.pg_description']);
  assert.deepEqual(await touched('altered'), ['pg_catalog.pg_db_role_setting']);
  assert.ok(
    (await touched('disabling')).includes('pg_catalog.pg_class'),
    'a truncated table hides its own counters',
  );
});
