// Goal: an open outlet refuses the operations that can reach it, however they get there, and leaves
// the others alone. Method: a real database with one open outlet at a time; operations that reach
// it by name, through code, keys, views and signs, and operations on the tables beside it.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { update } from '../../../../src/protocol/draft.ts';
import { endingOf, type Office, openOffice } from '../office.ts';

const SCHEMA = `
  create schema app authorization {app}; grant usage on schema app to public; set role {app};
  create table app.bell (id int primary key, v text);
  create table app.plain (id int primary key, v text);
  create table app.calling (id int primary key, v text);
  create table app.parent (id int primary key, v text);
  create table app.child (id int primary key, parent int references app.parent on delete cascade, v text);
  create table app.parts (id int not null, v text, primary key (id)) partition by range (id);
  create table app.parts_low partition of app.parts for values from (0) to (10);
  create table app.typed (id int primary key, v text);
  create table app.side (id int primary key, v text);
  create view app.bells as select * from app.bell;
  create view app.shown as select id, v from app.bell;
  create function app.ring() returns trigger language plpgsql as $$ begin return new; end $$;
  create trigger ring after update on app.bell for each row execute function app.ring();
  create trigger ring after delete on app.child for each row execute function app.ring();
  create trigger ring after update on app.parts for each row execute function app.ring();
  create function app.call_bell() returns trigger language plpgsql as $$ begin
    update app.bell set v = new.v where id = new.id; return null; end $$;
  create trigger call_bell after update on app.calling for each row execute function app.call_bell();
  create function app.helper(text) returns text language sql as 'select $1';
  insert into app.bell values (1, 'a'); insert into app.plain values (1, 'a');
  insert into app.calling values (1, 'a'); insert into app.parent values (1, 'a');
  insert into app.child values (1, 1, 'a'); insert into app.parts values (1, 'a');
  insert into app.typed values (1, 'a'); insert into app.side values (1, 'a');
  revoke all on all functions in schema app from public; reset role;`;

const RELATIONS = ['bell', 'plain', 'calling', 'parent', 'child', 'parts', 'typed'];

const UNCERTIFIED = `create or replace function app.ring() returns trigger language plpgsql as
  $$ begin execute 'select ' || 1; return new; end $$`;
const CERTIFIED = `create or replace function app.ring() returns trigger language plpgsql as
  $$ begin return new; end $$`;

const PLAIN = { sql: "update app.plain set v = 'b' where id = 1" };

