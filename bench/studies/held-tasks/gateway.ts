import { fileURLToPath } from 'node:url';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { UpstreamConfig } from '../../../src/access/configuration.ts';
import { describeTools } from '../../../src/mcp/gateway.ts';
import { Upstream } from '../../../src/upstream/upstream.ts';
import { call, Office } from '../../../test/mcp/office.ts';
import { type Cell, medianCell, pairedCell, type StudyOptions } from '../../study.ts';

const SERVER = fileURLToPath(new URL('./sql-server.ts', import.meta.url));

/**
 * A read and a write through the gateway against the same of the upstream itself, in turns. The
 * gateway is asked over HTTP, the upstream over stdio, by the gateway's own client.
 */
export async function measureGateway({ quick, progress }: StudyOptions): Promise<readonly Cell[]> {
  progress('the gateway: reads and writes');
  const rounds = quick ? 10 : 100;
  using office = new Office({ upstreams: ['up'] });
  const command = [process.execPath, '--no-warnings', SERVER, office.path('books.db')];
  const bare: UpstreamConfig = { command, tools: {} };
  const [look = '', run = ''] = (await describeTools('up', bare)).map(({ digest }) => digest);
  const action = ({ sql }: { sql: string }) => ({ sql });
  const tools = { look: { read: look }, run_sql: { write: run, adapter: 'books', action } };
  await using host = await office.startHttp(() => {}, { upstreams: { up: { ...bare, tools } } });
  const headers = { Authorization: `Bearer ${office.tokens.clerk.token}` };
  const transport = new StreamableHTTPClientTransport(new URL(host.url), {
    requestInit: { headers },
  });
  const client = new Client({ name: 'bench', version: '1' });
  await client.connect(transport);
  const direct = new Upstream('up', bare);
  let id = 0;
  const insert = () => {
    id += 1;
    return { sql: `insert into payment values (${id}, 'globex', 10)` };
  };
  const read = { sql: 'select count(*) from payment' };
  const answer = async (request = '') => {
    const { proposal } = await host.requests.get(request);
    await host.requests.answer(request, office.alice.sign(proposal, { expiresIn: '10m' }));
    const { status } = await call(client, 'request_status', { request, waitSeconds: 30 });
    if (status !== 'committed') throw new Error(`a write ended ${status}`);
  };
  const samples = await inTurns(rounds, {
    read: () => client.callTool({ name: 'look', arguments: read }),
    bareRead: () => direct.call({ tool: 'look', definition: look, input: read }),
    asked: () => call(client, 'run_sql', insert()),
    ownAsked: () => call(client, 'sql_books', insert()),
    written: async () => answer((await call(client, 'run_sql', insert())).request),
    bareWritten: () => direct.call({ tool: 'run_sql', definition: run, input: insert() }),
  });
  await direct.close();
  await client.close();
  return cellsOf(samples);
}

type Turn = 'read' | 'bareRead' | 'asked' | 'ownAsked' | 'written' | 'bareWritten';
type Turns = Record<Turn, number[]>;

/** How long each took, one after another in every round. */
async function inTurns(rounds: number, work: Record<Turn, () => Promise<unknown>>): Promise<Turns> {
  const names = Object.keys(work) as Turn[];
  const samples = Object.fromEntries(names.map((name) => [name, []])) as unknown as Turns;
  for (let round = 0; round < rounds; round += 1)
    for (const name of names) {
      const from = performance.now();
      await work[name]();
      samples[name].push(performance.now() - from);
    }
  return samples;
}

function cellsOf({ read, bareRead, asked, ownAsked, written, bareWritten }: Turns): Cell[] {
  return [
    medianCell('gateway: one read', read, 'ms'),
    medianCell('gateway: the same read of the upstream itself', bareRead, 'ms'),
    pairedCell('gateway: one read over the same read of the upstream itself', read, bareRead),
    medianCell('gateway: asking for one write, rehearsed twice', asked, 'ms'),
    medianCell('gateway: asking for the same write by our own tool', ownAsked, 'ms'),
    pairedCell('gateway: asking for a write over asking by our own tool', asked, ownAsked),
    medianCell('gateway: one write, asked for, signed at once and committed', written, 'ms'),
    medianCell('gateway: the same write by the upstream itself, unapproved', bareWritten, 'ms'),
    pairedCell('gateway: one write over the same by the upstream itself', written, bareWritten),
  ];
}
