// A host with a database, a request file and a ledger in one folder. Other processes can open the
// same folder: all facts are files or JSON.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sqlite } from '../../src/adapters/sqlite/index.ts';
import { agentTools, type ToolAnswer } from '../../src/agents/index.ts';
import { approver, generateApprover } from '../../src/index.ts';
import { openRequests, type RequestsOptions } from '../../src/requests/index.ts';
import { createRuntime, type Internals } from '../../src/runtime/runtime.ts';

/** What a process has to know in order to open the desk. */
export interface DeskFacts {
  readonly folder: string;
  readonly publicKey: string;
}

/** The one call that agents make. It depends on no state: done twice, it would pay twice. */
export const PAY = {
  name: 'sql_books',
  input: {
    sql: 'insert into payment (payee, amount) values (?, ?) returning id',
    values: ['globex', 35],
  },
} as const;

export function createDesk() {
  const folder = mkdtempSync(join(tmpdir(), 'desk-'));
  const db = new DatabaseSync(join(folder, 'books.db'));
  db.exec(`pragma journal_mode = wal;
    create table payment (id integer primary key, payee text not null, amount integer not null)`);
  const alice = generateApprover('alice');
  const facts: DeskFacts = { folder, publicKey: alice.publicKey };
  return {
    facts,
    /** The approver's key, for another process. */
    key: alice,
    alice: approver(alice),
    /** Another key under the same name. */
    mallory: approver(generateApprover('alice')),
    payments: () => Number(db.prepare('select count(*) as n from payment').get()?.n),
    [Symbol.dispose]() {
      db.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
export type Desk = ReturnType<typeof createDesk>;

/** A host on the folder, with the tools of one agent in one run. */
export async function openDesk(
  { folder, publicKey }: DeskFacts,
  options: Partial<RequestsOptions> = {},
  internals: Internals = {},
) {
  const file = join(folder, 'books.db');
  const runtime = await createRuntime(
    {
      store: join(folder, 'effectmatch.db'),
      keyring: join(folder, 'keys.json'),
      issuers: { alice: { key: publicKey, may: ['books'], sources: ['rehearsed'] } },
      adapters: { books: sqlite({ file, relations: ['payment'] }) },
      leaseMs: 500,
    },
    internals,
  );
  const store = join(folder, 'requests.db');
  const link = 'https://desk.example/{id}';
  const requests = await openRequests({ runtime, store, link, expiresIn: '1h', ...options });
  const adapters = { books: { sql: true, read: true } };
  const tools = agentTools({ requests, runtime, agent: 'clerk', run: 'run 1', adapters });
  return {
    ...{ runtime, requests, tools },
    /** The request that the agent's call is, without asking again. */
    async only() {
      const [request] = await requests.list();
      if (request === undefined) throw new Error('nothing was asked');
      return request;
    },
    async [Symbol.asyncDispose]() {
      await requests.close();
      await runtime.close();
    },
  };
}
export type OpenDesk = Awaited<ReturnType<typeof openDesk>>;

export async function sign(desk: Desk, { requests, only }: OpenDesk, by = desk.alice) {
  const { id, proposal } = await only();
  return await requests.answer(id, by.sign(proposal, { expiresIn: '10m' }));
}

export type { ToolAnswer };