describe('the scope of an open outlet', () => {
  let office: Office;
  before(async () => {
    office = await openOffice(SCHEMA, {
      relations: RELATIONS.map((name) => `app.${name}`),
      views: ['app.bells'],
      reads: ['app.side'],
    });
  });
  after(() => office[Symbol.asyncDispose]());

  /** Plans an action, which needs a certificate for it and goes no further. */
  const plan = async (sql: string) => {
    const terms = { adapter: 'books', task: 'scope', planRevision: 1 };
    return await office.runtime.plan({ ...terms, action: { sql } }).then(
      () => 'planned',
      (error: Error) => error.message,
    );
  };

  /** Opens something, asks, and closes it again. */
  async function whileOpen(open: string, close: string, ask: () => Promise<void>) {
    await office.db.run(open);
    try {
      await ask();
    } finally {
      await office.db.run(close);
    }
    assert.equal(await plan("update app.bell set v = 'c' where id = 1"), 'planned', close);
  }

  const REACHING: Readonly<Record<string, string>> = {
    'by name': "update app.bell set v = 'b' where id = 1",
    'by a quoted name': `update app."bell" set v = 'b' where id = 1`,
    'by a name in escapes': `update app.U&"b\\0065ll" set v = 'b' where id = 1`,
    'in a subquery': 'update app.plain set v = (select min(v) from app.bell) where id = 1',
    'through a trigger': "update app.calling set v = 'b' where id = 1",
    'through a cascade': 'delete from app.parent where id = 1',
    'through a view': "update app.bells set v = 'b' where id = 1",
    'through a partition': "update app.parts_low set v = 'b' where id = 1",
    'through the parent of a partition': "update app.parts set v = 'b' where id = 1",
  };
  test('a trigger with dynamic SQL refuses everything that reaches it, and nothing beside it', async () => {
    await whileOpen(UNCERTIFIED, CERTIFIED, async () => {
      for (const [how, sql] of Object.entries(REACHING))
        assert.match(await plan(sql), /function app\.ring\(\): It runs SQL put together/, how);
      assert.equal(await plan(PLAIN.sql), 'planned');
    });
  });

  test('an operation beside it is approved, planned, queried, run and run as a task', async () => {
    const paid = (from: string, to: string) => [update('app.plain', { id: 1 }, { v: [from, to] })];
    await whileOpen(UNCERTIFIED, CERTIFIED, async () => {
      assert.equal(endingOf(await office.run(paid('a', 'b'), PLAIN)), 'committed');
      const { terminal } = await office.planned({ sql: "update app.plain set v = 'c'" });
      assert.equal(endingOf(terminal), 'committed');
      const task = await office.open(paid('c', 'd'));
      const ring = await task.call({ sql: "update app.bell set v = 'z' where id = 1" });
      assert.ok(
        ring.kind === 'failed' && ring.reason === 'outlet-unclassified',
        'a call of a task',
      );
      assert.equal((await task.call({ sql: "update app.plain set v = 'd'" })).kind, 'done');
      assert.equal(endingOf(await task.finish()), 'committed');
      const query = (sql: string) => office.runtime.query({ adapter: 'books', action: { sql } });
      assert.deepEqual((await query('select v from app.plain')).rows, [{ v: 'd' }]);
      await assert.rejects(query('select v from app.bell'), { code: 'ERR_EM_BOUNDARY_OPEN' });
      const bell = [update('app.bell', { id: 1 }, { v: ['a', 'b'] })];
      await assert.rejects(office.run(bell, PLAIN), { code: 'ERR_EM_BOUNDARY_OPEN' });
      await assert.rejects(
        office.run(paid('d', 'e'), { sql: "update app.calling set v = 'e'" }).then((terminal) => {
          throw new Error(endingOf(terminal));
        }),
        /rejected.*outlet-unclassified/,
      );
    });
    const rows = await office.db.run(
      'select (select v from app.plain), (select v from app.bell) as bell',
    );
    assert.deepEqual(rows, [{ v: 'd', bell: 'a' }]);
  });

  const EVERYWHERE: Readonly<Record<string, readonly [open: string, close: string]>> = {
    'an operator': [
      `create operator app.@@@ (leftarg = text, rightarg = text, function = app.noisy)`,
      'drop operator app.@@@ (text, text)',
    ],
    'a cast': [
      'create cast (app.row_of as text) with function app.cast_noisy (app.row_of)',
      'drop cast (app.row_of as text)',
    ],
    'a domain': [
      'create domain app.loud as text check (app.noisy(value, value))',
      'drop domain app.loud',
    ],
  };
  for (const [what, [open, close]] of Object.entries(EVERYWHERE))
    test(`${what} with uncertified code can be meant by any statement, so it refuses all`, async () => {
      const code = `language plpgsql as $$ begin execute 'select ' || 1; return null; end $$`;
      await office.db.run(`create type app.row_of as (a int);
        create function app.noisy(text, text) returns boolean ${code};
        create function app.cast_noisy(app.row_of) returns text ${code};`);
      try {
        await office.db.run(open);
        assert.match(await plan(PLAIN.sql), /noisy/);
        await office.db.run(close);
      } finally {
        await office.db.run(`drop function app.noisy, app.cast_noisy; drop type app.row_of`);
      }
    });

  test('a function that was left executable refuses the statements that call it, also through a view', async () => {
    const open = `create or replace function app.helper(text) returns text language plpgsql as
      $$ begin execute 'select ' || 1; return $1; end $$; grant execute on function app.helper to public;
      create view app.helped as select app.helper('x') as v; grant select on app.helped to public`;
    const close = `drop view app.helped; revoke execute on function app.helper from public`;
    await whileOpen(open, close, async () => {
      for (const sql of [
        "update app.plain set v = app.helper('b') where id = 1",
        'update app.plain set v = (select v from app.helped) where id = 1',
      ])
        assert.match(await plan(sql), /function app\.helper\(text\)/, sql);
      assert.equal(await plan(PLAIN.sql), 'planned');
    });
  });

  test('a grant on a table that is not registered refuses the statements that name it', async () => {
    const exec = `"${office.db.role('em_exec')}"`;
    const open = `grant insert on app.side to ${exec}`;
    await whileOpen(open, `revoke insert on app.side from ${exec}`, async () => {
      const sql =
        "with s as (insert into app.side values (2, 'x') returning v) update app.plain set v = 'b' where id = 1";
      assert.match(await plan(sql), /INSERT ON TABLE app\.side/);
      assert.equal(await plan(PLAIN.sql), 'planned');
    });
  });

  test('a sequence whose draws are not seen refuses everything: code may put its name together', async () => {
    const owner = `"${office.db.role('em_owner')}"`;
    const open = `alter table app.typed alter id set default nextval('app.numbers');
      revoke select on sequence app.numbers from ${owner}`;
    await office.db.run('create sequence app.numbers');
    await whileOpen(open, `grant select on sequence app.numbers to ${owner}`, async () => {
      assert.match(
        await plan(PLAIN.sql),
        /sequence "app"\."numbers": It is there for app\.typed\.id/,
      );
    });
    await office.db.run('alter table app.typed alter id drop default; drop sequence app.numbers');
  });

  test('a missing recorder refuses the operations on its table', async () => {
    const remove = 'drop trigger effectmatch_record on app.typed';
    const [row] = await office.db.run(
      `select pg_get_triggerdef(oid) as sql from pg_trigger where tgname = 'effectmatch_record' and tgrelid = 'app.typed'::regclass`,
    );
    const back = `${row?.sql}; alter table app.typed enable always trigger effectmatch_record`;
    await whileOpen(remove, back, async () => {
      assert.match(
        await plan("update app.typed set v = 'b' where id = 1"),
        /recorder effectmatch_record on app\.typed/,
      );
      assert.match(
        await plan("update app.typed set v = 'b' where id = 1"),
        /effectmatch provision/,
      );
      assert.equal(await plan(PLAIN.sql), 'planned');
    });
  });
});

