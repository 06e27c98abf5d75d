// Goal: a server that is killed at any step of a call leaves a state that is true after the restart,
// and nothing durable that was not approved. Method: SIGKILL at every step of the execution, and
// after the answer about a question is known; a second server then answers the same agent.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { call, Office, PAY, pay } from './office.ts';

const SERVER = fileURLToPath(new URL('./killed-server.ts', import.meta.url));
const DURING_EXECUTION = [
  ...['path:validated', 'path:claimed', 'path:certified', 'path:staged', 'path:observed'],
  ...['path:permit-bound', 'path:gate-passed', 'path:promoted', 'path:terminal-recorded'],
  ...['adapter:stage-opened', 'adapter:action-done', 'adapter:marker-written'],
  'adapter:commit-returned',
];
const ASKED = 'clerk: pay_invoice: approval-required';

/** A client of a server that dies at this step. */
async function connectDying(office: Office, step: string): Promise<Client> {
  const env = { PATH: process.env.PATH ?? '', OFFICE: office.folder, KILL_AT: step };
  const args = ['--no-warnings', SERVER];
  const options = { command: process.execPath, args, env, stderr: 'ignore' } as const;
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(new StdioClientTransport(options));
  return client;
}

describe('a server that is killed', { concurrency: 2 }, () => {
  test('after it has asked: the request is there, once, and nothing was done', async () => {
    using office = new Office();
    const dying = await connectDying(office, ASKED);
    await assert.rejects(call(dying, PAY, pay('x')), /closed/i);
    assert.deepEqual(office.payments(), []);
    await using host = await office.startHttp();
    await using client = await office.connectHttp(host.url, '2026-07-28');
    const again = await call(client, PAY, pay('x'));
    assert.equal(again.status, 'approval-required');
    assert.equal((await host.requests.list()).length, 1);
  });

  for (const step of ['adapter:stage-opened', 'adapter:action-done']) {
    test(`at ${step} of a rehearsal: nothing was asked for or done`, async () => {
      using office = new Office();
      const dying = await connectDying(office, step);
      const sql = 'update budget set left = 0 where id = 1';
      await assert.rejects(call(dying, 'sql_books', { sql }), /closed/i);
      assert.deepEqual({ ...office.db.prepare('select left from budget').get() }, { left: 100 });
      assert.equal(
        await office.withRequests(async (requests) => (await requests.list()).length),
        0,
      );
    });
  }

  for (const step of DURING_EXECUTION) {
    test(`at ${step}: the restarted server tells what the journal says, and pays at most once`, async () => {
      using office = new Office();
      const dying = await connectDying(office, step);
      const { request = '' } = await call(dying, PAY, pay('x'));
      await office.approve(request);
      const waiting = { request, waitSeconds: 20 };
      await assert.rejects(call(dying, 'request_status', waiting), /closed/i);
      await using host = await office.startHttp();
      await using client = await office.connectHttp(host.url, '2026-07-28');
      const told = await call(client, 'request_status', { request, waitSeconds: 50 });
      const { terminal } = await host.requests.get(request);
      assert.equal(told.status, terminal?.kind);
      assert.deepEqual(office.payments(), told.status === 'committed' ? ['x 10'] : []);
      assert.ok(told.status === 'committed' || told.status === 'rejected', told.status);
      assert.equal((await call(client, PAY, pay('x'))).status, told.status);
    });
  }
});
