// Goal: the example with graphile-worker hands work over exactly once. Method: the example's own
// functions, a real queue in the database of the ledger, and many that hand over the same work.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { postgresLedgers } from '../../src/ledger/postgres/index.ts';
import type { Terminal } from '../../src/protocol/terminal.ts';
import type { Lineage, Release } from '../../src/runtime/continuation.ts';
import type { Runtime } from '../../src/runtime/runtime.ts';
import { skipWithout } from '../integration.ts';
import { createStore, ledgerDatabase } from '../ledger/postgres-store.ts';
import { deploy, invoiceWorld, ofKind, PAY } from '../runtime/deploy.ts';

/** The example, which is checked together with its packages. */
interface Queue {
  permitHandOver(login: string): string;
  prepareQueue(url: string): Promise<void>;
  handOver(runtime: Runtime, terminal: Terminal): Promise<Release<string>>;
  startWorker(
    url: string,
    runtime: Runtime,
    work: (from: Lineage) => Promise<void>,
  ): Promise<{ stop(): Promise<void> }>;
}
const EXAMPLE = new URL('../../integrations/dbos/queue.ts', import.meta.url).href;

after(async () => await (await ledgerDatabase()).drop());

test('the job runs once, under the key of its release, and its receipt ends it', {
  skip: skipWithout('dbos'),
}, async () => {
  const queue = (await import(EXAMPLE)) as Queue;
  const db = await ledgerDatabase();
  const { url, schema } = await createStore();
  await queue.prepareQueue(db.url());
  await db.run(queue.permitHandOver(new URL(url).username));
  await using deployed = await deploy(invoiceWorld(), { store: postgresLedgers(url, { schema }) });
  const { runtime } = deployed;
  const license = await deployed.approve({ continuations: ['reconcile'] });
  const terminal = ofKind('committed', await runtime.execute(license, PAY));
  const handed = await Promise.all(
    Array.from({ length: 5 }, () => queue.handOver(runtime, terminal)),
  );
  assert.equal(handed.filter(({ kind }) => kind === 'released').length, 1);
  const jobs = await db.run('select key from graphile_worker.jobs');
  assert.deepEqual(jobs, [{ key: `${terminal.occurrence}/reconcile` }]);
  assert.equal((await runtime.continuations()).length, 1);

  const done: string[] = [];
  const worker = await queue.startWorker(db.url(), runtime, async ({ occurrence }) => {
    done.push(occurrence);
    if (done.length === 1) throw new Error('the first delivery fails');
  });
  await db.run('update graphile_worker._private_jobs set run_at = now()');
  const until = performance.now() + 20_000;
  while ((await runtime.continuations()).length > 0 && performance.now() < until) {
    await db.run('update graphile_worker._private_jobs set run_at = now() where locked_at is null');
    await sleep(50);
  }
  await worker.stop();
  assert.deepEqual(done, [terminal.occurrence, terminal.occurrence], 'delivered until it is done');
  const receipt = await runtime.receipt(terminal.occurrence, { continuation: 'reconcile' });
  assert.notEqual(receipt, undefined);
  assert.deepEqual(await runtime.continuations(), []);
});

test('the examples with DBOS and graphile-worker compile against these packages', {
  skip: skipWithout('dbos'),
}, () => {
  const root = join(import.meta.dirname, '../..');
  const tsc = join(root, 'node_modules/.bin/tsc');
  const folder = join(root, 'integrations/dbos');
  const { status, stdout } = spawnSync(tsc, ['-p', folder, '--noEmit'], { encoding: 'utf8' });
  assert.equal(status, 0, stdout);
});
