// A database, agents that reach it over MCP, and a person who approves.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import {
  Client,
  type ClientOptions,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { newToken } from '../../src/access/token.ts';
import type { ToolAnswer } from '../../src/agents/index.ts';
import { createKeyring } from '../../src/crypto/keyring.ts';
import { approver, generateApprover } from '../../src/index.ts';
import { Gateways } from '../../src/mcp/gateway.ts';
import { listenHttp, openAgentServers } from '../../src/mcp/index.ts';
import { openRequests, type Requests } from '../../src/requests/index.ts';
import { createRuntime, type RuntimeConfig } from '../../src/runtime/runtime.ts';
import { configFor, type OfficeFile } from './deployment.ts';

const SCHEMA = `pragma journal_mode = wal;
  create table payment (id integer primary key, payee text not null, amount integer not null);
  create table budget (id integer primary key, left integer not null);
  insert into budget values (1, 100)`;
const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
const DEPLOYMENT = new URL('./deployment.ts', import.meta.url).href;

/** How a client speaks: the revision of 2026 or that of 2025. */
export const REVISIONS = {
  '2026-07-28': { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  '2025-11-25': { versionNegotiation: { mode: 'legacy' } },
} as const satisfies Record<string, ClientOptions>;
export type Revision = keyof typeof REVISIONS;

export type Connected = Client & AsyncDisposable;

/** A folder with a database, and servers that can be started on it. */
export class Office implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'effectmatch-mcp-'));
  readonly tokens = { clerk: newToken(), rival: newToken(), guest: newToken() };
  readonly #key = generateApprover('alice');
  readonly alice = approver(this.#key);
  readonly db = new DatabaseSync(this.path('books.db'));

  constructor(more: Partial<OfficeFile> = {}) {
    this.db.exec(SCHEMA);
    createKeyring(this.path('effectmatch.keys.json'));
    const digests = Object.entries(this.tokens).map(([name, { digest }]) => [name, digest]);
    const { publicKey } = this.#key;
    const office = { publicKey, digests: Object.fromEntries(digests), ...more };
    writeFileSync(this.path('office.json'), JSON.stringify(office));
    writeFileSync(
      this.path('effectmatch.config.ts'),
      `import { configFor } from '${DEPLOYMENT}';
       console.log('a configuration may print');
       export default configFor(import.meta.dirname);`,
    );
    writeFileSync(this.path('package.json'), '{ "type": "module" }');
  }

  get config(): RuntimeConfig {
    return configFor(this.folder);
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  payments(): readonly string[] {
    const rows = this.db.prepare('select payee, amount from payment order by id').all();
    return rows.map(({ payee, amount }) => `${payee} ${amount}`);
  }

  /** The host in this process, with a server on a free port. */
  async startHttp(log: (line: string) => void = () => {}, more: Partial<RuntimeConfig> = {}) {
    const config = configFor(this.folder, more);
    const runtime = await createRuntime(config);
    const store = this.path('requests.db');
    const operations = config.operations ?? {};
    const requests = await openRequests({ ...config.requests, runtime, operations, store });
    const opened = { config, runtime, requests, run: 'mcp', version: '0.0.0' };
    const gateways = await Gateways.open(config);
    const told = { log, onFault: (agent: string) => log(agent) };
    const servers = openAgentServers({ ...opened, ...told, gateways });
    const listening = await listenHttp(servers, { port: 0, onError: () => {} });
    requests.start();
    return {
      ...{ url: listening.url, requests },
      async [Symbol.asyncDispose]() {
        await listening.close();
        await gateways[Symbol.asyncDispose]();
        await requests.close();
        await runtime.close();
      },
    };
  }

  /** A client over HTTP with an agent's token. */
  async connectHttp(
    url: string,
    revision: Revision,
    agent: keyof typeof this.tokens | { readonly token: string } = 'clerk',
    options: ClientOptions = {},
  ): Promise<Connected> {
    const { token } = typeof agent === 'string' ? this.tokens[agent] : agent;
    const headers = { Authorization: `Bearer ${token}` };
    const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
    return await connect(transport, revision, options);
  }

  /** The words that start the command line for an agent. */
  command(agent = 'clerk'): string[] {
    const config = this.path('effectmatch.config.ts');
    return ['--no-warnings', MAIN, 'mcp', '--agent', agent, '--config', config];
  }

  /** A client whose server is a process of its own. */
  async connectStdio(revision: Revision, options: ClientOptions = {}): Promise<Connected> {
    const args = this.command();
    const transport = new StdioClientTransport({
      ...{ command: process.execPath, args, stderr: 'ignore' },
    });
    return await connect(transport, revision, options);
  }

  /** What a person does, who is at another place than every server. */
  async withRequests<T>(work: (requests: Requests) => Promise<T>): Promise<T> {
    const config = configFor(this.folder);
    await using runtime = await createRuntime(config);
    const operations = config.operations ?? {};
    const store = this.path('requests.db');
    await using requests = await openRequests({ runtime, operations, store });
    return await work(requests);
  }

  async approve(id: string): Promise<void> {
    await this.withRequests(async (requests) => {
      const { proposal } = await requests.get(id);
      await requests.answer(id, this.alice.sign(proposal, { expiresIn: '10m' }));
    });
  }

  [Symbol.dispose](): void {
    this.db.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Calls a tool and returns its answer. */
export async function call(client: Client, name: string, input: object): Promise<ToolAnswer> {
  const result = await client.callTool({ name, arguments: { ...input } });
  return result.structuredContent as unknown as ToolAnswer;
}

export const PAY = 'pay_invoice';
export const pay = (payee: string, amount = 10) => ({ input: { payee, amount } });

async function connect(
  transport: Parameters<Client['connect']>[0],
  revision: Revision,
  options: ClientOptions,
): Promise<Connected> {
  const client = new Client({ name: 'test', version: '1' }, { ...REVISIONS[revision], ...options });
  await client.connect(transport);
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.close() });
}
