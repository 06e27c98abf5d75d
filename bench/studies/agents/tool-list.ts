import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { type Cell, figure } from '../../study.ts';
import { OFFERS, offerName } from './deployment.ts';
import type { Site } from './site.ts';

const DBHUB = join(
  import.meta.dirname,
  '../../../integrations/dbhub/node_modules/@bytebase/dbhub/dist/index.js',
);
/** A common estimate for English and JSON. The real count depends on the model. */
const BYTES_PER_TOKEN = 4;

/** Measures what a client has to read before its first call. */
export async function measureToolLists(site: Site, url: string): Promise<readonly Cell[]> {
  const cells: Cell[] = [];
  for (const count of OFFERS) {
    const client = await site.connectHttp(url, offerName(count));
    cells.push(...(await sizes(client, `tools/list with ${count} operations`)));
    await client.close();
  }
  if (!existsSync(DBHUB)) return cells;
  const client = new Client({ name: 'bench', version: '1' });
  const dsn = `sqlite://${join(site.folder, 'books.db')}`;
  const args = [DBHUB, '--transport', 'stdio', '--dsn', dsn];
  const options = { command: process.execPath, args, stderr: 'ignore' } as const;
  await client.connect(new StdioClientTransport(options));
  cells.push(...(await sizes(client, 'tools/list of DBHub')));
  await client.close();
  return cells;
}

/** Models do not see output schemas, so tokens are counted without them. */
async function sizes(client: Client, name: string): Promise<readonly Cell[]> {
  const { tools } = await client.listTools();
  const seen = tools.map(({ name, description, inputSchema }) => {
    return { name, description, inputSchema };
  });
  const bytes = (value: unknown) => Buffer.byteLength(JSON.stringify(value));
  return [
    figure(name, bytes(tools), 'bytes'),
    figure(`${name}, for a model`, Math.round(bytes(seen) / BYTES_PER_TOKEN), 'tokens'),
  ];
}
