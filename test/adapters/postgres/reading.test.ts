// Goal: declared state is read by key, exactly, through an index, and never through code or
// policies of the application. Method: keys of many types in a real database; plans of the
// statements themselves; logins that policies would filter.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { readRelations } from '../../../src/adapters/postgres/catalog.ts';
import { buildLock, decodeRead, readState } from '../../../src/adapters/postgres/reading.ts';
import type { Value } from '../../../src/protocol/value.ts';
import { openDatabase } from './session.ts';

/**
 * Type of the key, a key as stored, and what the engine calls equal to it and is another
 * representation.
 */
const KEYS: readonly (readonly [type: string, stored: string, value: Value, other?: Value])[] = [
  ['bigint', '9007199254740993', { $int: '9007199254740993' }],
  ['text', "it's \\ here", "it's \\ here"],
  ['varchar(20)', 'a', 'a'],
  ['char(4)', 'ab', 'ab  '],
  ['public.upper', 'A', 'A'],
  ['public.mood', 'happy', 'happy'],
  ['uuid', '00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000001'],
  ['date', '2026-01-31', '2026-01-31'],
  ['timestamptz', '2026-01-31 10:00:00.5+00', '2026-01-31T10:00:00.5+00:00'],
  ['numeric', '1.50', { $dec: '1.5' }],
  ['float8', '0', { $real: '0' }, { $real: '-0.0' }],
  ['bytea', '\\x00ff', { $bytes: '00ff' }],
  ['boolean', 't', true],
  ['interval', '30 days', '30 days', '1 mon'],
  ['int4range', '[1,3)', '[1,3)'],
  ['text[]', '{a,"b c"}', '{a,"b c"}'],
  ['text collate public.blind', 'A', 'A', 'a'],
];

const SETUP = `
create type mood as enum ('sad', 'happy');
create function loud(text) returns boolean language plpgsql as $$ begin return $1 = upper($1); end $$;
create domain upper as text check (loud(value));
create collation blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
${KEYS.map(([type], n) => `create table k${n} (v text, id ${type} primary key);`).join('\n')}
create table secret (id int primary key, v text); insert into secret values (1, 'x');
create function peek(int) returns boolean language plpgsql as $$ begin raise exception 'policy ran'; end $$;
alter table secret enable row level security; create policy p on secret using (peek(id));
create table pair (b int, a text, n int, primary key (a, b));
insert into pair values (1, 'x', 5), (2, 'x', 6);
`;

let database: Awaited<ReturnType<typeof openDatabase>>;

before(async () => {
  database = await openDatabase(SETUP);
});

after(() => database[Symbol.asyncDispose]());

async function relationsOf(...names: readonly string[]) {
  const found = await readRelations(
    database.control,
    names.map((name) => ({ schema: 'public', name })),
  );
  return new Map(
    found.map((inspection) => {
      assert.ok(inspection.kind === 'usable');
      return [inspection.relation.target, inspection.relation] as const;
    }),
  );
}

for (const [n, [type, stored, value, other]] of KEYS.entries()) {
  test(`a ${type} key is found by index, as it is stored`, async () => {
    await database.control.query(`insert into k${n} values ('found', $1)`, [stored]);
    const relations = await relationsOf(`k${n}`);
    const asked = [value, ...(other === undefined ? [] : [other])].map((id) => ({
      target: `k${n}`,
      key: { id },
      columns: ['v'],
    }));
    const readings = await readState(database.control, relations, asked);
    assert.deepEqual(readings[0], { target: `k${n}`, key: { id: value }, row: { v: 'found' } });
    if (other !== undefined)
      assert.equal(readings[1]?.row, null, 'another representation is another key');
    const relation = relations.get(`k${n}`);
    assert.ok(relation !== undefined);
    await database.control.query('set enable_seqscan = off');
    const plan = await database.control.query(`explain ${buildLock(relation, { id: value })}`);
    await database.control.query('reset enable_seqscan');
    assert.match(plan.rows.flat().join('\n'), /Index Cond/);
  });
}

test('a key of several columns comes in key order, and a lock is part of the statement', async () => {
  const relations = await relationsOf('pair');
  const relation = relations.get('pair');
  assert.ok(relation !== undefined);
  const key = { a: 'x', b: 2 };
  const [reading] = await readState(database.control, relations, [{ target: 'pair', key }]);
  assert.deepEqual(reading?.row, { b: 2, a: 'x', n: 6 });
  const locked = await database.control.query(buildLock(relation, key));
  const image = locked.rows[0]?.[0] ?? null;
  assert.deepEqual(decodeRead(relation, { target: 'pair', key, columns: ['n'] }, image).row, {
    n: 6,
  });
});

test('a policy that would filter the rows makes the read fail, and does not run', async () => {
  const relations = await relationsOf('secret');
  const reader = await database.login('reader', (role) => `grant select on secret to "${role}"`);
  const read = readState(reader, relations, [{ target: 'secret', key: { id: 1 } }]);
  await assert.rejects(read, /row-level security/);
});
