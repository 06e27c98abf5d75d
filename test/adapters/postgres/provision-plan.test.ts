// Goal: the script of a provisioning grants what operations need and nothing else.
// Method: scripts planned on a real server and only read, never run.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type PostgresOptions, planProvisioning } from '../../../src/adapters/postgres/index.ts';
import { freshDatabase, type TestDatabase } from '../../postgres/server.ts';

const SCHEMA = `
  create table drawn (id serial primary key);
  create table numbered (id integer generated always as identity primary key);
  create table plain (id integer primary key, n integer);
  create sequence beside owned by plain.n;
  create sequence own;
  create table mixed (id integer default nextval('own') primary key);
  create sequence extra owned by mixed.id;
  create table hidden (id integer primary key);
  alter table hidden enable row level security;
  create view seen as select * from plain;
  create function pay(a integer, out b text) language sql as $$ select 'x' $$;
  create procedure move(a integer, out done boolean, inout b text) language plpgsql as $$ begin done := true; end $$`;

let db: TestDatabase;
before(async () => {
  db = await freshDatabase();
  await db.run(SCHEMA);
});
after(() => db[Symbol.asyncDispose]());

/** The statements of the script. */
async function planned(
  options: Partial<PostgresOptions>,
  what: 'provision' | 'remove' = 'provision',
) {
  const logins = { control: db.url(db.role('em_control')), execution: db.url(db.role('em_exec')) };
  const plan = await planProvisioning(
    db.url(),
    { ...logins, relations: ['plain'], ...options },
    what,
  );
  return plan.print();
}
const usage = (script: string) =>
  [...script.matchAll(/grant usage on sequence "public"\."(\w+)"/g)].map(([, name]) => name);
const selected = (script: string) =>
  [...script.matchAll(/grant select on sequence "public"\."(\w+)"/g)].map(([, name]) => name);

test('the execution login may draw from the sequence of a default; all sequences of a column can be read', async () => {
  const script = await planned({ relations: ['drawn', 'numbered', 'plain', 'mixed'] });
  assert.deepEqual(usage(script), ['drawn_id_seq', 'own']);
  assert.deepEqual(selected(script).toSorted(), [
    'beside',
    'drawn_id_seq',
    'extra',
    'numbered_id_seq',
    'own',
  ]);
});

test('an entry point is granted by the types of its inputs', async () => {
  const script = await planned({ entryPoints: ['pay', 'move'] });
  assert.match(script, /grant execute on routine "public"\."pay"\(pg_catalog\.int4\) to/);
  assert.match(
    script,
    /grant execute on routine "public"\."move"\(pg_catalog\.int4, pg_catalog\.text\) to/,
  );
});

test('a view is granted with what can be written through it', async () => {
  assert.match(
    await planned({ views: ['seen'] }),
    /grant select, insert, update, delete on "public"\."seen" to/,
  );
});

test('row security of tables that are written or read is passed by trusted logins, and only then', async () => {
  const lifted = /^alter role \S+ bypassrls/m;
  assert.doesNotMatch(await planned({}), lifted);
  assert.match(await planned({ relations: ['plain', 'hidden'] }), lifted);
  assert.match(await planned({ reads: ['hidden'] }), lifted);
  assert.doesNotMatch(await planned({ reads: ['drawn'] }), lifted);
});

test('what cannot be registered is refused, and a removal needs no entry points and views', async () => {
  const refused = (message: RegExp) => ({ code: 'ERR_EM_ADAPTER_REFUSED', message });
  await assert.rejects(
    planned({ relations: ['nowhere'] }),
    refused(/relation "nowhere" cannot be registered: there is no/),
  );
  const gone = { entryPoints: ['gone'], views: ['gone'] };
  await assert.rejects(planned({ entryPoints: ['gone'] }), refused(/entry point "gone"/));
  await assert.rejects(planned({ views: ['gone'] }), refused(/view "gone"/));
  assert.match(await planned(gone, 'remove'), /drop schema if exists effectmatch cascade/);
});
