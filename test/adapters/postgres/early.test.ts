// Goal: on PostgreSQL, what the rows rule out is refused before a person reads it, with the values
// compared as the columns store them. Method: a real database, one impossible outcome of each kind,
// and what can be done next to it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { insert, remove, to, update } from '../../../src/index.ts';
import { assertCommitted, openOffice } from './office.ts';

const SCHEMA = `create table "Track" ("TrackId" int primary key, "UnitPrice" numeric(10, 2) not null,
    "Added" timestamptz, "Tags" jsonb);
  insert into "Track" values (1, 0.99, '2026-01-31 10:00+01', '{"b": 1, "a": 2}'), (2, 1.99, null, null)`;
const TERMS = { adapter: 'books', task: 'early', planRevision: 1 };

test('a before that is false, a missing row and one that exists are refused; equal values are equal', async () => {
  await using office = await openOffice(SCHEMA, { relations: ['Track'] });
  const prepare = (...effects: Parameters<typeof office.run>[0]) =>
    office.runtime.prepare({ ...TERMS, effects });
  const impossible = (message: RegExp) => ({ code: 'ERR_EM_OUTCOME_IMPOSSIBLE', message });
  await assert.rejects(
    prepare(update('Track', { TrackId: 1 }, { UnitPrice: [1, 2] })),
    impossible(/~ Track TrackId=1 {2}UnitPrice: 1 -> 2: UnitPrice is 0\.99 now$/),
  );
  await assert.rejects(
    prepare(update('Track', { TrackId: 2 }, { UnitPrice: to('1.990') })),
    impossible(/UnitPrice has this value already/),
  );
  await assert.rejects(prepare(remove('Track', { TrackId: 3 })), impossible(/no such row/));
  await assert.rejects(
    prepare(insert('Track', { TrackId: 2, UnitPrice: 1, Added: null, Tags: null })),
    impossible(/the row exists already/),
  );
  const all = {
    UnitPrice: ['0.990', 2] as const,
    Added: ['2026-01-31T09:00:00Z', null] as const,
    Tags: ['{"a":2,"b":1}', null] as const,
  };
  const sql =
    'update "Track" set "UnitPrice" = 2, "Added" = null, "Tags" = null where "TrackId" = 1';
  assertCommitted(await office.run([update('Track', { TrackId: 1 }, all)], { sql }));
});

test('a table whose rows cannot be read outside an execution is not looked at', async () => {
  const secured = `${SCHEMA}; alter table "Track" enable row level security;
    create policy every on "Track" using (true)`;
  await using office = await openOffice(secured, { relations: ['Track'] });
  const effects = [update('Track', { TrackId: 1 }, { UnitPrice: [1, 2] })];
  const prepare = () => office.runtime.prepare({ ...TERMS, effects });
  await assert.rejects(prepare(), /UnitPrice is 0\.99 now/);
  for (const role of ['em_control', 'em_owner'])
    await office.db.run(`alter role "${office.db.role(role)}" nobypassrls`);
  assert.match((await prepare()).rendering, /UnitPrice: 1 -> 2/);
});
