// A deployment on DBOS: the four backends, a ledger in PostgreSQL, and worker processes.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Office, officeConfig, openOffice } from '../../bench/studies/topologies/office.ts';
import { allPlans } from '../../bench/studies/topologies/plans.ts';
import { postgresLedgers } from '../../src/ledger/postgres/index.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { IDLE } from '../../src/workflow/engine.ts';
import { openWorkflows, type Workflows } from '../../src/workflow/index.ts';
import { freshDatabase, type TestDatabase } from '../postgres/server.ts';

export interface DbosSite extends AsyncDisposable {
  readonly office: Office;
  readonly runtime: Runtime;
  readonly workflows: Workflows;
  /** The database that DBOS uses. */
  readonly url: string;
  /** What the workers could not do and try again. */
  readonly faults: string[];
  /** The workers that were started and not killed. */
  readonly workers: ChildProcess[];
  startWorker(): Promise<ChildProcess>;
}

/**
 * Opens the deployment. DBOS has another database than the business: its migrations would change the
 * catalogue that the adapter certifies. `create` makes a database, if not on the shared server.
 */
export async function openDbosSite(
  workers: number,
  create: () => Promise<TestDatabase> = freshDatabase,
): Promise<DbosSite> {
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-dbos-'));
  const engine = await create();
  const url = engine.url();
  const office = await openOffice(
    folder,
    async (database) => {
      const ledger = database.url(database.role('ledger'));
      await (await postgresLedgers(ledger).provisioning(database.url(), 'provision')).apply();
      return ledger;
    },
    await create(),
  );
  const config = officeConfig(office.facts);
  const runtime = await createRuntime(config);
  await runtime.prove('bank');
  const { operations } = config;
  const plans = allPlans();
  const workflows = await openWorkflows({ runtime, operations, plans, engine: IDLE });
  const running: ChildProcess[] = [];
  const faults: string[] = [];
  const startWorker = async (): Promise<ChildProcess> => {
    const order = JSON.stringify({ facts: office.facts, url });
    const script = join(import.meta.dirname, 'dbos-worker.ts');
    const child = fork(script, [order], { execArgv: ['--no-warnings'] });
    running.push(child);
    child.once('exit', () => running.splice(running.indexOf(child), 1));
    child.on('message', (message: { readonly fault?: string }) => {
      if (message.fault !== undefined) faults.push(message.fault);
    });
    const [message] = await Promise.race([once(child, 'message'), once(child, 'exit')]);
    // A worker may find its database too busy to open; a supervisor would start it again too.
    return Object.hasOwn(Object(message), 'ready') ? child : await startWorker();
  };
  await Promise.all(Array.from({ length: workers }, startWorker));
  return {
    ...{ office, runtime, workflows, url, faults, workers: running, startWorker },
    async [Symbol.asyncDispose]() {
      const ended = [...running].map(async (child) => {
        child.kill('SIGKILL');
        if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
      });
      await Promise.all(ended);
      await workflows.close();
      await runtime.close();
      await office[Symbol.asyncDispose]();
      await engine.drop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
