// Goal: wherever a process or its session dies in a hand-over, the queue has exactly the jobs whose
// releases are recorded, and afterwards every job exists once. Method: processes that kill
// themselves between every two steps, and sessions that the server ends while COMMIT is under way.
// EFFECTMATCH_HAND_OVERS=10000 repeats it that often.
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { postgresLedgers } from '../../src/ledger/postgres/index.ts';
import {
  claimFixture,
  fixtureAcknowledgement,
  fixtureContext,
  fixtureTerminal,
} from '../../src/testing/ledger/fixtures.ts';
import { createStore, ledgerDatabase } from './postgres-store.ts';
import { startCuttingLine } from './wire.ts';

after(async () => await (await ledgerDatabase()).drop());

const COUNT = Number(process.env.EFFECTMATCH_HAND_OVERS ?? 200);
const context = fixtureContext();

async function openQueue(occurrences: number) {
  const db = await ledgerDatabase();
  const store = await createStore();
  const queue = `queue_${store.schema}`;
  const login = new URL(store.url).username;
  await db.run(`create schema ${queue};
    create table ${queue}.job (key text);
    grant usage on schema ${queue} to "${login}";
    grant insert on ${queue}.job to "${login}"`);
  const ledgers = await store.open(context);
  const claims = await Promise.all(
    Array.from({ length: occurrences }, async (_, at) => {
      const { record } = await claimFixture(ledgers, context, `work ${at}`);
      await ledgers.record(fixtureTerminal(context, record, 'committed'), 'flushed');
      return record;
    }),
  );
  /** The jobs, which must be exactly the releases. */
  const assertAgreement = async () => {
    await untilIdle(db, login);
    const rows = await db.run(`select key from ${queue}.job order by key`);
    const jobs = rows.map(({ key }) => String(key));
    const released = (await ledgers.uncompleted()).map(({ occurrence }) => occurrence);
    assert.deepEqual(jobs, released.sort());
    return jobs.length;
  };
  return { db, store, queue, ledgers, claims, assertAgreement, login };
}

/** A COMMIT that a killed process has sent is carried out after its death. */
async function untilIdle(db: Awaited<ReturnType<typeof ledgerDatabase>>, login: string) {
  for (;;) {
    const [row] = await db.run(`select count(*)::int as busy from pg_stat_activity
      where usename = '${login}' and state <> 'idle'`);
    if (row?.busy === 0) return;
    await sleep(10);
  }
}

const POINTS = ['before', 'begun', 'inserted', 'handed over', 'after 0', 'after 1', 'after 2'];

test('killed between any two steps, a hand-over has happened whole or not at all', async () => {
  const { store, queue, ledgers, assertAgreement } = await openQueue(POINTS.length + 3);
  const run = async (point: string) => {
    const words = [store.location, queue, point, '1'];
    const script = join(import.meta.dirname, 'hand-over-child.ts');
    const child = fork(script, words, { execArgv: ['--no-warnings'] });
    const [code, signal] = await once(child, 'exit');
    return signal ?? code;
  };
  for (const point of POINTS) {
    const before = await assertAgreement();
    const ended = await run(point);
    // A timer may come too late: then the process has ended by itself, with everything done.
    if (!point.startsWith('after')) assert.equal(ended, 'SIGKILL', point);
    const made = (await assertAgreement()) - before;
    if (['before', 'begun', 'inserted'].includes(point)) assert.equal(made, 0, point);
    if (point === 'handed over') assert.equal(made, 1);
  }
  assert.equal(await run('none'), 0);
  assert.equal(await assertAgreement(), POINTS.length + 3);
  await ledgers.close();
});

test(`${COUNT} hand-overs while the server ends sessions: none is lost and none doubled`, async () => {
  const { db, queue, ledgers, claims, assertAgreement, login } = await openQueue(COUNT);
  let isOver = false;
  const ending = (async () => {
    while (!isOver)
      await db.run(`select pg_terminate_backend(pid) from pg_stat_activity
        where usename = '${login}' and query ilike '%commit%' and random() < 0.5`);
  })();
  const left = [...claims];
  const work = async () => {
    for (let claim = left.pop(); claim !== undefined; claim = left.pop()) {
      const { occurrence } = claim;
      const insert = `insert into ${queue}.job values ($1)`;
      try {
        const acknowledgement = fixtureAcknowledgement(context, claim);
        await ledgers.handOver?.(acknowledgement, ({ query }) => query(insert, [occurrence]));
      } catch {
        left.push(claim);
      }
    }
  };
  await Promise.all(Array.from({ length: 4 }, work));
  isOver = true;
  await ending;
  assert.equal(await assertAgreement(), COUNT);
  assert.equal((await ledgers.verify()).kind, 'intact');
  await ledgers.close();
});

test('a line that is cut around COMMIT leaves both or neither, and the caller learns which', async () => {
  const { db, store, queue, assertAgreement, claims } = await openQueue(2);
  await using line = await startCuttingLine(Number(new URL(store.url).port));
  const url = new URL(store.url);
  url.port = String(line.port);
  const ledgers = await postgresLedgers(url.href, { schema: store.schema }).open(context);
  const insert = `insert into ${queue}.job values ($1)`;
  const handOver = (claim: (typeof claims)[number]) =>
    ledgers.handOver?.(fixtureAcknowledgement(context, claim), ({ query }) =>
      query(insert, [claim.occurrence]),
    );
  const [first, second] = claims;
  assert.ok(first !== undefined && second !== undefined);
  line.cutNext('after');
  assert.equal((await handOver(first))?.released, true, 'it was committed, and that was found out');
  assert.equal(await assertAgreement(), 1);
  line.cutNext('before');
  await assert.rejects(async () => await handOver(second), { code: 'ERR_EM_STORE_UNAVAILABLE' });
  assert.equal(await assertAgreement(), 1);
  assert.equal((await handOver(second))?.released, true);
  assert.equal(await assertAgreement(), 2);
  assert.equal(line.cuts(), 2);
  assert.equal((await db.run(`select count(*)::int as n from ${queue}.job`))[0]?.n, 2);
  await ledgers.close();
});
