// Goal: the shape of a table is read as it is, and what cannot be observed exactly is refused with
// a remedy. Method: a real database with awkward names, domains, dropped columns, partitions and
// every refused kind of relation.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { readRelations } from '../../../src/adapters/postgres/catalog.ts';
import { assignedBy } from '../../../src/adapters/postgres/relation.ts';
import { openDatabase } from './session.ts';

const SETUP = `
create schema "My App";
create type mood as enum ('sad', 'happy');
create domain "My App"."Code" as varchar(3) not null;
create domain code2 as "My App"."Code" default 'dom' check (value <> 'x');
create sequence shared_ids start 5 increment 3;
create table "My App"."select ""it""" (
  gone int, code code2, tags varchar(5)[], id bigint generated always as identity, "Order" serial,
  feel mood default 'sad', wait interval day to second(3), at timestamptz(3) default now(),
  twice int generated always as (1 + 1) stored, token uuid default gen_random_uuid(), shared int default nextval('shared_ids'),
  ten_times int default nextval('shared_ids') * 10, stated text default 'a''b',
  primary key ("Order", id) include (code)
);
alter table "My App"."select ""it""" drop column gone;
create table part (k int, v text, primary key (k)) partition by range (k);
create table part_low (v text, extra int, k int not null);
alter table part_low drop column extra;
alter table part attach partition part_low for values from (0) to (10);
create table part_high partition of part for values from (10) to (20) partition by list (k);
create table part_high_1 partition of part_high for values in (10, 11);
create table bag (a int, b text);
alter table bag enable row level security;
create unlogged table fast (k int);
create view seen as select 1 as x;
create materialized view kept as select 1 as x;
create table parent (a int); create table child () inherits (parent);
create table unlogged_part (k int) partition by list (k);
create unlogged table unlogged_leaf partition of unlogged_part default;
create table ruled (k int); create rule redirect as on insert to ruled do instead nothing;
create table bare ();
create table customers (id int primary key);
`;

let database: Awaited<ReturnType<typeof openDatabase>>;

before(async () => {
  database = await openDatabase(SETUP);
});

after(() => database[Symbol.asyncDispose]());

async function usable(name: string, schema = 'public') {
  const [inspection] = await readRelations(database.control, [{ schema, name }]);
  assert.ok(inspection?.kind === 'usable', JSON.stringify(inspection));
  return inspection;
}

test('columns come in their order without dropped ones, with types beneath domains', async () => {
  const { relation } = await usable('select "it"', 'My App');
  assert.equal(relation.target, 'My App."select ""it"""');
  assert.deepEqual(
    relation.columns.map(({ name, type }) => [name, type.text, type.base, type.kind, type.domain]),
    [
      ['code', '"public"."code2"', 'varchar', 'b', true],
      ['tags', 'character varying(5)[]', '_varchar', 'b', false],
      ['id', '"pg_catalog"."int8"', 'int8', 'b', false],
      ['Order', '"pg_catalog"."int4"', 'int4', 'b', false],
      ['feel', '"public"."mood"', 'mood', 'e', false],
      ['wait', 'interval day to second(3)', 'interval', 'b', false],
      ['at', 'timestamp(3) with time zone', 'timestamptz', 'b', false],
      ['twice', '"pg_catalog"."int4"', 'int4', 'b', false],
      ['token', '"pg_catalog"."uuid"', 'uuid', 'b', false],
      ['shared', '"pg_catalog"."int4"', 'int4', 'b', false],
      ['ten_times', '"pg_catalog"."int4"', 'int4', 'b', false],
      ['stated', '"pg_catalog"."text"', 'text', 'b', false],
    ],
  );
  assert.deepEqual(relation.key, ['Order', 'id'], 'key order, without included columns');
  assert.equal(relation.leaves.length, 1);
});

test('a sequence belongs to a column only where it assigns the value itself', async () => {
  const { relation } = await usable('select "it"', 'My App');
  const assigned = relation.columns.flatMap((column) => {
    const by = assignedBy(column);
    return by === undefined ? [] : [[column.name, by, column.sequence?.name]];
  });
  assert.deepEqual(assigned, [
    ['id', 'sequence', 'select "it"_id_seq'],
    ['Order', 'sequence', 'select "it"_Order_seq'],
    ['token', 'uuid', undefined],
    ['shared', 'sequence', 'shared_ids'],
  ]);
  const shared = relation.columns.find(({ name }) => name === 'shared')?.sequence;
  assert.deepEqual([shared?.schema, shared?.start, shared?.increment], ['public', '5', '3']);
  const twice = relation.columns.find(({ name }) => name === 'twice');
  assert.deepEqual([twice?.generated, twice?.defaultText], [true, undefined]);
  assert.equal(
    relation.columns.find(({ name }) => name === 'code')?.defaultText,
    "'dom'::character varying",
  );
  assert.equal(
    relation.columns.find(({ name }) => name === 'feel')?.defaultText,
    "'sad'::public.mood",
  );
});

test('a partitioned table has the leaves of all levels, each with its own column order', async () => {
  const { relation } = await usable('part');
  assert.equal(relation.partitioned, true);
  assert.deepEqual(
    relation.leaves.map(({ name, columns }) => [name, columns]),
    [
      ['part_low', ['v', 'k']],
      ['part_high_1', ['k', 'v']],
    ],
  );
});

test('a table without a key and with row security says so', async () => {
  const { relation, rowSecurity } = await usable('bag');
  assert.deepEqual(relation.key, []);
  assert.equal(rowSecurity, true);
});

const REFUSED: readonly (readonly [string, RegExp])[] = [
  ['fast', /unlogged/],
  ['seen', /a view/],
  ['kept', /materialized/],
  ['parent', /public\.child inherits from it/],
  ['child', /inherits from public\.parent/],
  ['unlogged_part', /partition unlogged_leaf is unlogged/],
  ['ruled', /rule "redirect"/],
  ['bare', /no columns/],
  ['customer', /no such table \(did you mean "customers"/],
  ['shared_ids', /a sequence/],
];

for (const [name, why] of REFUSED) {
  test(`"${name}" is refused with its reason`, async () => {
    const [inspection] = await readRelations(database.control, [{ schema: 'public', name }]);
    assert.ok(inspection?.kind === 'unusable');
    assert.match(inspection.why, why);
  });
}

test('answers come in the order asked', async () => {
  const names = ['bag', 'nowhere', 'part', 'bag'].map((name) => ({ schema: 'public', name }));
  const kinds = (await readRelations(database.control, names)).map((found) =>
    found.kind === 'usable' ? found.relation.name : 'none',
  );
  assert.deepEqual(kinds, ['bag', 'none', 'part', 'bag']);
});
