/**
 * The host of an agent: a database, its runtime, the requests, and a person who signs.
 *
 * @module
 */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { approver, createRuntime, generateApprover } from 'effectmatch';
import { sqlite } from 'effectmatch/adapters/sqlite';
import { type AgentTool, agentTools } from 'effectmatch/agents';
import { openRequests } from 'effectmatch/requests';
import { tell } from '../story.ts';

/** What the agent is asked to do. */
export const TASK = 'Pay 35 to globex for invoice 4711: insert it into payment (payee, amount).';

/** Where the model is. */
export interface ModelPlace {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly model: string;
}

/** What an example of a framework gets. */
export interface Office extends AsyncDisposable {
  readonly tools: readonly AgentTool[];
  /** Shows what the framework paused with. */
  show(text: string): void;
  /** A person signs what is open: elsewhere, with a key that neither agent nor host has. */
  sign(): Promise<void>;
  payments(): readonly string[];
}

/** Talks with the model until it has answered; returns what it said. */
export type Converse = (office: Office, place: ModelPlace) => Promise<string>;

export async function openOffice(folder: string): Promise<Office> {
  const file = join(folder, 'books.db');
  const books = new DatabaseSync(file);
  books.exec(`create table payment (
    id integer primary key, payee text not null, amount integer not null)`);
  const alice = approver(generateApprover('alice'));
  const runtime = await createRuntime({
    store: join(folder, 'effectmatch.db'),
    keyring: join(folder, 'effectmatch.keys.json'),
    adapters: { books: sqlite({ file, relations: ['payment'] }) },
    issuers: { alice: { key: alice.publicKey, may: ['books'], sources: ['rehearsed'] } },
  });
  const store = join(folder, 'requests.db');
  const requests = await openRequests({ runtime, store, link: 'https://desk.example/{id}' });
  const adapters = { books: { sql: true, read: true } };
  const tools = agentTools({ requests, runtime, agent: 'clerk', run: 'invoice 4711', adapters });
  return {
    tools,
    show: (text) => tell('pause', text),
    async sign() {
      for (const { id, proposal } of await requests.list({ state: 'pending' })) {
        await requests.answer(id, alice.sign(proposal, { expiresIn: '10m' }));
        tell('signed', id);
      }
    },
    payments: () =>
      books
        .prepare('select payee, amount from payment')
        .all()
        .map(({ payee, amount }) => `${payee}: ${amount}`),
    async [Symbol.asyncDispose]() {
      await requests.close();
      await runtime.close();
      books.close();
    },
  };
}