test('code that a person had to read can lead anywhere, so an open outlet refuses what runs it', async () => {
  // It belongs to the superuser of the server, so that its digest is the same in every database.
  const schema = `${SCHEMA}
    create function app.anywhere() returns trigger language plpgsql as
      $$ begin execute format('update app.%I set v = $1', 'be' || 'll') using new.v; return null; end $$;
    create trigger anywhere after update on app.typed for each row execute function app.anywhere();
    revoke all on all functions in schema app from public;`;
  const relations = RELATIONS.map((name) => `app.${name}`);
  const touch = { sql: "update app.typed set v = 'b' where id = 1" };
  const terms = { adapter: 'books', task: 'scope', planRevision: 1 };
  const planIn = async ({ runtime }: Office, action: { readonly sql: string }) =>
    await runtime.plan({ ...terms, action }).then(
      () => 'planned',
      (error: Error) => error.message,
    );
  const findDigest = async () => {
    await using unread = await openOffice(schema, { relations });
    assert.match(await planIn(unread, touch), /app\.anywhere\(\)/);
    assert.equal(await planIn(unread, PLAIN), 'planned');
    const { remedies = [] } = await unread.runtime.survey('books');
    return /digest: '([0-9a-f]{32})'/.exec(remedies[0]?.keep ?? '')?.[1] ?? '';
  };
  const reviews = [{ function: 'app.anywhere()', digest: await findDigest(), by: 'dba' }];
  await using office = await openOffice(schema, { relations, reviews });
  assert.equal(await planIn(office, touch), 'planned');
  await office.db.run(UNCERTIFIED);
  assert.match(await planIn(office, touch), /function app\.ring\(\)/);
  assert.equal(await planIn(office, PLAIN), 'planned');
});

test('so can code that a person had to read because it names a built-in that runs text', async () => {
  const schema = `${SCHEMA}
    create function app.anywhere() returns trigger language plpgsql as $$ begin
      perform query_to_xml('select v from app.be' || 'll', true, true, ''); return null; end $$;
    create trigger anywhere after update on app.typed for each row execute function app.anywhere();`;
  const settings = {
    boundary: 'managed' as const,
    relations: RELATIONS.map((name) => `app.${name}`),
  };
  const touch = { sql: "update app.typed set v = 'b' where id = 1" };
  const terms = { adapter: 'books', task: 'scope', planRevision: 1 };
  const findDigest = async () => {
    await using unread = await openOffice(schema, settings);
    const { remedies = [] } = await unread.runtime.survey('books');
    return /digest: '([0-9a-f]{32})'/.exec(remedies[0]?.keep ?? '')?.[1] ?? '';
  };
  const reviews = [{ function: 'app.anywhere()', digest: await findDigest(), by: 'dba' }];
  await using office = await openOffice(schema, { ...settings, reviews });
  await office.runtime.plan({ ...terms, action: touch });
  await office.db.run(UNCERTIFIED);
  await assert.rejects(office.runtime.plan({ ...terms, action: touch }), /function app\.ring\(\)/);
  await office.runtime.plan({ ...terms, action: PLAIN });
});
