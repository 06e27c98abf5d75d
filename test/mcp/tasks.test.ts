// Goal: an agent works in a task over HTTP, where no connection lasts: its handle is all that names
// the task, and only its own token may use it. Method: one server in this process, a new client for
// every call, in both revisions.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { issueToken, revokeToken } from '../../src/access/callers.ts';
import { insert } from '../../src/index.ts';
import { call, Office, REVISIONS, type Revision } from './office.ts';

const pay = (payee: string) => ({
  sql: 'insert into payment (id, payee, amount) values (?, ?, 10)',
  values: [1, payee],
});

for (const revision of Object.keys(REVISIONS) as Revision[]) {
  test(`${revision}: a draft and a task of an approved request, each call by another client`, async () => {
    using office = new Office({ tasks: ['books'] });
    await using host = await office.startHttp();
    const ask = async (name: string, input: object, agent: 'clerk' | 'rival' = 'clerk') => {
      await using client = await office.connectHttp(host.url, revision, agent);
      return await call(client, name, input);
    };
    const draft = await ask('task_open', { adapter: 'books' });
    const { task } = draft;
    assert.equal(draft.status, 'open', JSON.stringify(draft));
    assert.equal((await ask('task_call', { task, ...pay('globex') })).status, 'done');
    const stolen = await ask('task_call', { task, sql: 'select * from payment' }, 'rival');
    assert.equal(stolen.code, 'ERR_EM_NOT_FOUND');
    const asked = await ask('task_submit', { task });
    assert.equal(asked.status, 'approval-required');
    assert.deepEqual(office.payments(), []);
    await office.approve(String(asked.request));
    const status = { request: asked.request, waitSeconds: 20 };
    assert.equal((await ask('request_status', status)).status, 'committed');
    assert.deepEqual(office.payments(), ['globex 10']);

    office.db.exec('delete from payment');
    const effects = [insert('payment', { id: 1, payee: 'initech', amount: 10 })];
    const manifest = { adapter: 'books', effects };
    const wanted = await host.requests.ask({ by: 'clerk', run: 'mcp', manifest });
    await office.approve(wanted.id);
    const held = await ask('task_open', { request: wanted.id });
    assert.equal(held.status, 'open', JSON.stringify(held));
    await ask('task_call', { task: held.task, ...pay('initech') });
    assert.equal((await ask('task_finish', { task: held.task }, 'rival')).status, 'refused');
    assert.equal((await ask('task_finish', { task: held.task })).status, 'committed');
    assert.deepEqual(office.payments(), ['initech 10']);
  });
}

type Host = Awaited<ReturnType<Office['startHttp']>>;

/** A request for one payment that a person has approved, without an action. */
async function approvedPayment(office: Office, { requests }: Host): Promise<string> {
  const effects = [insert('payment', { id: 1, payee: 'initech', amount: 10 })];
  const manifest = { adapter: 'books', effects };
  const { id } = await requests.ask({ by: 'clerk', run: 'mcp', manifest });
  await office.approve(id);
  return id;
}

test('a handle is good for the token that opened the task, and ends with it', async () => {
  using office = new Office({ tasks: ['books'] });
  await using host = await office.startHttp();
  const wish = { kind: 'agent', holder: 'clerk' } as const;
  const first = await issueToken(host.requests.tokens, wish);
  const second = await issueToken(host.requests.tokens, wish);
  await using client = await office.connectHttp(host.url, '2026-07-28', first);
  await using other = await office.connectHttp(host.url, '2026-07-28', second);
  const request = await approvedPayment(office, host);
  const { task } = await call(client, 'task_open', { request });
  assert.equal((await call(client, 'task_call', { task, ...pay('initech') })).status, 'done');
  const sql = 'select 1';
  for (const [name, input] of [
    ['task_call', { task, sql }],
    ['task_finish', { task }],
    ['task_submit', { task }],
    ['task_discard', { task }],
  ] as const)
    assert.equal((await call(other, name, input)).code, 'ERR_EM_NOT_FOUND', name);
  await revokeToken(host.requests.tokens, first.stored.id);
  await assert.rejects(call(client, 'task_finish', { task }), /401|token/);
  assert.deepEqual(office.payments(), []);
});

test('clients that finish at once, leave meanwhile or come back get one verdict', async () => {
  using office = new Office({ tasks: ['books'] });
  await using host = await office.startHttp();
  await using client = await office.connectHttp(host.url, '2026-07-28');
  const request = await approvedPayment(office, host);
  const { task } = await call(client, 'task_open', { request });
  await call(client, 'task_call', { task, ...pay('initech') });
  const leaving = new AbortController();
  const { signal } = leaving;
  const left = client.callTool({ name: 'task_finish', arguments: { task } }, { signal });
  const gone = assert.rejects(left);
  const racing = [
    call(client, 'task_finish', { task }),
    call(client, 'task_call', { task, sql: 'delete from payment' }),
    call(client, 'task_discard', { task }),
    call(client, 'task_finish', { task }),
  ];
  leaving.abort();
  const answers = await Promise.all(racing);
  await gone;
  const verdict = (await call(client, 'task_finish', { task })).status;
  for (const index of [0, 3]) assert.equal(answers[index]?.status, verdict);
  // Which of them was first is open. What is durable is what the verdict says.
  const paid = verdict === 'committed' ? ['initech 10'] : [];
  assert.ok(['committed', 'rejected'].includes(verdict), verdict);
  assert.deepEqual(office.payments(), paid);
  const { state } = await host.requests.get(request);
  assert.equal(state, verdict);
});
