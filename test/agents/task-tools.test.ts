// Goal: an agent works in many calls by tools, and nothing becomes durable but what a person has
// approved. Method: the tools of a real host on SQLite files, called as a framework would call them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AgentTool, agentTools, boundTools, type ToolAnswer } from '../../src/agents/index.ts';
import { insert } from '../../src/index.ts';
import { openOffice } from '../requests/office.ts';

type Host = Awaited<ReturnType<ReturnType<typeof openOffice>['start']>>;
type Call = (name: string, input: object) => Promise<ToolAnswer>;

function toolsOf({ requests, runtime }: Host, agent = 'agent', adapter = 'books'): Call {
  const adapters = { [adapter]: { task: true } };
  const tools = agentTools({ requests, runtime, agent, run: 'run 1', adapters });
  return (name, input) => (tools.find((tool) => tool.name === name) as AgentTool).call(input);
}

const pay = (payee: string) => ({
  sql: 'insert into payment (payee, amount) values (?, 10) returning id',
  values: [payee],
});
const EFFECT = insert('payment', { id: 1, payee: 'globex', amount: 10 });

test('a draft is worked on, corrected, submitted, approved and done', async () => {
  using office = openOffice();
  await using host = await office.start();
  const call = toolsOf(host);
  const opened = await call('task_open', { adapter: 'books' });
  assert.equal(opened.status, 'open');
  const { task } = opened;
  assert.match(String(task), /^tsk_[\w-]{32}$/);
  const first = await call('task_call', { task, ...pay('globex') });
  assert.deepEqual([first.status, first.rows], ['done', [{ id: 1 }]]);
  const failed = await call('task_call', { task, sql: 'insert into nowhere values (1)' });
  assert.equal(failed.status, 'failed');
  const seen = await call('task_call', { task, sql: 'select payee from payment' });
  assert.deepEqual(seen.rows, [{ payee: 'globex' }]);
  assert.equal((await call('task_finish', { task })).status, 'refused', 'a draft has no approval');
  assert.deepEqual(office.payments(), []);
  const asked = await call('task_submit', { task, reason: 'invoice 7' });
  assert.equal(asked.status, 'approval-required');
  assert.match(asked.rendering ?? '', /globex/);
  const { proposal } = await host.requests.get(String(asked.request));
  await host.requests.answer(
    String(asked.request),
    office.alice.sign(proposal, { expiresIn: '10m' }),
  );
  assert.equal((await host.requests.execute(String(asked.request))).state, 'committed');
  assert.deepEqual(office.payments(), [{ payee: 'globex', amount: 10 }]);
});

test('nothing says that a task left nothing once it is durable or asked for', async () => {
  using office = openOffice();
  await using host = await office.start();
  const call = toolsOf(host);
  const request = await approvedOutcome(office, host);
  const { task } = await call('task_open', { request });
  await call('task_call', { task, ...pay('globex') });
  assert.equal((await call('task_finish', { task })).status, 'committed');
  const late = await call('task_call', { task, sql: 'select 1' });
  assert.equal(late.status, 'failed');
  assert.doesNotMatch(late.next, /nothing of it/i);
  assert.equal((await call('task_discard', { task })).status, 'committed');
  const draft = await call('task_open', { adapter: 'books' });
  await call('task_call', { task: draft.task, ...pay('initech') });
  const asked = await call('task_submit', { task: draft.task });
  const discarded = await call('task_discard', { task: draft.task });
  assert.equal(discarded.status, 'refused');
  assert.match(discarded.detail ?? '', /its request stands/);
  const again = await call('task_submit', { task: draft.task });
  assert.equal(again.request, asked.request, 'asked for once');
  const reading = await call('task_open', { adapter: 'books' });
  await call('task_call', { task: reading.task, sql: 'select payee from payment' });
  assert.equal((await call('task_submit', { task: reading.task })).status, 'refused');
});

async function approvedOutcome(office: ReturnType<typeof openOffice>, { requests }: Host) {
  const manifest = { adapter: 'books', effects: [EFFECT] };
  const { id, proposal, mode } = await requests.ask({ by: 'agent', run: 'run 1', manifest });
  assert.equal(mode, 'on-task');
  await requests.answer(id, office.alice.sign(proposal, { expiresIn: '10m' }));
  assert.equal((await requests.execute(id)).state, 'approved', 'only the agent carries it out');
  return id;
}

