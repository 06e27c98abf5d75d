// Goal: which types and defaults are read by built-in functions alone is decided by what is stored,
// on every server. Method: domains, arrays and defaults on real servers of both versions; the
// reading of each column is compared.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readRelations } from '../../../src/adapters/postgres/catalog.ts';
import { Connection } from '../../../src/postgres/connection.ts';
import { freshDatabase, isInstalled, VERSIONS } from '../../postgres/server.ts';

const SETUP = `
create domain plain as text check (value in ('a', 'b') or value ~ '^x' or length(value) between 1 and 3
  or coalesce(case when value is null then 'y' else lower(value) end, 'z') = any (array['q', value])
  or nullif(value, '') is distinct from 'k' or value::varchar(3) <> '' or (string_to_array(value, ','))[1] = 'a');
create function f(text) returns boolean language sql immutable as 'select true';
create domain coded as varchar(3) check (f(value));
create domain twice as coded not null;
create domain drawn as int check (value < random() * 5);
create domain dated as text check (value > now()::text);
create type mood as enum ('a', 'b');
create domain moody as mood check (value <> 'a' and value::text <> 'x');
create domain plains as plain[]; create domain codes as coded[];
create domain nested as text check (value::coded is not null);
create table t (plain plain default 'a', coded coded default 'b', twice twice, drawn drawn, dated dated,
  moody moody default 'b', plains plains, codes codes, list coded[] default '{}', nested nested,
  amount numeric default 0, cut text default 'x'::varchar(3), called text default lower('X'),
  cast_in text default 'x'::coded, asked boolean default f('x'))`;

/** The type that a value of the column is read with, and whether its default can be evaluated. */
const EXPECTED = {
  plain: ['"public"."plain"', true],
  coded: ['character varying(3)', false],
  twice: ['character varying(3)', true],
  drawn: ['integer', true],
  dated: ['text', true],
  moody: ['"public"."moody"', true],
  plains: ['"public"."plains"', true],
  codes: ['character varying(3)[]', true],
  list: ['character varying(3)[]', false],
  nested: ['text', true],
  amount: ['"pg_catalog"."numeric"', true],
  cut: ['"pg_catalog"."text"', true],
  called: ['"pg_catalog"."text"', true],
  cast_in: ['"pg_catalog"."text"', false],
  asked: ['"pg_catalog"."bool"', false],
};

for (const version of VERSIONS) {
  const skip = isInstalled(version) ? false : `PostgreSQL ${version} is not installed`;
  test(`on PostgreSQL ${version} a column is read without code of the application`, {
    skip,
  }, async () => {
    await using db = await freshDatabase({ version });
    await db.run(SETUP);
    await using connection = await Connection.open(db.url(), 'test');
    const [found] = await readRelations(connection, [{ schema: 'public', name: 't' }]);
    assert.ok(found?.kind === 'usable');
    const read = found.relation.columns.map(({ name, type: { reading }, defaultBuiltIn }) => [
      name,
      [reading.kind === 'built-in' ? reading.text : reading.why, defaultBuiltIn],
    ]);
    assert.deepEqual(Object.fromEntries(read), EXPECTED);
  });
}
