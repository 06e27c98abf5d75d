// Goal: what an approval depends on does not change beneath a held candidate, and operations at
// once do not hurt each other. Method: real runtimes and an outside writer at the moments that
// matter; waits, timeouts and deadlocks made on purpose with row locks, never with time alone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { Sessions } from '../../../src/adapters/postgres/sessions.ts';
import type { Step } from '../../../src/contract/steps.ts';
import { approver, generateApprover, row, update } from '../../../src/index.ts';
import { createRuntime } from '../../../src/runtime/runtime.ts';
import { testKeyring } from '../../keyring.ts';
import { temporaryLedgers } from '../../ledger/temporary.ts';
import { type ProtectedDatabase, protectedDatabase } from '../../postgres/protected.ts';
import { demandHeld, openPort, type Port } from './drive.ts';

const SCHEMA = `
  create table invoice (id integer primary key, status text not null);
  create table vendor (id integer primary key, blocked boolean not null);
  create table account (id integer primary key, balance integer not null);
  insert into invoice select n, 'pending' from generate_series(1, 40) as n;
  insert into vendor values (1, false);
  insert into account values (1, 100), (2, 0), (3, 0);`;

const LEVELS = ['read committed', 'serializable'] as const;

/** A runtime on a database of its own, and a superuser who is not protected by it. */
async function openBooks(
  isolation: (typeof LEVELS)[number],
  options: { readonly max?: number } = {},
) {
  const relations = ['invoice', 'account'];
  const sessions = { max: options.max ?? 16 };
  const settings = { relations, reads: ['vendor'], isolation, sessions, lockTimeoutMs: 20_000 };
  const place = await protectedDatabase(SCHEMA, settings);
  const key = generateApprover('team');
  const at = new Map<Step, () => void>();
  const runtime = await createRuntime(
    {
      store: temporaryLedgers(),
      keyring: testKeyring(),
      issuers: { team: { key: key.publicKey, may: ['books'] } },
      adapters: { books: place.factory() },
    },
    { reached: (step) => at.get(step)?.() },
  );
  return {
    ...{ place, runtime, at },
    async approve(
      task: string,
      request: Pick<Parameters<typeof runtime.prepare>[0], 'effects' | 'requires'>,
    ) {
      const proposal = await runtime.prepare({
        adapter: 'books',
        task,
        planRevision: 1,
        ...request,
      });
      return approver(key).sign(proposal, { expiresIn: '10m' });
    },
    async [Symbol.asyncDispose]() {
      await runtime.close();
      await place.db.drop();
    },
  };
}

async function connect(place: Pick<ProtectedDatabase, 'db'>): Promise<pg.Client & AsyncDisposable> {
  const client = new pg.Client({ connectionString: place.db.url() });
  client.on('error', () => {});
  await client.connect();
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
}

for (const isolation of LEVELS) {
  test(`${isolation}: a vendor blocked while the candidate is held is blocked before or after it, never beneath`, async () => {
    await using books = await openBooks(isolation);
    await using outsider = await connect(books.place);
    const moments: readonly Step[] = [
      'adapter:stage-opened',
      'adapter:action-done',
      'adapter:marker-written',
    ];
    const seen = { committed: 0, rejected: 0 };
    for (let id = 1; id <= 12; id += 1) {
      await books.place.db.run('update vendor set blocked = false');
      const license = await books.approve(`invoice ${id}`, {
        effects: [update('invoice', { id }, { status: ['pending', 'paid'] })],
        requires: [row('vendor', { id: 1 }, { blocked: false })],
      });
      let blocking: Promise<unknown> | undefined;
      let found = '';
      const block = async () => {
        await outsider.query('begin; update vendor set blocked = true where id = 1');
        found = (await outsider.query('select status from invoice where id = $1', [id])).rows[0]
          ?.status;
        await outsider.query('commit');
      };
      const moment = moments[id % 4];
      if (moment === undefined) await block();
      else books.at.set(moment, () => (blocking ??= block()));
      const terminal = await books.runtime.execute(license, {
        sql: "update invoice set status = 'paid' where id = $1",
        values: [id],
      });
      books.at.clear();
      await blocking;
      // With the vendor's row in hand the outsider saw the invoice: as long as it was pending,
      // nothing may follow.
      if (found === 'pending') assert.equal(terminal.kind, 'rejected', JSON.stringify(terminal));
      else assert.equal(terminal.kind, 'committed', JSON.stringify(terminal));
      const [invoice] = await books.place.db.run('select status from invoice where id = $1', [id]);
      assert.equal(invoice?.status, terminal.kind === 'committed' ? 'paid' : 'pending');
      seen[terminal.kind as 'committed' | 'rejected'] += 1;
    }
    assert.ok(seen.committed > 0 && seen.rejected > 0, JSON.stringify(seen));
  });

  test(`${isolation}: of two operations on a state that only one may change, one passes`, async () => {
    await using books = await openBooks(isolation);
    for (let round = 1; round <= 4; round += 1) {
      await books.place.db.run(
        'update account set balance = 100 where id = 1; update account set balance = 0 where id > 1',
      );
      const licenses = [];
      for (const to of [2, 3]) {
        const license = await books.approve(`round ${round} to ${to}`, {
          effects: [
            update('account', { id: 1 }, { balance: [100, 40] }),
            update('account', { id: to }, { balance: [0, 60] }),
          ],
          requires: [row('account', { id: 1 }, { balance: 100 })],
        });
        licenses.push({ license, to });
      }
      const terminals = await Promise.all(
        licenses.map(({ license, to }) =>
          books.runtime.execute(license, {
            statements: [
              { sql: 'update account set balance = balance - 60 where id = 1' },
              { sql: 'update account set balance = balance + 60 where id = $1', values: [to] },
            ],
          }),
        ),
      );
      const kinds = terminals.map(({ kind }) => kind).sort();
      assert.deepEqual(kinds, ['committed', 'rejected'], JSON.stringify(terminals));
      const [sum] = await books.place.db.run(
        'select sum(balance)::int as total, min(balance) as least from account',
      );
      assert.deepEqual(sum, { total: 100, least: 0 });
    }
  });
}

