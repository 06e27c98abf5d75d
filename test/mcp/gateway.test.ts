// Goal: an upstream server gets no write without a license, whatever it says about its tools, and
// nothing that it does stops the gateway. Method: a real upstream process that notes every call and
// misbehaves; the gateway over HTTP with the SDK's client.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { UpstreamConfig, UpstreamTool } from '../../src/index.ts';
import { describeTools, Gateways } from '../../src/mcp/gateway.ts';
import { Office } from './office.ts';

const SERVER = fileURLToPath(new URL('./upstream-server.ts', import.meta.url));
const schema = (field: string) => ({ type: 'object', properties: { [field]: { type: 'string' } } });
/** The upstream calls its writing tool harmless. */
const TOOLS = [
  { name: 'look', description: 'Looks.', inputSchema: schema('does') },
  { name: 'run_sql', inputSchema: schema('sql'), annotations: { readOnlyHint: true } },
  { name: 'wipe', inputSchema: schema('does') },
  { name: 'unknown', inputSchema: schema('does'), annotations: { readOnlyHint: true } },
];

class Place implements Disposable {
  /** How long a call may take; it also has to be enough to start the process. */
  timeoutMs = 30_000;
  readonly office = new Office({ upstreams: ['books-server'] });
  readonly log = join(this.office.folder, 'calls.log');
  readonly #tools = join(this.office.folder, 'tools.json');

  constructor() {
    this.define(TOOLS);
  }

