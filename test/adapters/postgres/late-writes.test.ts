// Goal: nothing becomes durable that was written after the observation. Method: code of the
// application that waits for COMMIT (a deferred trigger that defers itself again, cursors WITH
// HOLD) writes to registered and other tables; the candidate is promoted whatever the observation
// says.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PostgresSurvey } from '../../../src/adapters/postgres/certify/facts.ts';
import { demandHeld, openPort, type Port } from './drive.ts';

const SCHEMA = `
  create table item (id integer primary key, n integer);
  create table waiting (id integer primary key, rounds integer not null, target text not null, hurries text);
  create table stray (n integer);
  insert into item values (1, 1);
  create function write_late(target text) returns integer language plpgsql security definer as $$ begin
    if target = 'item' then insert into item values (100, 100); end if;
    if target = 'stray' then insert into stray values (100); end if;
    return 1;
  end $$;
  create function again() returns trigger language plpgsql as $$ begin
    if new.hurries = 'at once' then
      set constraints effectmatch.effectmatch_settled immediate;
    elsif new.hurries = 'and hides it' then
      begin
        set constraints effectmatch.effectmatch_settled immediate;
      exception when others then null;
      end;
    end if;
    if new.rounds > 0 then
      set constraints again deferred;
      update waiting set rounds = rounds - 1 where id = new.id;
    else
      perform write_late(new.target);
    end if;
    return null;
  end $$;
  create constraint trigger again after insert or update on waiting deferrable initially deferred
    for each row execute function again();
  create function hold_open(target text) returns void language plpgsql as $$ begin
    update item set n = n + 1 where id = 1;
    execute format('declare later cursor with hold for select write_late(%L)', target);
  end $$;`;

const open = () =>
  openPort(SCHEMA, { relations: ['item', 'waiting'], entryPoints: ['hold_open', 'write_late'] });

async function durable({ db }: Port) {
  const [rows] = await db.run(`select (select count(*)::int from item where id = 100) as item,
    (select count(*)::int from stray) as stray, (select count(*)::int from waiting) as waiting,
    (select n from item where id = 1) as n`);
  return rows;
}

const NOTHING = { item: 0, stray: 0, waiting: 0, n: 1 };

for (const target of ['item', 'stray']) {
  test(`a deferred trigger that defers itself again cannot write to ${target} at COMMIT`, async () => {
    await using port = await open();
    const held = demandHeld(
      await port.hold({ sql: 'insert into waiting values (1, 1, $1)', values: [target] }),
    );
    assert.equal((await held.promote()).kind, 'refused');
    assert.deepEqual(await durable(port), NOTHING);
  });

  test(`a cursor WITH HOLD cannot write to ${target} at COMMIT`, async () => {
    await using port = await open();
    const held = demandHeld(await port.hold({ call: 'hold_open', values: [target] }));
    assert.equal(held.observation.kind, 'incomplete');
    assert.equal((await held.promote()).kind, 'refused');
    assert.deepEqual(await durable(port), NOTHING);
  });
}

for (const hurries of ['at once', 'and hides it']) {
  test(`a trigger that calls for the last check before it writes is refused (${hurries})`, async () => {
    await using port = await open();
    const held = demandHeld(
      await port.hold({ sql: "insert into waiting values (1, 1, 'stray', $1)", values: [hurries] }),
    );
    assert.equal((await held.promote()).kind, 'refused');
    assert.deepEqual(await durable(port), NOTHING);
  });
}

/**
 * Writes that take no counter of their own, hide in a subtransaction, or are of no table that
 * anybody registered.
 */
const WRITES = [
  'select write_by_sql()',
  'select write_by_stable()',
  "do $w$ begin perform write_by_sql(); raise 'undone'; exception when others then null; end $w$",
  'do $w$ begin perform write_by_sql(); exception when others then null; end $w$',
  'create table made as select 1 as n',
  'refresh materialized view summary',
  'select lo_create(0)',
  'truncate stray',
  'alter sequence numbers restart with 50',
  'analyze stray',
  "comment on table stray is 'x'",
  'select from item where id = 1 for update',
  'declare later cursor with hold for select write_by_sql()',
  'prepare later as select 1',
  'deallocate all',
];

