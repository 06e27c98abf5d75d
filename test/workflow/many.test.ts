// Goal: however many processes are handed the same licenses, each has one effect, one verdict and
// one release; a workflow hands a job over whole or not at all. Method: a ledger in PostgreSQL. EFFECTMATCH_OCCURRENCES=1000 and
// EFFECTMATCH_PROCESSES=64 make it larger.
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { approver } from '../../src/crypto/approver.ts';
import { postgresLedgers } from '../../src/ledger/postgres/index.ts';
import { createRuntime } from '../../src/runtime/runtime.ts';
import { IDLE } from '../../src/workflow/engine.ts';
import { defineWorkflow } from '../../src/workflow/index.ts';
import { freshDatabase } from '../postgres/server.ts';
import { clerk, Desk, deskConfig, openFlow } from './desk.ts';

const OCCURRENCES = Number(process.env.EFFECTMATCH_OCCURRENCES ?? 40);
const PROCESSES = Number(process.env.EFFECTMATCH_PROCESSES ?? 8);
const database = freshDatabase();
after(async () => await (await database).drop());

/** A ledger in this schema, with a login that no other has. */
async function createLedger(schema: string) {
  const db = await database;
  const login = db.role(schema);
  const store = db.url(login);
  const ledger = postgresLedgers(store, { schema });
  await (await ledger.provisioning(db.url(), 'provision')).apply();
  return { db, login, store, ledger };
}

async function share(occurrences: number, processes: number): Promise<void> {
  using desk = new Desk();
  const schema = `ledger_${processes}_${occurrences}`;
  const { store, ledger } = await createLedger(schema);
  const config = { ...deskConfig(desk.folder, clerk.publicKey), store: ledger };
  await using runtime = await createRuntime(config);
  const work = [];
  for (let at = 0; at < occurrences; at += 1) {
    const task = { task: `t${at}`, planRevision: 1, continuations: ['tell'] };
    const proposal = await runtime.propose('post', { tag: `t${at}` }, task);
    const license = approver(clerk).sign(proposal, { expiresIn: '1h' });
    const action = { sql: 'insert into entry values (?, ?)', values: [`t${at}`, 1] };
    work.push({ license, action });
  }
  writeFileSync(join(desk.folder, 'work.json'), JSON.stringify(work));
  const counts = await Promise.all(
    Array.from({ length: processes }, async (_, index) => {
      const from = Math.floor((index * occurrences) / processes);
      const words = [desk.folder, clerk.publicKey, store, String(from), schema];
      const script = join(import.meta.dirname, 'many-child.ts');
      const child = fork(script, words, { execArgv: ['--no-warnings'] });
      const [message] = await once(child, 'message');
      await once(child, 'exit');
      return message as { readonly released: number; readonly committed: number };
    }),
  );
  const total = (name: 'released' | 'committed') => counts.reduce((sum, one) => sum + one[name], 0);
  assert.equal(total('released'), occurrences, 'one release each');
  assert.equal(total('committed'), occurrences * processes, 'everyone gets the verdict');
  assert.equal(desk.rows().length, occurrences, 'one effect each');
  const rows = await runtime.ledgers.journal({ limit: 100_000 });
  const kinds = (kind: string) => rows.filter((row) => row.kind === kind).length;
  assert.deepEqual([kinds('claim'), kinds('terminal')], [occurrences, occurrences]);
  assert.equal(kinds('acknowledgement'), 2 * occurrences);
  assert.equal((await runtime.verifyJournal()).kind, 'intact');
}

test(`4 processes, ${OCCURRENCES} occurrences: as many effects, terminals and releases`, async () => {
  await share(OCCURRENCES, 4);
});

test(`${PROCESSES} processes and one license: one effect`, async () => {
  await share(1, PROCESSES);
});

test('a job that a workflow cannot hand over is an error that leaves no release; later it is handed over once', async () => {
  using desk = new Desk();
  const { db, login, ledger } = await createLedger('ledger_jobs');
  const plan = defineWorkflow('jobs', {
    post: { operation: 'post', input: () => ({ tag: 'posted' }) },
    ship: {
      of: 'post',
      handOver: ({ query, key }) => query('insert into public.job values ($1)', [key]),
    },
    last: { operation: 'post', after: 'ship', input: () => ({ tag: 'last' }) },
  });
  const faults: unknown[] = [];
  const onFault = (_: string, error: unknown) => void faults.push(error);
  await using flow = await openFlow(desk, [plan], {
    ...{ engine: IDLE, onFault, config: { store: ledger } },
  });
  const { workflows, runtime } = flow;
  await workflows.start('jobs', { id: 'r' });
  await workflows.approve('r', await flow.sign('r'));
  for (let drive = 0; drive < 2; drive += 1)
    await assert.rejects(workflows.drive('r'), { code: 'ERR_EM_HAND_OVER_FAILED' });
  const failed = await workflows.report('r');
  assert.deepEqual(failed.needsResolution, []);
  assert.deepEqual(
    failed.waiting.map(({ instance, state }) => `${instance} ${state}`),
    ['ship waiting', 'last waiting'],
  );
  assert.deepEqual(await runtime.continuations(), [], 'nothing was released');

  await db.run(`create table public.job (key text); grant insert on public.job to "${login}"`);
  const both = await Promise.all([workflows.drive('r'), workflows.drive('r')]);
  assert.deepEqual(
    both.map(({ status }) => status),
    ['waiting', 'waiting'],
  );
  const { occurrence } = both[0]?.durable[0] ?? assert.fail();
  assert.deepEqual(await db.run('select key from public.job'), [{ key: `${occurrence}/ship` }]);
  const [ship] = both[0]?.waiting ?? [];
  assert.equal(ship?.for, 'a worker of its queue');
  const [open] = await runtime.continuations();
  assert.ok(open !== undefined);
  await runtime.continuation(open, 'ship').perform(() => {});
  assert.equal((await workflows.drive('r')).status, 'done');
  assert.deepEqual(desk.rows(), ['last=1', 'posted=1']);
});