for (const max of [16, 3]) {
  test(`16 operations at once on different rows of the same tables all commit, over ${max} sessions`, async () => {
    await using books = await openBooks('read committed', { max });
    const ids = Array.from({ length: 16 }, (_, index) => index + 1);
    const licenses = await Promise.all(
      ids.map((id) =>
        books.approve(`invoice ${id}`, {
          effects: [update('invoice', { id }, { status: ['pending', 'paid'] })],
          requires: [row('vendor', { id: 1 }, { blocked: false })],
        }),
      ),
    );
    const terminals = await Promise.all(
      licenses.map((license, index) =>
        books.runtime.execute(license, {
          sql: "update invoice set status = 'paid' where id = $1",
          values: [index + 1],
        }),
      ),
    );
    for (const terminal of terminals)
      assert.equal(terminal.kind, 'committed', JSON.stringify(terminal));
    assert.deepEqual(
      await books.place.db.run("select count(*)::int as n from invoice where status = 'paid'"),
      [{ n: 16 }],
    );
  });
}

const HELD = { relations: ['account'], sessions: { max: 2 } };
const add = (id: number, amount = 1) => ({
  sql: `update account set balance = balance + ${amount} where id = ${id}`,
});

async function balances({ db }: Pick<Port, 'db'>) {
  return (await db.run('select balance from account order by id')).map(({ balance }) => balance);
}

test('a row that another candidate holds is waited for, up to the limit, and then refused', async () => {
  await using port = await openPort(SCHEMA, { ...HELD, lockTimeoutMs: 300 });
  const first = demandHeld(await port.hold(add(1)));
  const second = await port.hold(add(1));
  assert.ok(second.kind === 'failed');
  assert.equal(second.reason, 'busy');
  assert.equal((await first.promote()).kind, 'confirmed');
  assert.equal((await port.commit(add(1))).kind, 'confirmed');
  assert.deepEqual(await balances(port), [102, 0, 0]);
});

test('a row that becomes free in time is written as it is then', async () => {
  await using port = await openPort(SCHEMA, { ...HELD, lockTimeoutMs: 20_000 });
  const first = demandHeld(await port.hold(add(1)));
  const waiting = port.hold(add(1, 10));
  await untilWaiting(port, 1);
  assert.equal((await first.promote()).kind, 'confirmed');
  const second = demandHeld(await waiting);
  assert.deepEqual(second.observation, {
    kind: 'complete',
    effects: [
      {
        op: 'update',
        target: 'account',
        key: { id: 1 },
        before: { balance: 101 },
        after: { balance: 111 },
      },
    ],
  });
  await second.stage.discard();
  assert.deepEqual(await balances(port), [101, 0, 0]);
});

async function untilWaiting({ db }: Port, sessions: number): Promise<void> {
  for (;;) {
    const [found] = await db.run(
      `select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    if (found?.n === sessions) return;
    await sleep(5);
  }
}

test('a deadlock ends one operation without a trace, and the pool goes on', async () => {
  await using port = await openPort(SCHEMA, { ...HELD, lockTimeoutMs: 20_000 });
  await using outsider = await connect(port);
  for (let round = 1; round <= 2; round += 1) {
    await outsider.query('begin; update account set balance = balance where id = 3');
    const crossing = [
      port.hold({ statements: [add(1), add(3), add(2)] }),
      port.hold({ statements: [add(2), add(3), add(1)] }),
    ];
    await untilWaiting(port, 2);
    await outsider.query('commit');
    const ended: string[] = [];
    for (const attempt of await Promise.all(crossing)) {
      ended.push(attempt.kind === 'failed' ? attempt.reason : (await attempt.promote()).kind);
    }
    assert.deepEqual(ended.sort(), ['confirmed', 'deadlock']);
    assert.deepEqual(await balances(port), [100 + round, round, round]);
  }
  const both = await Promise.all([port.hold(add(1)), port.hold(add(2))]);
  for (const attempt of both) assert.equal((await demandHeld(attempt).promote()).kind, 'confirmed');
});

test('a session that is lost or late is not lost to the pool', async () => {
  await using port = await openPort(SCHEMA, HELD);
  const sessions = new Sessions(port.options.execution, { max: 1 });
  for (let round = 0; round < 15; round += 1) {
    const session = await sessions.take(20_000);
    assert.ok(session, `round ${round}`);
    const impatient = [1, 2, 4, 8, 16].map((withinMs) => sessions.take(withinMs));
    await sessions.drop(session);
    for (const late of await Promise.all(impatient))
      if (late !== undefined) await sessions.giveBack(late);
  }
  assert.ok(await sessions.take(20_000));
  await sessions.close();
});
