// Goal: a statement recorder knows which row became which. Method: tables registered as bulk,
// written by every kind of statement and by foreign-key actions; no write here changes the column
// `id` except the one that moves every row by a thousand, so each event must keep it or move it by
// that much.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PostgresAction } from '../../../src/adapters/postgres/index.ts';
import { demandHeld, openPort } from './drive.ts';

const SCHEMA = `
  create table parent (id integer primary key, code integer unique not null, n integer);
  create table child (id integer primary key, code integer references parent (code) on update cascade on delete set null);
  insert into parent select i, i * 7 % 1009, 0 from generate_series(1, 1000) as i;
  insert into child select i, (i * 7 % 1009) from generate_series(1, 1000) as i;
  analyze;`;

const SETTINGS = { relations: ['parent', 'child'].map((name) => ({ name, bulk: true })) };

const WRITES: readonly (readonly [
  name: string,
  moves: number,
  events: number,
  action: PostgresAction,
])[] = [
  ['UPDATE', 0, 1000, { sql: 'update parent set n = id' }],
  ['UPDATE of the key', 1000, 1000, { sql: 'update parent set id = id + 1000' }],
  [
    'UPDATE in another order',
    0,
    1000,
    {
      sql: 'update parent set n = s.r from (select id, row_number() over (order by code desc) as r from parent) as s where s.id = parent.id',
    },
  ],
  [
    'INSERT ON CONFLICT',
    0,
    1000,
    {
      sql: 'insert into parent select i, -i, 1 from generate_series(500, 1499) as i on conflict (id) do update set n = excluded.n',
    },
  ],
  [
    'MERGE',
    0,
    900,
    {
      sql: `merge into parent as t using (select i from generate_series(101, 1100) as i) as s on t.id = s.i
      when matched and s.i % 2 = 0 then update set n = s.i when matched then update set n = -s.i`,
    },
  ],
  [
    'two UPDATEs in one statement',
    0,
    1000,
    {
      sql: 'with w as (update parent set n = 1 where id % 2 = 0 returning id) update parent set n = 2 where id % 2 = 1',
    },
  ],
  ['ON UPDATE CASCADE', 0, 2000, { sql: 'update parent set code = code + 2000' }],
  ['ON DELETE SET NULL', 0, 1000, { sql: 'delete from parent where id > 500' }],
];

test('old and new rows of a statement belong together', async (t) => {
  await using port = await openPort(SCHEMA, SETTINGS);
  for (const [name, moves, events, action] of WRITES) {
    await t.test(name, async () => {
      const { evidence, observation, stage } = demandHeld(await port.hold(action));
      await stage.discard();
      assert.deepEqual(observation.kind === 'incomplete' ? observation.gaps : [], []);
      assert.equal(evidence.records.length, events);
      for (const { op, before, after } of evidence.records) {
        if (op === 'update') assert.equal(Number(after?.id) - Number(before?.id), moves);
      }
    });
  }
});
