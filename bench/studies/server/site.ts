// A deployment on SQLite for the studies of the server: invoices to pay, and requests about them.
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sqlite } from '../../../src/adapters/sqlite/index.ts';
import { generateApprover } from '../../../src/crypto/approver.ts';
import { update } from '../../../src/protocol/draft.ts';
import { openSqliteRequests } from '../../../src/requests/index.ts';
import { openRequests, type Requests } from '../../../src/requests/requests.ts';
import { createRuntime, type Runtime, type RuntimeConfig } from '../../../src/runtime/runtime.ts';

/** The deployment, and who approves. */
export interface Site extends AsyncDisposable {
  readonly runtime: Runtime;
  readonly requests: Requests;
  readonly config: RuntimeConfig;
  readonly key: ReturnType<typeof generateApprover>;
}

/** Opens one with so many invoices; a browser's key may approve as well. */
export async function openSite(folder: string, rows: number, browserKey?: string): Promise<Site> {
  const file = join(folder, 'books.db');
  const db = new DatabaseSync(file);
  db.exec(`pragma journal_mode = wal;
    create table invoice (id integer primary key, status text not null);
    create table payment (id integer primary key, payee text not null, amount integer not null);
    begin`);
  const add = db.prepare(`insert into invoice values (?, 'open')`);
  for (let id = 1; id <= rows; id += 1) add.run(id);
  db.exec('commit');
  db.close();
  const key = generateApprover('bench');
  const config: RuntimeConfig = {
    store: join(folder, 'ledger.db'),
    keyring: join(folder, 'keys.json'),
    issuers: { bench: { key: [key.publicKey, browserKey ?? []].flat(), may: ['books'] } },
    adapters: { books: sqlite({ file, relations: ['invoice', 'payment'] }) },
    agents: { agent: { sql: ['books'], callsPerMinute: 1_000_000 } },
  };
  const runtime = await createRuntime(config);
  const requests = await openRequests({ runtime, store: join(folder, 'requests.db') });
  return {
    ...{ runtime, requests, config, key },
    async [Symbol.asyncDispose]() {
      await requests.close();
      await runtime.close();
    },
  };
}

/** The action that pays an invoice. */
export const paying = (id: number) => ({
  sql: `update invoice set status = 'paid' where id = ${id}`,
});

/** Puts so many requests into the inbox, copies of one that was really asked. */
export async function fillInbox({ requests }: Site, folder: string, pending: number) {
  const effects = [update('invoice', { id: 1 }, { status: ['open', 'paid'] })];
  const asked = { by: 'agent', run: 'bench', manifest: { adapter: 'books', effects } };
  const { id } = await requests.ask({ ...asked, action: paying(1) });
  const store = await openSqliteRequests(join(folder, 'requests.db'));
  const model = await store.find(id);
  if (model === undefined) throw new Error('the first request is not there');
  for (let index = 1; index < pending; index += 1) {
    const name = `req_${index.toString(16).padStart(40, '0')}`;
    await store.insert({ ...model, id: name, askedMs: model.askedMs - index });
  }
  await store.close();
}
