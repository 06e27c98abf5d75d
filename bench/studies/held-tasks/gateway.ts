import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { UpstreamConfig } from '../../../src/access/configuration.ts';
import { describeTools } from '../../../src/mcp/gateway.ts';
import { Upstream } from '../../../src/upstream/upstream.ts';
import { Office } from '../../../test/mcp/office.ts';
import { type Cell, medianCell, type StudyOptions } from '../../study.ts';

const SERVER = fileURLToPath(new URL('../../../test/mcp/upstream-server.ts', import.meta.url));
const fields = (name: string) => ({ type: 'object', properties: { [name]: { type: 'string' } } });
const TOOLS = [
  { name: 'look', inputSchema: fields('does') },
  { name: 'run_sql', inputSchema: fields('sql') },
];

/** A read through the gateway against the same read without it; asking for a write, likewise. */
export async function measureGateway({ quick, progress }: StudyOptions): Promise<readonly Cell[]> {
  progress('the gateway: reads and writes');
  const rounds = quick ? 20 : 200;
  using office = new Office({ upstreams: ['up'] });
  const file = join(office.folder, 'tools.json');
  writeFileSync(file, JSON.stringify({ tools: TOOLS }));
  const command = [process.execPath, '--no-warnings', SERVER, file, join(office.folder, 'log')];
  const bare: UpstreamConfig = { command, tools: {} };
  const [look, run] = (await describeTools('up', bare)).map(({ digest }) => digest);
  const action = ({ sql }: { sql: string }) => ({ sql });
  const up: UpstreamConfig = {
    ...bare,
    tools: {
      look: { read: look ?? '' },
      run_sql: { write: run ?? '', adapter: 'books', action },
    },
  };
  await using host = await office.startHttp(() => {}, { upstreams: { up } });
  const headers = { Authorization: `Bearer ${office.tokens.clerk.token}` };
  const transport = new StreamableHTTPClientTransport(new URL(host.url), {
    requestInit: { headers },
  });
  const client = new Client({ name: 'bench', version: '1' });
  await client.connect(transport);
  const direct = new Upstream('up', bare);
  const reading = { tool: 'look', definition: look ?? '', input: {} };
  const timed = async (call: (round: number) => Promise<unknown>) => {
    const samples: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const from = performance.now();
      await call(round);
      samples.push(performance.now() - from);
    }
    return samples;
  };
  const through = await timed(() => client.callTool({ name: 'look', arguments: {} }));
  const without = await timed(() => direct.call(reading));
  const insert = (id: number) => ({ sql: `insert into payment values (${id}, 'globex', 10)` });
  const asked = await timed((round) =>
    client.callTool({ name: 'run_sql', arguments: insert(round + 1) }),
  );
  const own = await timed((round) =>
    client.callTool({ name: 'sql_books', arguments: insert(rounds + round + 1) }),
  );
  await direct.close();
  await client.close();
  return [
    medianCell('gateway: one read, over HTTP', through, 'ms'),
    medianCell('gateway: the same read of the upstream itself, over stdio', without, 'ms'),
    medianCell('gateway: asking for one write, rehearsed twice', asked, 'ms'),
    medianCell('gateway: asking for the same write by our own tool', own, 'ms'),
  ];
}
