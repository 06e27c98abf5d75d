// Goal: a column that the database fills with a random identifier can be approved as generated, in
// the key or outside. Method: one execution each against a real server; the attack states an
// identifier that another row already has.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { generated, insert, remove, update } from '../../../src/index.ts';
import { assertCommitted, endingOf, openOffice } from './office.ts';

const SCHEMA = `
  create table link (id integer primary key, token uuid not null default gen_random_uuid());
  create table part (shop integer, id uuid default gen_random_uuid(), note text, primary key (shop, id));
  create function new_id() returns uuid language sql volatile return gen_random_uuid();
  create table own (id uuid primary key default new_id(), note text);
  create table loose (note text, token uuid default gen_random_uuid());
  insert into link values (1, '11111111-1111-4111-8111-111111111111')`;

test('an identifier that the default draws outside the primary key is generated, stated or planned', async () => {
  await using office = await openOffice(SCHEMA, { relations: ['link', 'part', 'loose', 'own'] });
  const token = generated('token');
  assertCommitted(
    await office.run([insert('link', { id: 2, token })], {
      sql: 'insert into link (id) values (2)',
    }),
  );
  const two = [
    insert('part', { shop: 1, id: generated('a'), note: 'a' }),
    insert('loose', { note: 'b', token }),
  ];
  const sql = [
    "insert into part (shop, note) values (1, 'a')",
    "insert into loose (note) values ('b')",
  ];
  assertCommitted(await office.run(two, { statements: sql.map((text) => ({ sql: text })) }));
  const own = [insert('own', { id: generated('own'), note: 'c' })];
  assertCommitted(await office.run(own, { sql: "insert into own (note) values ('c')" }));
  const { proposal, terminal } = await office.planned({
    sql: 'insert into link (id) values (3), (4)',
  });
  assert.match(JSON.stringify(proposal), /new link\.token 2/);
  assertCommitted(terminal);
});

test('an identifier that another row already has is not generated', async () => {
  await using office = await openOffice(SCHEMA, { relations: ['link', 'part', 'loose', 'own'] });
  const sql = "insert into link values (2, '11111111-1111-4111-8111-111111111111')";
  const taken = await office.run([insert('link', { id: 2, token: generated('token') })], { sql });
  assert.equal(endingOf(taken), 'rejected diverged: DIVERGED');
  const both = [2, 3].map((id) => insert('link', { id, token: generated(`token ${id}`) }));
  const twice =
    "insert into link select n, '22222222-2222-4222-8222-222222222222' from generate_series(2, 3) as n";
  assert.equal(
    endingOf(await office.run(both, { sql: twice })),
    'rejected diverged: DIVERGED',
    'two labels, one value',
  );
});

test('an identifier of the primary key that the action itself freed is not generated', async () => {
  await using office = await openOffice(SCHEMA, { relations: ['own'], profile: 'row-event' });
  const old = '33333333-3333-4333-8333-333333333333';
  await office.db.run(`insert into own values ('${old}', 'old')`);
  const effects = [
    remove('own', { id: old }),
    insert('own', { id: generated('new'), note: 'new' }),
  ];
  const taken = [`delete from own where id = '${old}'`, `insert into own values ('${old}', 'new')`];
  const reused = await office.run(effects, { statements: taken.map((sql) => ({ sql })) });
  assert.equal(endingOf(reused), 'rejected diverged: DIVERGED');
  const drawn = [`delete from own where id = '${old}'`, "insert into own (note) values ('new')"];
  assertCommitted(await office.run(effects, { statements: drawn.map((sql) => ({ sql })) }));
  const twice = [
    insert('own', { id: generated('a'), note: 'a' }),
    update('own', { id: generated('a') }, { note: 'b' }),
  ];
  const sql = ["insert into own (note) values ('a')", "update own set note = 'b' where note = 'a'"];
  assertCommitted(await office.run(twice, { statements: sql.map((text) => ({ sql: text })) }));
});
