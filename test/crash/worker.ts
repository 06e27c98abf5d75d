import { appendFileSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { STEPS, type Step } from '../../src/contract/steps.ts';
import { EffectMatchError } from '../../src/errors.ts';
import type { Digest, OccurrenceId } from '../../src/protocol/record.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { backendNamed } from './backends/named.ts';
import {
  ADAPTER,
  type Arming,
  CONTINUATION,
  ISSUER,
  type Operation,
  type Request,
  type Site,
  type TaskScript,
} from './commands.ts';

let runtime: Runtime | undefined;
let armed: Arming | undefined;
let loaded: Operation | undefined;
const passed = new Set<Step>();

/** Dies or stops here and now, before another line of the product runs; the log proves where. */
function reached(step: Step): void {
  passed.add(step);
  if (armed?.step !== step) return;
  const { signal, log, passes = 0 } = armed;
  if (passes > 0) {
    armed = { ...armed, passes: passes - 1 };
    return;
  }
  armed = undefined;
  appendFileSync(log, `${step}\n`);
  process.kill(process.pid, signal);
  while (signal === 'SIGKILL') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000);
}

function current(): Runtime {
  if (runtime === undefined) throw new Error('the worker has no open runtime');
  return runtime;
}

async function open(site: Site): Promise<null> {
  const { keyring, issuerKey, leaseMs, folder } = site;
  const backend = await backendNamed(site.backend);
  runtime = await createRuntime(
    {
      store: await ledgerOf(site),
      keyring,
      issuers: { [ISSUER]: { key: issuerKey, may: [ADAPTER] } },
      adapters: { [ADAPTER]: backend.factory(folder) },
      leaseMs,
      recoverAtStart: false,
    },
    { reached },
  );
  await runtime.prove(ADAPTER);
  // What the backend loaded, too: the process may be killed before it could write that.
  flushCompileCache();
  passed.clear();
  return null;
}

async function ledgerOf({ ledger, patienceMs: deadlineMs }: Site) {
  if (deadlineMs === undefined) return ledger;
  const { postgresLedgers } = await import('../../src/ledger/postgres/index.ts');
  return postgresLedgers(ledger, { deadlineMs });
}

async function close(): Promise<null> {
  armed = undefined;
  loaded = undefined;
  await runtime?.close();
  runtime = undefined;
  return null;
}

/**
 * The dependent work is one line in a file: it shows how often it really ran, whatever the ledger
 * believes.
 */
async function release(operation: Operation, releases: string) {
  const from = {
    occurrence: operation.occurrence as OccurrenceId,
    lineage: operation.lineage as Digest,
  };
  const result = await current()
    .continuation(from, CONTINUATION)
    .release(() => appendFileSync(releases, `${operation.n}\n`));
  return result.kind === 'released' ? { kind: 'released' } : { kind: 'halted', why: result.why };
}

async function stream(
  id: number,
  operations: readonly Operation[],
  releases: string,
): Promise<number> {
  for (const operation of operations) {
    const terminal = await current().execute(operation.license, operation.action);
    if (terminal.kind === 'committed') await release(operation, releases);
    process.send?.({ id, kind: 'progress' });
  }
  return operations.length;
}

/** Statements and calls that every backend understands, and that fail there. */
const FAILING = [
  { sql: 'insert into nowhere values (1)' },
  { operations: [{ remove: { path: 'nowhere' } }] },
  { calls: [{ tool: 'nowhere' }] },
];

function runTask({ license, action }: Operation) {
  return current().task(license, async (task) => {
    for (const failing of FAILING) await task.call(failing);
    await task.call(action);
    for (const failing of FAILING) await task.call(failing);
  });
}

async function playTask({ license, action }: Operation, { calls, end }: TaskScript) {
  const deadlineMs = end === 'wait' ? 300 : 60_000;
  const task = await current().open(license, { deadlineMs });
  if (task.kind !== 'open') return task;
  for (const call of calls)
    for (const made of call === 'action' ? [action] : FAILING) await task.call(made);
  if (end === 'wait') return task.ended;
  return end === 'finish' ? task.finish() : task.discard();
}

async function answer(request: Request): Promise<unknown> {
  switch (request.name) {
    case 'open':
      return open(request.site);
    case 'arm':
      armed = request.arming ?? undefined;
      return null;
    case 'execute':
      return current().execute(request.operation.license, request.operation.action);
    case 'task':
      return runTask(request.operation);
    case 'play':
      return playTask(request.operation, request.script);
    case 'ensure':
      return current().ensure(request.operation.license, request.operation.action);
    case 'stream':
      return stream(request.id, request.operations, request.releases);
    case 'load':
      loaded = request.operation;
      return null;
    case 'fire':
      if (loaded === undefined) throw new Error('no operation is loaded');
      return current().execute(loaded.license, loaded.action);
    case 'recover':
      return current().recover({ now: true });
    case 'release':
      return release(request.operation, request.releases);
    case 'terminal':
      return (await current().terminal(request.operation.occurrence as OccurrenceId)) ?? null;
    case 'verify':
      return current().verifyJournal();
    case 'steps':
      return STEPS.filter((step) => passed.has(step));
    case 'close':
      return close();
  }
}

process.on('message', async (request: Request) => {
  const { id } = request;
  try {
    process.send?.({ id, kind: 'done', value: await answer(request) });
  } catch (error) {
    const code = error instanceof EffectMatchError ? error.code : 'unexpected';
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
    process.send?.({ id, kind: 'failed', code, message });
  }
});
// A parent that dies takes its children with it, stopped ones excepted, which the parent's own
// clean-up ends.
process.on('disconnect', () => process.exit(0));
// Written now, because a process that is killed never gets to do it when it exits.
flushCompileCache();
process.send?.({ id: 0, kind: 'done', value: null });
