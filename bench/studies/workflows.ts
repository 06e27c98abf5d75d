// The cost of a workflow beyond its operations, the time until another worker takes over after one
// died, the cost of a hand-over, and the time until a waiting process learns of a verdict.
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { approver } from '../../src/crypto/approver.ts';
import { postgresLedgers } from '../../src/ledger/postgres/index.ts';
import { lineagesOf } from '../../src/runtime/continuation.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import {
  defineWorkflow,
  inProcess,
  type OperationNode,
  openWorkflows,
  type Workflow,
} from '../../src/workflow/index.ts';
import { integration } from '../../test/integration.ts';
import { startServer } from '../../test/postgres/server.ts';
import { type DbosSite, openDbosSite } from '../../test/workflow/dbos-site.ts';
import { clerk, Desk, deskConfig } from '../../test/workflow/desk.ts';
import { type Cell, medianCell, type Study, type StudyOptions } from '../study.ts';

const NODES = 20;

/** A node that writes a row named after the run and the node. */
function nodeOf(at: number): OperationNode<string> {
  const after = at === 0 ? [] : [`n${at - 1}`];
  return { operation: 'post', after, input: ({ input }) => ({ tag: `${input}.${at}` }) };
}

const nodes = Array.from({ length: NODES }, (_, at) => [`n${at}`, nodeOf(at)] as const);
const chain = defineWorkflow<string>('chain', Object.fromEntries(nodes)) as Workflow;

/** Signs everything that waits in a run. */
async function sign(
  workflows: Awaited<ReturnType<typeof openWorkflows>>,
  run: string,
): Promise<void> {
  const waiting = await workflows.unapproved(run);
  const signer = approver(clerk);
  const licenses = waiting.map(({ proposal }) => signer.sign(proposal, { expiresIn: '1h' }));
  await workflows.approve(run, licenses);
}

/** Waits for a run that must be done; one that ends in another way would be measured wrongly. */
async function untilDone(
  workflows: Awaited<ReturnType<typeof openWorkflows>>,
  run: string,
): Promise<void> {
  for (;;) {
    const { status } = await workflows.report(run);
    if (status === 'done') return;
    if (status === 'failed' || status === 'cancelled') throw new Error(`${run} is ${status}`);
    await sleep(1);
  }
}

/** Milliseconds per node, for the operations alone and as a workflow. */
async function timeNodes(desk: Desk, quick: boolean): Promise<readonly Cell[]> {
  const config = deskConfig(desk.folder, clerk.publicKey);
  await using runtime = await createRuntime(config);
  const { operations } = config;
  const plans = { chain };
  const engine = inProcess({ resume: false, pollMs: 10_000 });
  await using workflows = await openWorkflows({ runtime, operations, plans, engine });
  const alone: number[] = [];
  const together: number[] = [];
  for (let round = 0; round < (quick ? 2 : 10); round += 1) {
    alone.push(await timeAlone(runtime, `alone${round}`));
    const run = `chain${round}`;
    await workflows.start('chain', { id: run, input: run });
    const begun = performance.now();
    await sign(workflows, run);
    await untilDone(workflows, run);
    together.push((performance.now() - begun) / NODES);
  }
  return [
    medianCell('one operation, without a workflow', alone, 'ms'),
    medianCell('one node in process, with signing and reading the report', together, 'ms'),
  ];
}

async function timeAlone(runtime: Runtime, name: string): Promise<number> {
  const begun = performance.now();
  for (let at = 0; at < NODES; at += 1) {
    const input = { tag: `${name}.${at}` };
    const proposal = await runtime.propose('post', input, { task: input.tag, planRevision: 1 });
    const license = approver(clerk).sign(proposal, { expiresIn: '1h' });
    const values = [input.tag, 1];
    const action = { sql: 'insert into entry values (?, ?)', values };
    const { kind } = await runtime.ensure(license, action);
    if (kind !== 'committed') throw new Error(`not committed: ${kind}`);
  }
  return (performance.now() - begun) / NODES;
}

