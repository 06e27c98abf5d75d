import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));
const DBHUB = path('../../integrations/dbhub/node_modules/@bytebase/dbhub/dist/index.js');
const COMMAND = ['--no-warnings', '--import', path('../../scripts/entry-points.mjs')];
const EFFECTMATCH = [...COMMAND, path('../../src/cli/main.ts')];
const CONFIG = ['--config', path('effectmatch.config.ts')];

/** Starts DBHub on a database, as its README says. */
export async function openDbhub(file: string): Promise<Client> {
  if (!existsSync(DBHUB)) {
    console.error('DBHub is not installed: npm ci --prefix integrations/dbhub --omit=optional');
    process.exit(1);
  }
  return await connect([DBHUB, '--transport', 'stdio', '--dsn', `sqlite://${file}`], {});
}

/** Starts `effectmatch mcp` for the agent. */
export async function openEffectmatch(folder: string): Promise<Client> {
  return await connect([...EFFECTMATCH, 'mcp', ...CONFIG], { SIDE_BY_SIDE: folder });
}

/** Runs a command of a person, who has a key that no agent has, and returns what it printed. */
export function command(folder: string, words: readonly string[]): string {
  const env = { ...process.env, SIDE_BY_SIDE: folder };
  const needsConfig = words[0] !== 'keygen';
  const all = [...EFFECTMATCH, ...words, ...(needsConfig ? CONFIG : [])];
  const options = { env, cwd: folder, encoding: 'utf8' } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, all, options);
  const isVerdict = words[0] === 'approve' && status === 2; // approved, executed, rejected
  if (status !== 0 && !isVerdict) throw new Error(`${words[0]}: ${stderr}`);
  return stdout;
}

async function connect(args: string[], env: Record<string, string>): Promise<Client> {
  const options = { command: process.execPath, args, stderr: 'ignore' } as const;
  const path = process.env.PATH ?? '';
  const transport = new StdioClientTransport({ ...options, env: { PATH: path, ...env } });
  const client = new Client({ name: 'side-by-side', version: '1.0.0' });
  await client.connect(transport);
  return client;
}
