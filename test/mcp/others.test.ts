// Goal: clients that others wrote can use the server. Method: mcporter over HTTP and stdio, and the
// scenarios of the MCP conformance package that need no tools, resources or prompts of its own.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import type { ToolAnswer } from '../../src/agents/index.ts';
import { integration, skipWithout } from '../integration.ts';
import { Office, PAY, pay } from './office.ts';

const SCENARIOS = ['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection'];

describe('clients by others', { concurrency: 2, skip: skipWithout('mcp-clients') }, () => {
  const office = new Office();
  const { token } = office.tokens.clerk;
  let host: Awaited<ReturnType<Office['startHttp']>>;
  before(async () => {
    host = await office.startHttp();
    const headers = { Authorization: `Bearer ${token}` };
    const http = { url: host.url, allowHttp: true, headers };
    const stdio = { command: process.execPath, args: office.command() };
    const config = { mcpServers: { http, stdio }, imports: [] };
    writeFileSync(office.path('mcporter.json'), JSON.stringify(config));
  });
  after(async () => {
    await host[Symbol.asyncDispose]();
    office[Symbol.dispose]();
  });

  async function run(program: string, words: readonly string[]): Promise<string> {
    const file = join(integration('mcp-clients'), 'node_modules/.bin', program);
    const env = { PATH: process.env.PATH, HOME: office.folder };
    const child = spawn(process.execPath, [file, ...words], { env, cwd: office.folder });
    child.stdin.end();
    const [said] = await Promise.all([text(child.stdout), text(child.stderr)]);
    return said;
  }

  const mcporter = async (...words: readonly string[]) =>
    JSON.parse(await run('mcporter', ['--config', office.path('mcporter.json'), ...words]));
  const callTool = (tool: string, input: object): Promise<ToolAnswer> =>
    mcporter('call', tool, '--args', JSON.stringify(input), '--output', 'json');

  test('mcporter lists the tools, asks over HTTP, and learns the verdict over stdio', async () => {
    const { tools } = await mcporter('list', 'http', '--json');
    const names = tools.map(({ name }: { name: string }) => name);
    assert.deepEqual(names, [PAY, 'sql_books', 'read_books', 'request_status', 'reply_request']);
    const asked = await callTool(`http.${PAY}`, pay('mcporter'));
    assert.equal(asked.status, 'approval-required');
    assert.deepEqual(office.payments(), []);
    await office.approve(String(asked.request));
    const status = { request: asked.request, waitSeconds: 20 };
    const done = await callTool('stdio.request_status', status);
    assert.equal(done.status, 'committed');
    assert.deepEqual(office.payments(), ['mcporter 10']);
  });

  for (const scenario of SCENARIOS) {
    test(`conformance: ${scenario}`, async () => {
      await using door = await openDoor(host.url, token);
      const said = await run('conformance', [
        ...['server', '--url', door.url, '--scenario', scenario],
      ]);
      assert.match(said, /Passed: [1-9]\d*\/\d+, 0 failed/);
    });
  }
});

/** The conformance client sends no token, so this sends one for it, and changes nothing else. */
async function openDoor(url: string, token: string) {
  const { port, pathname } = new URL(url);
  const server = createServer((incoming, outgoing) => {
    const headers = { ...incoming.headers, authorization: `Bearer ${token}` };
    const { method, url: path } = incoming;
    const options = { host: '127.0.0.1', port, path, method, headers };
    const inner = request(options, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(outgoing);
    });
    incoming.pipe(inner);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port: own } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${own}${pathname}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