/** Milliseconds for a plain insert of a job and for a hand-over. */
async function timeHandOver(desk: Desk, quick: boolean): Promise<readonly Cell[]> {
  await using server = await startServer();
  const db = await server.createDatabase();
  const login = db.role('ledger');
  const ledger = postgresLedgers(db.url(login));
  await (await ledger.provisioning(db.url(), 'provision')).apply();
  await db.run(`create table job (key text primary key); grant insert on job to "${login}"`);
  const config = { ...deskConfig(desk.folder, clerk.publicKey), store: ledger };
  await using runtime = await createRuntime(config);
  const client = new pg.Client({ connectionString: db.url(login) });
  await client.connect();
  const samples = { plain: [] as number[], handed: [] as number[], waited: [] as number[] };
  for (let at = 0; at < (quick ? 10 : 200); at += 1) {
    const tag = `hand${at}`;
    const about = { task: tag, planRevision: 1, continuations: ['tell'] };
    const license = approver(clerk).sign(await runtime.propose('post', { tag }, about), {
      expiresIn: '1h',
    });
    const [{ occurrence }] = lineagesOf(license);
    let heard = 0;
    const waiting = runtime.wait(occurrence).then(() => {
      heard = performance.now();
    });
    const action = { sql: 'insert into entry values (?, ?)', values: [tag, 1] };
    const terminal = await runtime.ensure(license, action);
    const recorded = performance.now();
    await waiting;
    samples.waited.push(Math.max(0, heard - recorded));
    let begun = performance.now();
    await client.query('insert into public.job values ($1)', [tag]);
    samples.plain.push(performance.now() - begun);
    begun = performance.now();
    await runtime
      .continuation(terminal, 'tell')
      .handOver(({ query, key }) => query('insert into public.job values ($1)', [key]));
    samples.handed.push(performance.now() - begun);
  }
  await client.end();
  return [
    medianCell('plain insert of a job', samples.plain, 'ms'),
    medianCell('hand-over: checks, job and release in one transaction', samples.handed, 'ms'),
    medianCell('wait: from the recorded verdict to the waiting call', samples.waited, 'ms'),
  ];
}

/** Milliseconds from a worker's death until another one holds its run, and per node on DBOS. */
async function timeWorkers(site: DbosSite, quick: boolean): Promise<readonly Cell[]> {
  const client = new pg.Client({ connectionString: site.url });
  await client.connect();
  const samples = { takeOver: [] as number[], node: [] as number[] };
  const rounds = quick ? 1 : 5;
  for (let round = 0; round < rounds; round += 1) {
    const run = `node-${round}`;
    const begun = performance.now();
    const nodes = await approveRun(site, run);
    await site.workflows.wait(run);
    samples.node.push((performance.now() - begun) / nodes);
  }
  for (let round = 0; samples.takeOver.length < rounds; round += 1) {
    const run = `take-${round}`;
    await approveRun(site, run);
    const holder = await untilHeld(client, run, '');
    const victim = site.workers.find(({ pid }) => `worker-${pid}` === holder);
    const killed = performance.now();
    victim?.kill('SIGKILL');
    // If the worker finished the run before it died, there is nothing to take over.
    if ((await untilHeld(client, run, holder ?? '')) !== undefined)
      samples.takeOver.push(performance.now() - killed);
    await site.startWorker();
  }
  await client.end();
  return [
    medianCell(
      'from the death of a worker to its run elsewhere (silentMs 1000)',
      samples.takeOver,
      'ms',
    ),
    medianCell('one node on DBOS, approved by another process', samples.node, 'ms'),
  ];
}

/** Starts a run, signs all of its nodes and returns their number. */
async function approveRun({ office, workflows }: DbosSite, run: string): Promise<number> {
  await office.setGate(run, true);
  await workflows.start('linear-0', { id: run, input: { run, amounts: {} } });
  const waiting = await workflows.unapproved(run);
  const signer = approver(office.clerk);
  const licenses = waiting.map(({ proposal }) => signer.sign(proposal, { expiresIn: '1h' }));
  await workflows.approve(run, licenses);
  return licenses.length;
}

/** Waits until a worker other than `earlier` holds the run; undefined if the run has ended. */
async function untilHeld(
  client: pg.Client,
  run: string,
  earlier: string,
): Promise<string | undefined> {
  const text = `select executor_id, status from dbos.workflow_status
    where workflow_uuid like $1 and status in ('PENDING', 'SUCCESS') order by created_at desc`;
  for (;;) {
    const { rows } = await client.query(text, [`effectmatch:${run}:%`]);
    const [newest] = rows;
    if (newest?.status === 'SUCCESS' && earlier !== '') return undefined;
    const isHeld = newest?.status === 'PENDING' && newest.executor_id !== earlier;
    if (isHeld) return String(newest.executor_id);
    await sleep(2);
  }
}

async function run({ quick, progress }: StudyOptions): Promise<readonly Cell[]> {
  progress('nodes in one process');
  using first = new Desk();
  const inOne = await timeNodes(first, quick);
  progress('hand-overs');
  using second = new Desk();
  const handOvers = await timeHandOver(second, quick);
  progress('workers on DBOS');
  integration('dbos');
  await using site = await openDbosSite(2);
  return [...inOne, ...handOvers, ...(await timeWorkers(site, quick))];
}

/** The cost of workflows. */
export const workflowsStudy: Study = {
  name: 'workflows',
  about:
    'cost of a node, a hand-over and a wait, and the time until another worker takes over a run',
  run,
};
