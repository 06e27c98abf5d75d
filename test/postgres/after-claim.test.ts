// Goal: what becomes of a PostgreSQL database after the claim ends in a recorded verdict, never in
// an exception. Method: real servers; relations change after signing, or the server is killed at a
// step of the execution.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Step } from '../../src/contract/steps.ts';
import { approver, generateApprover } from '../../src/crypto/approver.ts';
import { insert } from '../../src/protocol/draft.ts';
import { createRuntime } from '../../src/runtime/runtime.ts';
import { testKeyring } from '../keyring.ts';
import { temporaryLedgers } from '../ledger/temporary.ts';
import { descendantsOf, signal } from './processes.ts';
import { type ProtectedDatabase, protectedDatabase } from './protected.ts';
import { startServer } from './server.ts';

const KEY = generateApprover('team');
const ACTION = { sql: 'insert into entry values (1)' };

async function office(site: ProtectedDatabase, reached: (step: Step) => void = () => {}) {
  const runtime = await createRuntime(
    {
      store: temporaryLedgers(),
      keyring: testKeyring(),
      issuers: { team: { key: KEY.publicKey, may: ['books'] } },
      adapters: { books: site.factory() },
    },
    { reached },
  );
  const effects = [insert('entry', { id: 1 })];
  const proposal = await runtime.prepare({
    adapter: 'books',
    task: 'entry',
    planRevision: 1,
    effects,
  });
  return { runtime, license: await approver(KEY).sign(proposal, { expiresIn: '10m' }) };
}

test('SQL that is not admitted is a rejection in the journal with what was tried, and spends no license', async () => {
  await using site = await protectedDatabase('create table entry (id integer primary key)', {
    relations: ['entry'],
  });
  const { runtime, license } = await office(site);
  try {
    for (const sql of [
      'notify somebody',
      'insert into entry values (1); delete from entry',
      'insert into',
    ]) {
      const terminal = await runtime.execute(license, { sql });
      assert.ok(terminal.kind === 'rejected', JSON.stringify(terminal));
      assert.deepEqual([terminal.at, terminal.reason], ['action', 'action-invalid']);
      assert.ok(terminal.detail.includes(sql), terminal.detail);
      assert.deepEqual((await runtime.ledgers.attempts(terminal.occurrence)).at(-1), terminal);
    }
    assert.equal((await runtime.execute(license, ACTION)).kind, 'committed');
  } finally {
    await runtime.close();
  }
});

const CHANGES = {
  'a rule': 'create rule quiet as on insert to entry do also nothing',
  'a foreign partition': `create extension if not exists postgres_fdw;
    create server elsewhere foreign data wrapper postgres_fdw;
    create foreign table part partition of parted for values from (0) to (9) server elsewhere`,
  'another type': 'drop table entry; create view entry as select 1 as id',
};

for (const [what, sql] of Object.entries(CHANGES)) {
  test(`a relation that has got ${what} since it was signed is a rejection in the journal`, async () => {
    await using site = await protectedDatabase(
      `create table entry (id integer primary key);
       create table parted (id integer not null) partition by range (id)`,
      { relations: ['entry', 'parted'] },
    );
    const { runtime, license } = await office(site);
    try {
      await site.db.run(sql);
      const terminal = await runtime.execute(license, ACTION);
      assert.equal(terminal.kind, 'rejected', JSON.stringify(terminal));
      assert.deepEqual(await runtime.terminal(terminal.occurrence), terminal);
      assert.deepEqual(await runtime.recover({ now: true }), []);
    } finally {
      await runtime.close();
    }
  });
}

for (const [step, kinds, reasons] of [
  // Where the survey was answered before, opening the stage is the first to fail.
  ['path:claimed', ['rejected'], ['fault', 'unavailable']],
  ['path:staged', ['rejected', 'indeterminate'], ['fault']],
  ['path:permit-bound', ['rejected', 'indeterminate'], ['fault']],
] as const) {
  test(`a server that is killed at ${step} leaves a verdict, and recovery needs no lease to run out`, async () => {
    await using server = await startServer();
    const db = await server.createDatabase();
    await using site = await protectedDatabase(
      'create table entry (id integer primary key)',
      { relations: ['entry'] },
      { db },
    );
    let armed = false;
    const { runtime, license } = await office(site, (reached) => {
      if (!armed || reached !== step) return;
      for (const pid of [server.pid ?? 0, ...descendantsOf(server.pid ?? 0)])
        signal(pid, 'SIGKILL');
    });
    armed = true;
    const terminal = await runtime.execute(license, ACTION);
    armed = false;
    assert.ok((kinds as readonly string[]).includes(terminal.kind), JSON.stringify(terminal));
    if (terminal.kind === 'rejected')
      assert.ok((reasons as readonly string[]).includes(terminal.reason), terminal.detail);
    assert.deepEqual(await runtime.terminal(terminal.occurrence), terminal);
    await server.kill();
    await server.restart();
    await runtime.recover();
    const last = await runtime.terminal(terminal.occurrence);
    assert.equal(last?.kind, 'rejected', JSON.stringify(last));
    assert.deepEqual(await db.run('select from entry'), []);
    await runtime.close();
  });
}