test('an approved outcome is carried out by its agent, and by no other', async () => {
  using office = openOffice();
  await using host = await office.start();
  const [call, rival] = [toolsOf(host), toolsOf(host, 'rival')];
  const request = await approvedOutcome(office, host);
  assert.equal((await rival('task_open', { request })).status, 'refused');
  const elsewhere = toolsOf(host, 'agent', 'archive');
  assert.equal((await elsewhere('task_open', { request })).status, 'refused', 'another adapter');
  const { task, status } = await call('task_open', { request });
  assert.equal(status, 'open');
  assert.equal((await rival('task_call', { task, sql: 'select 1' })).code, 'ERR_EM_NOT_FOUND');
  assert.equal((await call('task_open', { request })).status, 'running');
  await call('task_call', { task, ...pay('globex') });
  assert.equal((await call('task_submit', { task })).status, 'refused');
  const done = await call('task_finish', { task });
  assert.equal(done.status, 'committed', JSON.stringify(done));
  assert.equal((await host.requests.get(request)).state, 'committed');
  assert.deepEqual(office.payments(), [{ payee: 'globex', amount: 10 }]);
  assert.equal((await call('task_open', { request })).status, 'committed');
});

test('what was not approved is rejected with what differs, and discarding leaves nothing', async () => {
  using office = openOffice();
  await using host = await office.start();
  const call = toolsOf(host);
  const request = await approvedOutcome(office, host);
  const { task } = await call('task_open', { request });
  await call('task_call', { task, ...pay('initech') });
  const rejected = await call('task_finish', { task });
  assert.equal(rejected.status, 'rejected');
  assert.match(rejected.diff ?? '', /initech/);
  const draft = await call('task_open', { adapter: 'books' });
  await call('task_call', { task: draft.task, ...pay('globex') });
  assert.equal((await call('task_discard', { task: draft.task })).status, 'discarded');
  const late = await call('task_call', { task: draft.task, sql: 'select 1' });
  assert.match(late.detail ?? '', /task-over/);
  assert.deepEqual(office.payments(), []);
});

test('inputs that name no task, no adapter or too much are refused', async () => {
  using office = openOffice();
  await using host = await office.start();
  const call = toolsOf(host);
  const refused: readonly (readonly [string, object])[] = [
    ['task_open', {}],
    ['task_open', { adapter: 'books', request: 'req_1' }],
    ['task_open', { adapter: 'other' }],
    ['task_open', { request: 'req_1' }],
    ['task_call', { task: 'tsk_guess', sql: 'select 1' }],
    ['task_call', { sql: 'select 1' }],
    ['task_finish', { task: 'tsk_guess', more: 1 }],
  ];
  for (const [name, input] of refused)
    assert.equal((await call(name, input)).status, 'refused', JSON.stringify(input));
});

test('one agent holds four candidates at most, and what ended makes room', async () => {
  using office = openOffice();
  await using host = await office.start();
  const held = Promise.withResolvers<void>();
  const runtime = {
    query: host.runtime.query,
    draft: async (...given: Parameters<Host['runtime']['draft']>) => {
      await held.promise;
      return await host.runtime.draft(...given);
    },
  } as Host['runtime'];
  const call = toolsOf({ ...host, runtime });
  const opening = Array.from({ length: 5 }, () => call('task_open', { adapter: 'books' }));
  assert.equal((await opening[4])?.status, 'refused', 'four are being opened');
  held.resolve();
  // SQLite holds one candidate at a time: each is opened when the one before is discarded.
  for (const one of opening.slice(0, 4)) {
    const { task, status } = await one;
    assert.equal(status, 'open');
    assert.equal((await call('task_discard', { task })).status, 'discarded');
  }
  const { task, status } = await call('task_open', { adapter: 'books' });
  assert.equal(status, 'open');
  await call('task_discard', { task });
});

test('tools that are bound to a task of the host need no handle', async () => {
  using office = openOffice();
  await using host = await office.start();
  const terms = { adapter: 'books', task: 'host', planRevision: 1, effects: [EFFECT] };
  const proposal = await host.runtime.prepare(terms);
  const license = office.alice.sign(proposal, { expiresIn: '10m' });
  const terminal = await host.runtime.task(license, async (task) => {
    const [call, finish] = boundTools(task);
    assert.equal((await call?.call(pay('globex')))?.status, 'done');
    assert.equal((await finish?.call({}))?.status, 'committed');
  });
  assert.equal(terminal.kind, 'committed');
  assert.equal(office.payments().length, 1);
});
