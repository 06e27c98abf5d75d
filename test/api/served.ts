// `effectmatch serve` as a real process, on a folder with a deployment in SQLite or PostgreSQL.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { approver, generateApprover, saveApproverKey } from '../../src/crypto/approver.ts';
import { createKeyring } from '../../src/crypto/keyring.ts';
import { postgresLedgers } from '../../src/ledger/postgres/index.ts';
import { runCommand, startCommand } from '../cli/command.ts';
import { protectedDatabase } from '../postgres/protected.ts';

export const BACKENDS = ['sqlite', 'postgres'] as const;
export type Backend = (typeof BACKENDS)[number];

const SCHEMA = 'create table invoice (id integer primary key, status text not null)';
const ROWS = "insert into invoice values (4711, 'open'), (4712, 'open'), (4713, 'open')";
const SOURCE = new URL('../../src/', import.meta.url).href;

/** A folder with a configuration, a key for its approver, and a database with three invoices. */
export async function openDeployment(backend: Backend, console: { readonly origin?: string } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-served-'));
  const at = (name: string) => join(folder, name);
  const data = backend === 'sqlite' ? openFile(at('books.db')) : await openServer();
  const key = generateApprover('alice');
  saveApproverKey(at('alice.key.json'), key);
  createKeyring(at('effectmatch.keys.json'));
  writeFileSync(at('package.json'), '{ "type": "module" }');
  const { adapter, factory, store, requests } = data;
  /** Writes the configuration, which servers that are started from now on read. */
  const configure = (config: object, keys: Readonly<Record<string, string>>) => {
    const rights = { may: ['books'], sources: ['contract', 'rehearsed'] };
    const issuers = Object.entries(keys).map(([name, text]) => [name, { key: text, ...rights }]);
    writeFileSync(
      at('effectmatch.config.ts'),
      `import { z } from '${import.meta.resolve('zod')}';
import { defineConfig, defineOperation, update } from '${SOURCE}index.ts';
import { ${factory} } from '${SOURCE}adapters/${factory}/index.ts';

const markPaid = defineOperation({
  name: 'mark-paid', adapter: 'books', input: z.strictObject({ invoice: z.int() }),
  approve: ({ invoice }) => ({ effects: [update('invoice', { id: invoice }, { status: ['open', 'paid'] })] }),
  action: ({ invoice }) => ({ sql: "update invoice set status = 'paid' where id = " + invoice }),
});
export default defineConfig({
  store: ${JSON.stringify(store ?? at('effectmatch.db'))},
  keyring: ${JSON.stringify(at('effectmatch.keys.json'))},
  leaseMs: 1000,
  issuers: ${JSON.stringify(Object.fromEntries(issuers))},
  adapters: { books: ${factory}(${JSON.stringify(adapter)}) },
  operations: { 'mark-paid': markPaid },
  requests: { store: ${JSON.stringify(requests ?? at('requests.db'))} },
  console: ${JSON.stringify(config)},
  agents: { 'billing-agent': { operations: ['mark-paid'], sql: ['books'], callsPerMinute: 100000 } },
});
`,
    );
  };
  configure(console, { alice: key.publicKey });
  const command = async (...words: string[]) => {
    const ended = await runCommand(words, { cwd: folder });
    assert.equal(ended.code, 0, ended.stderr);
    return JSON.parse(ended.stdout);
  };
  return {
    ...{ folder, at, command, configure },
    run: data.run,
    approver: approver(key),
    key: at('alice.key.json'),
    paid: data.paid,
    token: async (...words: string[]) =>
      (await command('token', 'new', ...words, '--json')).token as string,
    async [Symbol.asyncDispose]() {
      await data.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const PAID = "select id from invoice where status = 'paid' order by id";

function openFile(file: string) {
  const db = new DatabaseSync(file);
  const payment = 'create table payment (id integer primary key, payee text not null)';
  db.exec(`pragma journal_mode = wal; ${SCHEMA}; ${ROWS}; ${payment}`);
  return {
    ...{ factory: 'sqlite', adapter: { file, relations: ['invoice', 'payment'] } },
    ...{ store: undefined, requests: undefined },
    run: async (sql: string) => db.exec(sql),
    paid: async () =>
      db
        .prepare(PAID)
        .all()
        .map(({ id }) => Number(id)),
    close: async () => db.close(),
  };
}

async function openServer() {
  const database = await protectedDatabase(`${SCHEMA}; ${ROWS}`, { relations: ['invoice'] });
  const { db, options } = database;
  const store = db.url(db.role('served_ledger'));
  await (await postgresLedgers(store).provisioning(db.url(), 'provision')).apply();
  return {
    ...{ factory: 'postgres', adapter: options, store, requests: store },
    run: async (sql: string) => void (await db.run(sql)),
    paid: async () => (await db.run(PAID)).map(({ id }: { id?: unknown }) => Number(id)),
    close: async () => await database[Symbol.asyncDispose](),
  };
}

/** Starts the server and returns where it listens. */
export async function startServing(folder: string, ...words: string[]) {
  const port = words.includes('--port') ? [] : ['--port', '0'];
  const started = startCommand(['serve', '--json', ...port, ...words], { cwd: folder });
  let [printed, complained] = ['', ''];
  started.child.stderr.setEncoding('utf8').on('data', (text) => {
    complained += text;
  });
  started.child.stdout.setEncoding('utf8');
  for await (const chunk of started.child.stdout.iterator({ destroyOnReturn: false })) {
    printed += chunk;
    if (printed.includes('}\n')) break;
  }
  if (printed === '') throw new Error(`the server does not start: ${complained}`);
  type Printed = { readonly origin: string; readonly link: string; readonly listening: string };
  const said = JSON.parse(printed) as Printed;
  const { origin } = said;
  return {
    ...{ ...started, ...said },
    /** A call with a token; the answer as it is. */
    async call(method: string, path: string, token: string, body?: unknown) {
      const response = await fetch(`${origin}${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      // biome-ignore lint/suspicious/noExplicitAny: answers are looked into as any client would.
      return { status: response.status, json: (await response.json()) as any };
    },
    async [Symbol.asyncDispose]() {
      started.child.kill('SIGINT');
      await started.ended;
    },
  };
}
