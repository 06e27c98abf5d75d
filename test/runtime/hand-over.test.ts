// Goal: a job is in the queue exactly where its release is in the ledger, and delayed work counts
// only once its receipt is recorded. Method: a ledger and a queue in one PostgreSQL database;
// hand-overs that fail, compete, are repeated, and are reopened by an operator.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { generateApprover } from '../../src/crypto/approver.ts';
import { verifyReceipt } from '../../src/crypto/receipt.ts';
import { signReopening } from '../../src/crypto/signed-decision.ts';
import { postgresLedgers } from '../../src/ledger/postgres/index.ts';
import type { HandOverTransaction } from '../../src/runtime/continuation.ts';
import { createStore, ledgerDatabase } from '../ledger/postgres-store.ts';
import { type Deployed, deploy, invoiceWorld, ofKind, PAY } from './deploy.ts';

after(async () => await (await ledgerDatabase()).drop());

const OPERATOR = generateApprover('olga');

/** A deployment whose ledger is next to a queue: a table in which a key is unique. */
async function openOffice() {
  const db = await ledgerDatabase();
  const { url, schema } = await createStore();
  const queue = `queue_${schema}`;
  const login = new URL(url).username;
  await db.run(`create schema ${queue};
    create table ${queue}.job (key text primary key, payload text);
    grant usage on schema ${queue} to "${login}";
    grant select, insert on ${queue}.job to "${login}"`);
  const deployed = await deploy(invoiceWorld(), {
    store: postgresLedgers(url, { schema }),
    operators: { olga: { key: OPERATOR.publicKey } },
  });
  const insert = async (transaction: HandOverTransaction) => {
    const text = `insert into ${queue}.job values ($1, $2) returning key, payload`;
    const [job] = await transaction.query(text, [transaction.key, null]);
    return job;
  };
  const jobs = async () =>
    (await db.run(`select key from ${queue}.job order by key`)).map(({ key }) => key);
  return { deployed, insert, jobs, queue };
}

async function commit(deployed: Deployed) {
  const continuations = ['reconcile', 'ship'];
  return ofKind(
    'committed',
    await deployed.runtime.execute(await deployed.approve({ continuations }), PAY),
  );
}

test('the job and the release are committed together, once, under the key of the work', async () => {
  const { deployed, insert, jobs } = await openOffice();
  await using _ = deployed;
  const terminal = await commit(deployed);
  const gate = deployed.runtime.continuation(terminal, 'reconcile');
  const key = `${terminal.occurrence}/reconcile`;
  assert.deepEqual(await gate.perform(() => assert.fail('it was not handed over')), {
    kind: 'halted',
    why: 'not-released',
  });
  assert.deepEqual(await gate.handOver(insert), {
    kind: 'released',
    value: { key, payload: null },
  });
  for (const again of [gate.handOver(insert), gate.release(() => assert.fail('it ran'))])
    assert.deepEqual(await again, { kind: 'halted', why: 'already-released' });
  assert.deepEqual(await jobs(), [key]);
  const [open] = await deployed.runtime.continuations();
  assert.equal(open?.continuation, 'reconcile');
});

test('of many that compete for one release, one inserts its job and the others leave nothing', async () => {
  const { deployed, insert, jobs, queue } = await openOffice();
  await using _ = deployed;
  const terminal = await commit(deployed);
  const gate = deployed.runtime.continuation(terminal, 'reconcile');
  const attempts = Array.from({ length: 8 }, (_, at) =>
    gate.handOver(({ query }) => query(`insert into ${queue}.job values ($1)`, [`attempt ${at}`])),
  );
  const kinds = (await Promise.all(attempts)).map(({ kind }) => kind);
  assert.deepEqual(kinds.sort(), [...Array(7).fill('halted'), 'released']);
  assert.equal((await jobs()).length, 1);

  const same = deployed.runtime.continuation(terminal, 'ship');
  const alike = await Promise.all(Array.from({ length: 8 }, () => same.handOver(insert)));
  assert.equal(alike.filter(({ kind }) => kind === 'released').length, 1, 'under one unique key');
  assert.equal((await jobs()).length, 2);
});

test('a job that cannot be inserted leaves no release, and can be handed over again', async () => {
  const { deployed, insert, jobs, queue } = await openOffice();
  await using _ = deployed;
  const terminal = await commit(deployed);
  const gate = deployed.runtime.continuation(terminal, 'reconcile');
  const wrong = { code: 'ERR_EM_HAND_OVER_FAILED' };
  await assert.rejects(
    gate.handOver(async (tx) => {
      await insert(tx);
      await tx.query(`insert into ${queue}.nowhere values (1)`);
    }),
    wrong,
  );
  const failure = new Error('the payload is too large');
  const failing = async (tx: HandOverTransaction) => {
    await insert(tx);
    throw failure;
  };
  await assert.rejects(gate.handOver(failing), failure);
  for (const control of ['commit', ' Rollback', 'begin'])
    await assert.rejects(
      gate.handOver(({ query }) => query(control)),
      { code: 'ERR_EM_USAGE' },
    );
  assert.deepEqual(await jobs(), []);
  assert.deepEqual(await deployed.runtime.continuations(), []);
  assert.equal((await gate.handOver(insert)).kind, 'released');
  assert.equal((await jobs()).length, 1);
});

