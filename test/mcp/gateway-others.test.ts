// Goal: the gateway stands in front of servers that others wrote, for a client that others wrote.
// Method: the reference server for files on a private copy, DBHub with its writing tool taken over,
// mcporter as the client; what is durable is read past all of them.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { files } from '../../src/adapters/files/index.ts';
import type { ToolAnswer } from '../../src/agents/index.ts';
import type { UpstreamConfig, UpstreamTool } from '../../src/index.ts';
import { describeTools } from '../../src/mcp/gateway.ts';
import { integration, skipWithout } from '../integration.ts';
import { call, Office } from './office.ts';

/** Classifies by name, as a person would after reading the definitions. */
async function classify(
  upstream: UpstreamConfig,
  judge: (name: string, digest: string) => UpstreamTool,
): Promise<UpstreamConfig> {
  const found = await describeTools('upstream', upstream);
  const tools = found.map(({ tool, digest }) => [tool, judge(tool, digest)] as const);
  return { ...upstream, tools: Object.fromEntries(tools) };
}

const WRITES = ['write_file', 'edit_file', 'create_directory', 'move_file'];

describe('the reference server for files', { skip: skipWithout('mcp-filesystem') }, () => {
  test('it works in a private copy, and what it changed there is approved as a whole', async () => {
    using office = new Office({ upstreams: ['docs'] });
    const root = office.path('docs');
    mkdirSync(root);
    writeFileSync(join(root, 'plan.txt'), 'first\n');
    writeFileSync(join(root, 'old.txt'), 'old\n');
    const main = '@modelcontextprotocol/server-filesystem/dist/index.js';
    const program = join(integration('mcp-filesystem'), 'node_modules', main);
    const bare: UpstreamConfig = {
      command: [process.execPath, program, '{folder}'],
      files: { adapter: 'docs', root },
      tools: {},
    };
    const upstream = await classify(bare, (name, digest) =>
      WRITES.includes(name) ? { write: digest, files: true } : { read: digest },
    );
    const { issuers, adapters } = office.config;
    const alice = { ...issuers.alice, may: ['books', 'docs'] } as (typeof issuers)[string];
    const more = {
      upstreams: { docs: upstream },
      issuers: { alice },
      adapters: { ...adapters, docs: files({ root, adopt: true }) },
    };
    await using host = await office.startHttp(() => {}, more);
    await using client = await office.connectHttp(host.url, '2025-11-25');
    const say = async (name: string, input: object) => {
      const result = await client.callTool({ name, arguments: { ...input } });
      assert.notEqual(result.isError, true, JSON.stringify(result));
      return (result.content as { text?: string }[]).map((part) => part.text ?? '').join('\n');
    };
    const allowed = await say('list_allowed_directories', {});
    const folder = allowed.split('\n').find((line) => line.includes('effectmatch-tree-')) ?? '';
    const at = (name: string) => join(folder.trim(), name);
    await say('write_file', { path: at('note.txt'), content: 'by the agent\n' });
    await say('move_file', { source: at('old.txt'), destination: at('kept.txt') });
    await say('edit_file', {
      path: at('plan.txt'),
      edits: [{ oldText: 'first', newText: 'second' }],
    });
    assert.match(await say('read_text_file', { path: at('plan.txt') }), /second/);
    assert.deepEqual(readdirSync(root).sort(), ['old.txt', 'plan.txt'], 'nothing is durable yet');
    const asked = await call(client, 'docs_submit', {});
    assert.equal(asked.status, 'approval-required', JSON.stringify(asked));
    assert.match(asked.rendering ?? '', /note\.txt/);
    const { proposal } = await host.requests.get(String(asked.request));
    const license = office.alice.sign(proposal, { expiresIn: '10m' });
    await host.requests.answer(String(asked.request), license);
    const status = { request: asked.request, waitSeconds: 20 };
    assert.equal((await call(client, 'request_status', status)).status, 'committed');
    assert.deepEqual(readdirSync(root).sort(), ['kept.txt', 'note.txt', 'plan.txt']);
    assert.equal(readFileSync(join(root, 'plan.txt'), 'utf8'), 'second\n');
    assert.ok(!existsSync(folder.trim()), 'the private copy is gone');
  });
});

const skip = skipWithout('dbhub') || skipWithout('mcp-clients');

describe('DBHub', { skip }, () => {
  test('its writing tool keeps its name, and mcporter gets a change only after an approval', async () => {
    using office = new Office({ upstreams: ['dbhub'] });
    const program = join(integration('dbhub'), 'node_modules/@bytebase/dbhub/dist/index.js');
    const dsn = `sqlite://${office.path('books.db')}`;
    const bare: UpstreamConfig = {
      command: [process.execPath, program, '--transport', 'stdio', '--dsn', dsn],
      tools: {},
    };
    const action = ({ sql }: { sql: string }) => ({ script: sql });
    const upstream = await classify(bare, (name, digest) =>
      name === 'execute_sql' ? { write: digest, adapter: 'books', action } : { read: digest },
    );
    assert.ok('execute_sql' in upstream.tools, Object.keys(upstream.tools).join());
    await using host = await office.startHttp(() => {}, { upstreams: { dbhub: upstream } });
    const headers = { Authorization: `Bearer ${office.tokens.clerk.token}` };
    const http = { url: host.url, allowHttp: true, headers };
    const config = office.path('mcporter.json');
    writeFileSync(config, JSON.stringify({ mcpServers: { http }, imports: [] }));
    const mcporter = async (tool: string, input: object) => {
      const file = join(integration('mcp-clients'), 'node_modules/.bin/mcporter');
      const words = ['--config', config, 'call', `http.${tool}`];
      const said = ['--args', JSON.stringify(input), '--output', 'json'];
      const env = { PATH: process.env.PATH, HOME: office.folder };
      const options = { env, cwd: office.folder };
      const child = spawn(process.execPath, [file, ...words, ...said], options);
      child.stdin.end();
      const [answer] = await Promise.all([text(child.stdout), text(child.stderr)]);
      return answer;
    };
    const found = await mcporter('search_objects', { object_type: 'table' });
    assert.match(found, /payment/);
    const sql = "insert into payment values (1, 'globex', 10)";
    const asked = JSON.parse(await mcporter('execute_sql', { sql })) as ToolAnswer;
    assert.equal(asked.status, 'approval-required');
    assert.deepEqual(office.payments(), []);
    await office.approve(String(asked.request));
    const status = { request: asked.request, waitSeconds: 20 };
    const done = JSON.parse(await mcporter('request_status', status)) as ToolAnswer;
    assert.equal(done.status, 'committed');
    assert.deepEqual(office.payments(), ['globex 10']);
  });
});
