// Goal: an agent works in a task over HTTP, where no connection lasts: its handle is all that names
// the task, and only its own token may use it. Method: one server in this process, a new client for
// every call, in both revisions.
import assert from 'node:assert/strict';
import { test } from 'node:test';
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
