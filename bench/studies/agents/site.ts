import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { newToken } from '../../../src/access/token.ts';
import { createKeyring } from '../../../src/crypto/keyring.ts';
import { generateApprover, saveApproverKey } from '../../../src/index.ts';
import { openRequests } from '../../../src/requests/index.ts';
import { createRuntime } from '../../../src/runtime/runtime.ts';
import { configFor, OFFERS, offerName, PAYERS } from './deployment.ts';

const MAIN = fileURLToPath(new URL('../../../src/cli/main.ts', import.meta.url));
const DEPLOYMENT = new URL('./deployment.ts', import.meta.url).href;
const REVISION = { versionNegotiation: { mode: { pin: '2026-07-28' } } } as const;

/** A deployment in a folder. Its servers run in separate processes. */
export class Site {
  readonly folder: string;
  readonly tokens: Readonly<Record<string, string>>;

  constructor(folder: string) {
    this.folder = folder;
    const made = [...PAYERS, ...OFFERS.map(offerName)].map((name) => ({ name, ...newToken() }));
    this.tokens = Object.fromEntries(made.map(({ name, token }) => [name, token]));
    const digests = Object.fromEntries(made.map(({ name, digest }) => [name, digest]));
    writeFileSync(join(folder, 'digests.json'), JSON.stringify(digests));
    saveApproverKey(join(folder, 'rule.key.json'), generateApprover('rule'));
    createKeyring(join(folder, 'keys.json'));
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    const config = `import { configFor } from '${DEPLOYMENT}';
      export default configFor(import.meta.dirname);`;
    writeFileSync(join(folder, 'effectmatch.config.ts'), config);
    using db = new DatabaseSync(join(folder, 'books.db'));
    db.exec(`pragma journal_mode = wal;
      create table payment (id integer primary key, payee text not null, amount integer not null)`);
  }

  get payments(): number {
    using db = new DatabaseSync(join(this.folder, 'books.db'), { readOnly: true });
    return Number(db.prepare('select count(*) as n from payment').get()?.n);
  }

  async open() {
    const config = configFor(this.folder);
    const runtime = await createRuntime(config);
    const { operations = {}, requests: kept } = config;
    const store = join(this.folder, 'requests.db');
    const requests = await openRequests({ ...kept, store, runtime, operations });
    return {
      ...{ config, runtime, requests },
      async [Symbol.asyncDispose]() {
        await requests.close();
        await runtime.close();
      },
    };
  }

  /** Starts `effectmatch mcp --http` on a free port. */
  async startHttp() {
    const args = ['--no-warnings', MAIN, 'mcp', '--http', '0', '--json', ...this.#config];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] });
    const url = await readUrl(child);
    return {
      url,
      async [Symbol.asyncDispose]() {
        child.kill('SIGTERM');
        await once(child, 'exit');
      },
    };
  }

  async connectHttp(url: string, agent: string): Promise<Client> {
    const headers = { Authorization: `Bearer ${this.tokens[agent]}` };
    const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
    return await connect(transport);
  }

  async connectStdio(agent: string): Promise<Client> {
    const args = ['--no-warnings', MAIN, 'mcp', '--agent', agent, ...this.#config];
    const options = { command: process.execPath, args, stderr: 'ignore' } as const;
    return await connect(new StdioClientTransport(options));
  }

  get #config(): string[] {
    return ['--config', join(this.folder, 'effectmatch.config.ts')];
  }
}

/** Connects a client with the newest protocol revision. */
async function connect(transport: Parameters<Client['connect']>[0]): Promise<Client> {
  const client = new Client({ name: 'bench', version: '1' }, REVISION);
  await client.connect(transport);
  return client;
}

async function readUrl({ stdout }: ChildProcess): Promise<string> {
  let said = '';
  for await (const chunk of stdout ?? []) {
    said += chunk;
    const [, url] = /"url": ?"([^"]+)"/.exec(said) ?? [];
    if (url !== undefined) return url;
  }
  throw new Error(`the server did not start: ${said}`);
}
