// A deployment on DBOS: the four backends, a ledger in PostgreSQL, and worker processes.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Office, officeConfig, openOffice } from '../../bench/studies/topologies/office.ts';
import { postgresLedgers } from '../../src/ledger/postgres/index.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { IDLE } from '../../src/workflow/engine.ts';
import { openWorkflows, type Workflows } from '../../src/workflow/index.ts';
import { freshDatabase, type TestDatabase } from '../postgres/server.ts';
import { sitePlans, toldFile } from './dbos-plans.ts';

export interface DbosSite extends AsyncDisposable {
  readonly office: Office;
  readonly runtime: Runtime;
  readonly workflows: Workflows;
  /** The database that DBOS uses. */
  readonly url: string;
  /** What the workers could not do and try again. */
  readonly faults: string[];
  /** What releases of one run have left: lines of a file, and keys of jobs. */
  releasesOf(run: string): Promise<{ readonly told: number; readonly jobs: readonly string[] }>;
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
  const business = await create();
  const office = await openOffice(folder, (database) => createLedger(database), business);
  const config = officeConfig(office.facts);
  const runtime = await createRuntime(config);
  await runtime.prove('bank');
  const { operations } = config;
  const plans = sitePlans(folder);
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
    if (!Object.hasOwn(Object(message), 'ready')) throw new Error('a worker did not start');
    return child;
  };
  await Promise.all(Array.from({ length: workers }, startWorker));
  return {
    ...{ office, runtime, workflows, url, faults, workers: running, startWorker },
    async releasesOf(run) {
      const lines = existsSync(toldFile(folder)) ? readFileSync(toldFile(folder), 'utf8') : '';
      const told = lines.split('\n').filter((line) => line === run).length;
      const rows = await business.run(`select key from queue.job where run = '${run}'`);
      return { told, jobs: rows.map(({ key }) => String(key)) };
    },
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

/** A ledger in the database of the business, with a queue that its login may add jobs to. */
async function createLedger(database: TestDatabase): Promise<string> {
  const login = database.role('ledger');
  const ledger = database.url(login);
  await (await postgresLedgers(ledger).provisioning(database.url(), 'provision')).apply();
  await database.run(`create schema queue; create table queue.job (key text, run text);
    grant usage on schema queue to "${login}"; grant insert on queue.job to "${login}"`);
  return ledger;
}
