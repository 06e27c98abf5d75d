// Hands dependent work over to graphile-worker: the job and the release are committed together,
// because the queue is in the database of the ledger.
import type { HandOverTransaction, Lineage, Runtime, Terminal } from 'effectmatch';
import { type Runner, run, runMigrations } from 'graphile-worker';

/**
 * What an administrator runs once, after graphile-worker has made its tables: the ledger's login may
 * add this one job, and nothing else.
 */
export const permitHandOver = (login: string) => `
  create schema if not exists queue;
  create or replace function queue.add_reconciliation(key text, payload json) returns void
    language sql security definer set search_path = pg_catalog, pg_temp
    begin atomic
      select graphile_worker.add_job('reconcile', payload, job_key => key);
    end;
  revoke all on function queue.add_reconciliation from public;
  grant usage on schema queue to "${login}";
  grant execute on function queue.add_reconciliation to "${login}"`;

/** Makes the tables of the queue. */
export async function prepareQueue(connectionString: string): Promise<void> {
  await runMigrations({ connectionString });
}

/** Called once the operation is committed; calling it again inserts nothing. */
export async function handOver(runtime: Runtime, terminal: Terminal) {
  const { occurrence, lineage } = terminal;
  const insert = async ({ query, key }: HandOverTransaction) => {
    const payload = JSON.stringify({ occurrence, lineage });
    await query('select queue.add_reconciliation($1, $2)', [key, payload]);
    return key;
  };
  return await runtime.continuation(terminal, 'reconcile').handOver(insert);
}

/** A worker of the queue. It may deliver a job twice; the receipt is recorded once. */
export async function startWorker(
  connectionString: string,
  runtime: Runtime,
  reconcile: (from: Lineage) => Promise<void>,
): Promise<Runner> {
  return await run({
    connectionString,
    pollInterval: 100,
    noHandleSignals: true,
    taskList: {
      reconcile: async (payload) => {
        const from = payload as Lineage;
        await runtime.continuation(from, 'reconcile').perform(() => reconcile(from));
      },
    },
  });
}