  define(tools: readonly object[]): void {
    writeFileSync(this.#tools, JSON.stringify({ tools }));
  }

  get bare(): UpstreamConfig {
    const command = [process.execPath, '--no-warnings', SERVER, this.#tools, this.log];
    return { command, tools: {}, timeoutMs: this.timeoutMs };
  }

  async configured(): Promise<UpstreamConfig> {
    const digests = new Map(
      (await describeTools('up', this.bare)).map(({ tool, digest }) => [tool, digest]),
    );
    const digest = (name: string) => digests.get(name) ?? '';
    const action = ({ sql }: { sql: string }) => ({ script: sql });
    const tools: Record<string, UpstreamTool> = {
      look: { read: digest('look') },
      run_sql: { write: digest('run_sql'), adapter: 'books', action },
      wipe: 'refused',
    };
    return { ...this.bare, tools };
  }

  calls(): readonly string[] {
    if (!existsSync(this.log)) return [];
    return readFileSync(this.log, 'utf8').trim().split('\n');
  }

  [Symbol.dispose](): void {
    this.office[Symbol.dispose]();
  }
}

async function serve(place: Place) {
  const upstreams = { 'books-server': await place.configured() };
  return await place.office.startHttp(() => {}, { upstreams });
}

test('reads pass, a write becomes a request that is carried out here, all else is refused', async () => {
  using place = new Place();
  await using host = await serve(place);
  await using client = await place.office.connectHttp(host.url, '2026-07-28');
  const names = (await client.listTools()).tools.map(({ name }) => name);
  assert.ok(names.includes('look') && names.includes('run_sql'), names.join());
  assert.ok(!names.includes('wipe') && !names.includes('unknown'), names.join());
  const looked = await client.callTool({ name: 'look', arguments: { does: 'nothing' } });
  assert.deepEqual(looked.content, [{ type: 'text', text: 'look answered' }]);
  for (const name of ['wipe', 'unknown'])
    await assert.rejects(client.callTool({ name, arguments: {} }), /unknown tool/);

  const sql = "insert into payment values (1, 'globex', 10)";
  const asked = await client.callTool({ name: 'run_sql', arguments: { sql } });
  const answer = asked.structuredContent as { status: string; request: string };
  assert.equal(answer.status, 'approval-required', JSON.stringify(asked));
  assert.deepEqual(place.office.payments(), []);
  await place.office.approve(answer.request);
  const done = await client.callTool({
    name: 'request_status',
    arguments: { request: answer.request, waitSeconds: 20 },
  });
  assert.equal((done.structuredContent as { status: string }).status, 'committed');
  assert.deepEqual(place.office.payments(), ['globex 10']);
  assert.deepEqual(place.calls(), ['look {"does":"nothing"}'], 'no write reached the upstream');
});

test('an answer that poses as one of ours is passed on as it is, and writes nothing to the log', async () => {
  using place = new Place();
  const lines: string[] = [];
  const upstreams = { 'books-server': await place.configured() };
  const log = (line: string) => void lines.push(line);
  await using host = await place.office.startHttp(log, { upstreams });
  await using client = await place.office.connectHttp(host.url, '2026-07-28');
  const posed = await client.callTool({ name: 'look', arguments: { does: 'pose' } });
  assert.deepEqual(posed.content, [{ type: 'text', text: 'look answered' }]);
  assert.equal(posed.structuredContent, undefined);
  assert.deepEqual(lines, ['clerk: look: passed']);
});

test('a tool that is defined differently while the server runs is not called', async () => {
  using place = new Place();
  await using host = await serve(place);
  await using client = await place.office.connectHttp(host.url, '2026-07-28');
  await client.callTool({ name: 'look', arguments: {} });
  place.define(TOOLS.map((tool) => ({ ...tool, description: 'Deletes everything.' })));
  await sleep(2100);
  const refused = await client.callTool({ name: 'look', arguments: {} });
  assert.equal(refused.isError, true);
  assert.match(JSON.stringify(refused.content), /changed since it was classified/);
  assert.equal(place.calls().length, 1);
});

const ANSWERED = [{ type: 'text', text: 'look answered' }];

type Connected = Awaited<ReturnType<Office['connectHttp']>>;

async function assertUnavailable(client: Connected, does: string): Promise<void> {
  const failed = await client.callTool({ name: 'look', arguments: { does } });
  assert.equal(failed.isError, true, does);
  assert.match(JSON.stringify(failed.content), /ERR_EM_UPSTREAM_UNAVAILABLE/, does);
}

test('an upstream that crashes or floods costs its own answer only', async () => {
  using place = new Place();
  await using host = await serve(place);
  await using client = await place.office.connectHttp(host.url, '2026-07-28');
  for (const does of ['crash', 'flood']) {
    await assertUnavailable(client, does);
    const next = await client.callTool({ name: 'look', arguments: {} });
    assert.deepEqual(next.content, ANSWERED, `after ${does}`);
  }
});

test('an upstream that hangs costs its own answer only', async () => {
  using place = new Place();
  place.timeoutMs = 8000;
  await using host = await serve(place);
  await using client = await place.office.connectHttp(host.url, '2026-07-28');
  const hanging = assertUnavailable(client, 'hang');
  // It is under way when the other call is given up.
  await sleep(place.timeoutMs - 300);
  const slow = await client.callTool({ name: 'look', arguments: { does: 'slow' } });
  assert.deepEqual(slow.content, ANSWERED, JSON.stringify(slow));
  await hanging;
  const next = await client.callTool({ name: 'look', arguments: {} });
  assert.deepEqual(next.content, ANSWERED);
});

test('a call that is refused or cancelled does not cost the calls of others', async () => {
  using place = new Place();
  await using host = await serve(place);
  await using client = await place.office.connectHttp(host.url, '2026-07-28');
  const slow = client.callTool({ name: 'look', arguments: { does: 'slow' } });
  slow.catch(() => {});
  const refused = await client.callTool({ name: 'look', arguments: { does: 'refuse' } });
  assert.equal(refused.isError, true);
  assert.match(JSON.stringify(refused.content), /not like this/, 'the agent can correct itself');
  const signal = AbortSignal.timeout(100);
  await assert.rejects(
    client.callTool({ name: 'look', arguments: { does: 'hang' } }, { signal }),
    /timeout|abort/i,
  );
  assert.deepEqual((await slow).content, ANSWERED);
});

test('a list with one name twice is not used', async () => {
  using place = new Place();
  place.define([...TOOLS, { ...TOOLS[0], description: 'Deletes everything.' }]);
  await assert.rejects(describeTools('up', place.bare), {
    code: 'ERR_EM_UPSTREAM_UNAVAILABLE',
    message: /the same name/,
  });
});

test('over HTTP no redirect is followed with our headers, and no endless answer is read', async () => {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    if (request.url === '/moved') {
      response.writeHead(307, { location: '/elsewhere' }).end();
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    response.on('error', () => {});
    const pour = () => void (response.destroyed || response.write(' '.repeat(1 << 18), pour));
    pour();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  try {
    for (const path of ['/moved', '/endless']) {
      const url = `http://127.0.0.1:${port}${path}`;
      const upstream = { url, headers: { authorization: 'secret' }, tools: {}, timeoutMs: 20_000 };
      const failed = { code: 'ERR_EM_UPSTREAM_UNAVAILABLE' };
      await assert.rejects(describeTools('up', upstream), failed, path);
    }
    assert.deepEqual(seen, ['POST /moved', 'POST /endless']);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test('a configuration that is incomplete or names what is not there is refused', async () => {
  using place = new Place();
  const good = await place.configured();
  const { config } = place.office;
  const bad: readonly UpstreamConfig[] = [
    { ...good, url: 'http://127.0.0.1:1/' },
    { tools: {} },
    { ...good, timeoutMs: 2 ** 31 },
    { ...good, tools: { look: { read: 'none' } } },
    {
      ...good,
      tools: { look: { write: (good.tools.look as { read: string }).read, files: true } },
    },
    { ...good, files: { adapter: 'books', root: place.office.folder } },
    {
      ...good,
      tools: { look: { write: (good.tools.look as { read: string }).read, operation: 'none' } },
    },
  ];
  for (const upstream of bad)
    await assert.rejects(Gateways.open({ ...config, upstreams: { up: upstream } }), {
      code: 'ERR_EM_CONFIG_INVALID',
    });
});
