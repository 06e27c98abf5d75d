import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Workflows } from 'effectmatch/workflow';
import { openDatabase } from '../invoice-postgres/server.ts';
import { tell } from '../story.ts';
import { lookAt, treasurer } from './office.ts';

const WORKER = fileURLToPath(new URL('worker.ts', import.meta.url));

/** Starts a month, kills a worker in the middle of it, and waits until the other has finished it. */
export async function runOnWorkers(parts: {
  readonly folder: string;
  readonly workflows: Workflows;
  signAll(run: string): Promise<void>;
}): Promise<void> {
  const { folder, workflows, signAll } = parts;
  await using database = await openDatabase({ kept: false });
  const order = { folder, url: database.url(), publicKey: treasurer.publicKey };
  const start = async (): Promise<ChildProcess> => {
    const child = fork(WORKER, [JSON.stringify(order)]);
    await once(child, 'message');
    return child;
  };
  // The first worker drives the run; the second is there when it dies.
  const first = await start();
  const second = await start();
  try {
    const input = { month: '2026-04', invoices: [7, 8, 9, 10, 11, 12] };
    // This process only records what is to be done. The workers find it.
    await workflows.close();
    await workflows.start('month-end', { id: '2026-04', input });
    await signAll('2026-04');
    const paid = "select id from invoice where status = 'paid' and id > 6";
    while (lookAt(folder, paid).length === 0) await sleep(5);
    first.kill('SIGKILL');
    tell('killed', 'a worker, while it pays');
    for (;;) {
      const { status } = await workflows.report('2026-04');
      if (status === 'done') break;
      if (status === 'failed') {
        // A payment was interrupted before its commit. It left nothing, and its license is spent.
        tell('revised', 'a payment was interrupted; it left nothing, and is signed again');
        await workflows.revise('2026-04');
        await signAll('2026-04');
      }
      await sleep(100);
    }
  } finally {
    for (const child of [first, second]) child.kill('SIGKILL');
  }
}