test('whatever writes, locks or prepares at COMMIT is refused, and what does nothing of it is not', async () => {
  const late = `
    create materialized view summary as select 1 as n;
    create sequence numbers;
    create function write_by_sql() returns integer language sql as $$ insert into stray values (1) returning 1 $$;
    create function write_by_stable() returns integer language plpgsql stable as
      $$ begin return write_by_sql(); end $$;
    create table asked (id integer primary key, sql text not null);
    create function ask() returns trigger language plpgsql security definer as $$ begin
      if new.id > 0 then
        set constraints ask deferred;
        insert into asked values (-new.id, new.sql);
      elsif pg_trigger_depth() = 1 and current_setting('effectmatch.marker', true) <> '' then
        execute new.sql;
      else
        set constraints ask deferred;
      end if;
      return null;
    end $$;
    create constraint trigger ask after insert on asked deferrable initially deferred
      for each row execute function ask();`;
  await using port = await openPort(SCHEMA + late, {
    relations: ['asked', 'item'],
    sessions: { max: 1 },
  });
  const promote = async (id: number, sql: string) => {
    const held = demandHeld(
      await port.hold({ sql: 'insert into asked values ($1, $2)', values: [id, sql] }),
    );
    assert.equal(held.observation.kind, 'complete', sql);
    const promotion = await held.promote();
    return promotion.kind === 'refused' ? promotion.reason : promotion.kind;
  };
  for (const [index, sql] of WRITES.entries()) {
    assert.equal(await promote(index + 1, sql), 'evidence-changed', sql);
    assert.deepEqual(await port.db.run('select id from asked'), [], sql);
    assert.deepEqual(await durable(port), NOTHING, sql);
  }
  assert.equal(await promote(100, 'select 1'), 'confirmed');
  assert.equal((await port.db.run('select id from asked')).length, 2);
});

test('a deferred trigger that writes when it is forced is observed, and commits', async () => {
  await using port = await open();
  const held = demandHeld(await port.hold({ sql: "insert into waiting values (1, 0, 'item')" }));
  assert.ok(held.observation.kind === 'complete');
  assert.deepEqual(held.observation.effects.map(({ op, target }) => `${op} ${target}`).sort(), [
    'insert item',
    'insert waiting',
  ]);
  assert.equal((await held.promote()).kind, 'confirmed');
  assert.deepEqual(await durable(port), { ...NOTHING, item: 1, waiting: 1 });
});

test('a check at COMMIT that is gone, off or different is found by the survey, and its remedy helps', async () => {
  await using port = await openPort('create table item (id integer primary key)', {
    relations: ['item'],
  });
  const problems = async () => ((await port.adapter.survey()) as PostgresSurvey).problems;
  assert.deepEqual(await problems(), []);
  const damages = [
    'drop trigger effectmatch_guard on effectmatch.stage',
    'drop trigger effectmatch_settled on effectmatch.marker',
    'alter table effectmatch.stage disable trigger effectmatch_guard',
    'alter table effectmatch.marker enable replica trigger effectmatch_settled',
    `drop trigger effectmatch_settled on effectmatch.marker;
     create constraint trigger effectmatch_settled after insert on effectmatch.marker deferrable initially deferred
       for each row when (false) execute function effectmatch.settle();
     alter table effectmatch.marker enable always trigger effectmatch_settled`,
  ];
  for (const damage of damages) {
    await port.db.run(damage);
    const [problem, ...rest] = await problems();
    assert.match(
      problem?.outlet ?? '',
      /^check effectmatch_(?:guard|settled) on effectmatch/,
      damage,
    );
    assert.deepEqual(rest, []);
    await port.db.run((problem?.fix ?? []).join(';'));
    assert.deepEqual(await problems(), [], damage);
  }
});