test('a ledger in a file cannot hand over, and says so before anything is released', async () => {
  await using deployed = await deploy(invoiceWorld());
  const terminal = await commit(deployed);
  const gate = deployed.runtime.continuation(terminal, 'reconcile');
  await assert.rejects(
    gate.handOver(() => assert.fail('it was called')),
    { code: 'ERR_EM_USAGE', message: /PostgreSQL/ },
  );
  assert.equal((await gate.release(() => {})).kind, 'released');
});

test('what depends on delayed work waits for its receipt, which verifies without the ledger', async () => {
  const { deployed, insert } = await openOffice();
  await using _ = deployed;
  const { runtime } = deployed;
  const terminal = await commit(deployed);
  const [delayed, dependent] = ['reconcile', 'ship'].map((name) =>
    runtime.continuation(terminal, name),
  );
  const ship = () => dependent?.release(() => 'shipped', { after: ['reconcile'] });
  const halted = { kind: 'halted', why: 'not-completed' };
  assert.deepEqual(await ship(), halted, 'nothing was handed over');
  await delayed?.handOver(insert);
  assert.deepEqual(await ship(), halted, 'the job waits in the queue');
  assert.equal(
    await runtime.receipt(terminal.occurrence, { continuation: 'reconcile' }),
    undefined,
  );
  const failure = new Error('the bank is closed');
  await assert.rejects(delayed?.perform(() => Promise.reject(failure)) ?? assert.fail(), failure);
  assert.deepEqual(await ship(), halted, 'the job failed');
  assert.deepEqual(await delayed?.perform(() => 7), { kind: 'released', value: 7 });
  const again = await delayed?.perform(() => assert.fail('it ran again'));
  assert.deepEqual(again, { kind: 'halted', why: 'already-completed' });
  assert.deepEqual(await ship(), { kind: 'released', value: 'shipped' });
  const receipt = await runtime.receipt(terminal.occurrence, { continuation: 'reconcile' });
  const verified = verifyReceipt(runtime.receiptKeys, receipt);
  assert.ok(verified.kind === 'completion');
  assert.equal(verified.completion.continuation, 'reconcile');
  assert.equal(verified.completion.lineage, terminal.lineage);
});

test('work that never completed is released again only by a signed decision, once for each', async () => {
  const { deployed, insert, jobs, queue } = await openOffice();
  await using _ = deployed;
  const { runtime } = deployed;
  const terminal = await commit(deployed);
  const { occurrence, lineage } = terminal;
  const gate = runtime.continuation(terminal, 'reconcile');
  const work = { occurrence, lineage, continuation: 'reconcile', turn: 2, evidence: 'lost' };
  const olga = { operator: 'olga', privateKey: OPERATOR.privateKey };
  const decision = signReopening(olga, work);
  const refused = (why: RegExp) => ({ code: 'ERR_EM_RESOLUTION_REFUSED', message: why });
  await assert.rejects(runtime.reopen(decision, 'lost'), refused(/not been released/));
  await gate.handOver(insert);
  const forged = signReopening({ ...olga, privateKey: generateApprover('eve').privateKey }, work);
  await assert.rejects(runtime.reopen(forged, 'lost'), refused(/signature/));
  await assert.rejects(runtime.reopen({ ...decision, turn: 3 }, 'lost'), refused(/signature/));
  await assert.rejects(runtime.reopen(decision, 'other'), refused(/evidence/));
  const skipped = signReopening(olga, { ...work, turn: 3 });
  await assert.rejects(runtime.reopen(skipped, 'lost'), refused(/number 2/));
  await runtime.reopen(decision, 'lost');
  const second = (tx: HandOverTransaction) =>
    tx.query(`insert into ${queue}.job values ($1)`, ['second']);
  assert.equal((await gate.handOver(second)).kind, 'released');
  assert.deepEqual(await gate.handOver(second), { kind: 'halted', why: 'already-released' });
  assert.deepEqual(await jobs(), [`${occurrence}/reconcile`, 'second']);
  const [open, more] = await runtime.continuations();
  assert.equal(open?.turn, 2);
  assert.equal(more, undefined, 'it is listed once');
  await gate.perform(() => {});
  assert.deepEqual(await runtime.continuations(), []);
  const late = signReopening(olga, { ...work, turn: 3 });
  await assert.rejects(runtime.reopen(late, 'lost'), refused(/completed/));
  assert.equal((await runtime.verifyJournal()).kind, 'intact');
});
