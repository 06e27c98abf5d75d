// Goal: one agent is served over stdin and stdout, and the process ends when its client or its
// operator ends it. Method: the real command as a process, the SDK's client in both revisions.
import assert from 'node:assert/strict';
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { after, describe, test } from 'node:test';
import { runCommand } from '../cli/command.ts';
import { call, Office, PAY, pay, REVISIONS, type Revision } from './office.ts';

const office = new Office({ link: 'https://approvals.example/{id}', callsPerMinute: 5 });
after(() => office[Symbol.dispose]());

const INITIALIZE = {
  ...{ jsonrpc: '2.0', id: 0, method: 'initialize' },
  params: {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'raw', version: '1' },
  },
};

function start(): ChildProcessWithoutNullStreams {
  return spawn(process.execPath, office.command());
}

describe('over stdio', { concurrency: 2 }, () => {
  for (const revision of Object.keys(REVISIONS) as Revision[]) {
    test(`${revision}: the client is sent to the page; a person approves; it is done once`, async () => {
      const opened: string[] = [];
      const capabilities = { elicitation: { url: {} } };
      await using client = await office.connectStdio(revision, { capabilities });
      client.setRequestHandler('elicitation/create', async ({ params }) => {
        opened.push('url' in params ? params.url : '');
        return { action: 'accept', content: { approved: true } };
      });
      assert.equal(client.getNegotiatedProtocolVersion(), revision);
      const { status, request = '' } = await call(client, PAY, pay(revision));
      assert.equal(status, 'approval-required');
      assert.deepEqual(opened, [`https://approvals.example/${request}`]);
      await office.approve(request);
      const done = await call(client, 'request_status', { request, waitSeconds: 20 });
      assert.equal(done.status, 'committed');
      assert.deepEqual(
        office.payments().filter((payment) => payment.startsWith(revision)),
        [`${revision} 10`],
      );
    });
  }

  test('stdout has only the protocol; bad lines are refused and the next one is served', async () => {
    const child = start();
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const receive = async () => JSON.parse(String((await lines.next()).value));
    const send = (message: string | Buffer | object) => {
      const isBytes = typeof message === 'string' || Buffer.isBuffer(message);
      child.stdin.write(isBytes ? message : JSON.stringify(message));
      child.stdin.write('\n');
    };
    const complaints = text(child.stderr);
    send(INITIALIZE);
    assert.equal((await receive()).result.serverInfo.name, 'effectmatch');
    for (const bad of [Buffer.from([0x7b, 0xff, 0x7d]), 'x'.repeat(1024 * 1024 + 1)]) {
      send(bad);
      const { error } = await receive();
      assert.deepEqual([error.code, error.data], [-32_700, { code: 'ERR_EM_INPUT_INVALID' }]);
    }
    send('a secret that is not JSON');
    const params = { name: 'request_status', arguments: { request: 'req_x' } };
    const statuses: unknown[] = [];
    for (let id = 1; id <= 6; id += 1) {
      send({ jsonrpc: '2.0', id, method: 'tools/call', params });
      statuses.push((await receive()).result.structuredContent.code);
    }
    assert.deepEqual(statuses, [...Array(5).fill('ERR_EM_NOT_FOUND'), 'ERR_EM_RATE_LIMITED']);
    child.stdin.end();
    assert.deepEqual(await once(child, 'exit'), [0, null], 'stdin was closed');
    assert.equal((await lines.next()).done, true);
    assert.doesNotMatch(await complaints, /secret/);
    assert.match(await complaints, /a configuration may print[\s\S]*serving clerk on stdio/);
  });

  test('Ctrl-C ends it, also while a call waits', async () => {
    await using client = await office.connectStdio('2025-11-25');
    const { request } = await call(client, PAY, pay('interrupted'));
    const child = start();
    child.stdout.resume();
    const serving = once(child.stderr, 'data');
    const params = { name: 'request_status', arguments: { request, waitSeconds: 50 } };
    child.stdin.write(`${JSON.stringify(INITIALIZE)}\n`);
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
    child.stdin.write(`${JSON.stringify(message)}\n`);
    await serving;
    await once(child.stdout, 'data');
    child.kill('SIGINT');
    assert.deepEqual(await once(child, 'exit'), [0, null]);
  });
});

describe('the command', { concurrency: 2 }, () => {
  const run = (words: readonly string[]) =>
    runCommand(['mcp', ...words, '--config', office.path('effectmatch.config.ts')]);

  test('says which agent is unknown, and which has no name', async () => {
    const unknown = await run(['--agent', 'nobody']);
    assert.equal(unknown.code, 1);
    assert.match(
      unknown.stderr,
      /ERR_EM_USAGE: unknown agent "nobody"; the configuration has clerk, rival/,
    );
    assert.equal(unknown.stdout, '');
    const unnamed = await run([]);
    assert.match(unnamed.stderr, /name the agent with --agent: clerk, rival, guest/);
  });

  test('makes tokens, and its help has blocks for clients that are valid JSON', async () => {
    const made = await runCommand(['token', 'new', 'clerk', '--digest-only', '--json']);
    const { token, digest } = JSON.parse(made.stdout);
    assert.match(token, /^emt_[\w-]{43}$/);
    assert.match(digest, /^sha256:[0-9a-f]{64}$/);
    const { stdout } = await runCommand(['mcp', '--help', '--json']);
    const blocks = JSON.parse(stdout).blocks as { title: string; text: string }[];
    const json = blocks.filter(({ text }) => text.startsWith('{'));
    assert.equal(json.length, 2);
    for (const block of json) assert.ok(JSON.parse(block.text), block.title);
  });
});
