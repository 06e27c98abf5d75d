// Goal: another session's lock, a deadlock or a serialization failure does not spend a license.
// Method: real runtimes on one server; outside sessions hold locks longer than an operation waits,
// and sixteen writers change the same rows in opposite orders.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { approver, between, generateApprover, update } from '../../../src/index.ts';
import { createRuntime } from '../../../src/runtime/runtime.ts';
import { testKeyring } from '../../keyring.ts';
import { temporaryLedgers } from '../../ledger/temporary.ts';
import { protectedDatabase } from '../../postgres/protected.ts';

const SCHEMA = `create table account (id integer primary key, balance integer not null);
  insert into account values (1, 0), (2, 0)`;

/** A runtime that waits shortly for locks, and a superuser who is not protected by it. */
async function openBank(isolation: 'read committed' | 'serializable' = 'read committed') {
  const settings = {
    relations: ['account'],
    isolation,
    lockTimeoutMs: 1000,
    sessions: { max: 16 },
  };
  const place = await protectedDatabase(SCHEMA, settings);
  const key = generateApprover('team');
  const runtime = await createRuntime({
    store: temporaryLedgers(),
    keyring: testKeyring(),
    issuers: { team: { key: key.publicKey, may: ['bank'] } },
    adapters: { bank: place.factory() },
  });
  return {
    runtime,
    place,
    async approve(task: string) {
      const anything = { balance: [between(0, 1000), between(0, 1000)] } as const;
      const effects = [1, 2].map((id) => update('account', { id }, anything));
      const request = { adapter: 'bank', task, planRevision: 1, effects };
      return approver(key).sign(await runtime.prepare(request), { expiresIn: '10m' });
    },
    async [Symbol.asyncDispose]() {
      await runtime.close();
      await place.db.drop();
    },
  };
}

async function connect({ place }: { readonly place: { readonly db: { url(): string } } }) {
  const client = new pg.Client({ connectionString: place.db.url() });
  await client.connect();
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
}

const add = (id: number) => ({ sql: `update account set balance = balance + 1 where id = ${id}` });

test('a lock that another session holds for five seconds does not spend the license', async () => {
  await using bank = await openBank();
  await using outsider = await connect(bank);
  const license = await bank.approve('transfer');
  await outsider.query('begin; update account set balance = 5 where id = 1');
  const executing = bank.runtime.execute(license, { statements: [add(1), add(2)] });
  await sleep(5000);
  await outsider.query('commit');
  const terminal = await executing;
  assert.equal(terminal.kind, 'committed', JSON.stringify(terminal));
  assert.ok(terminal.kind === 'committed' && (terminal.tries?.length ?? 0) >= 3);
  assert.ok(terminal.tries?.every(({ reason }) => reason === 'busy'));
  const rows = await bank.place.db.run('select balance from account order by id');
  assert.deepEqual(rows, [{ balance: 6 }, { balance: 1 }]);
});

for (const isolation of ['read committed', 'serializable'] as const) {
  test(`${isolation}: sixteen writers in opposite orders all commit, each once`, async () => {
    await using bank = await openBank(isolation);
    const licenses: Awaited<ReturnType<typeof bank.approve>>[] = [];
    for (let writer = 0; writer < 16; writer += 1)
      licenses.push(await bank.approve(`transfer ${writer}`));
    // They all wait for rows that they will then want in opposite orders.
    await using outsider = await connect(bank);
    await outsider.query('begin; update account set balance = balance');
    const writing = Promise.all(
      licenses.map((license, writer) =>
        bank.runtime.execute(license, {
          statements: writer % 2 === 0 ? [add(1), add(2)] : [add(2), add(1)],
        }),
      ),
    );
    await sleep(1500);
    await outsider.query('commit');
    const terminals = await writing;
    for (const terminal of terminals)
      assert.equal(terminal.kind, 'committed', JSON.stringify(terminal));
    const tried = terminals.flatMap((terminal) =>
      'tries' in terminal ? (terminal.tries ?? []) : [],
    );
    assert.ok(tried.length > 0, 'they were in each other’s way');
    const rows = await bank.place.db.run('select balance from account order by id');
    assert.deepEqual(rows, [{ balance: 16 }, { balance: 16 }]);
  });
}
