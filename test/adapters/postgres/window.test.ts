// Goal: the window for `now` holds every time that the action can have been told, the start of its
// transaction included. Method: the transaction begins, and what opens its stage is kept waiting by
// a lock: by then now() is long past.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { satisfies } from '../../../src/protocol/constraint.ts';
import { readInstant } from '../../../src/protocol/time-text.ts';
import { demandHeld, openPort } from './drive.ts';

const SCHEMA = `create table event (id integer primary key, at timestamptz not null default now(),
  read_at timestamptz not null default clock_timestamp(), second timestamptz(0) not null default now())`;

test('the window begins with the transaction, however late the stage was opened in it', async () => {
  await using port = await openPort(SCHEMA, { relations: ['event'] });
  const admin = new pg.Client({ connectionString: port.db.url() });
  await admin.connect();
  try {
    await admin.query('begin; lock table effectmatch.stage in access exclusive mode');
    const holding = port.hold({ sql: 'insert into event (id) values (1)' });
    const waiting =
      'select count(*)::int as n from pg_locks where not granted and relation = $1::regclass';
    while ((await admin.query(waiting, ['effectmatch.stage'])).rows[0].n === 0);
    await admin.query('select pg_sleep(0.02); rollback');
    const { evidence, stage } = demandHeld(await holding);
    await stage.discard();
    const { at, read_at: readAt, second } = [...evidence.records][0]?.after ?? {};
    const [first, last] = [at, readAt].map(
      (text) => readInstant(String(text))?.earliestMs ?? Number.NaN,
    );
    const { fromMs, toMs } = evidence.window;
    assert.equal(fromMs, first, 'now() is where it begins');
    for (const value of [at, readAt, second])
      assert.ok(
        satisfies({ now: { withinMs: 0, unit: 'iso' } }, value ?? null, evidence),
        String(value),
      );
    assert.ok(
      Number(last) >= Number(first) + 20 && Number(last) <= toMs,
      `${first} ${last} ${toMs}`,
    );
  } finally {
    await admin.end();
  }
});
