// A host with a database, agents that ask it, and people who answer.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sqlite } from '../../src/adapters/sqlite/index.ts';
import { approver, generateApprover } from '../../src/index.ts';
import { openRequests, type RequestsOptions } from '../../src/requests/index.ts';
import { createRuntime } from '../../src/runtime/runtime.ts';
import { testKeyring } from '../keyring.ts';

const SCHEMA = `pragma journal_mode = wal;
  create table payment (id integer primary key, payee text not null, amount integer not null);
  create table budget (id integer primary key, left integer not null);
  insert into budget values (1, 100)`;

/** Paying depends on no state: a second execution would pay twice. */
export const pay = (payee: string, amount = 10) => ({
  adapter: 'books',
  action: {
    sql: 'insert into payment (payee, amount) values (?, ?) returning id',
    values: [payee, amount],
  },
});

/** A clock that a test moves. It starts now, because licenses are signed by the real clock. */
export class OfficeClock {
  #aheadMs = 0;
  readonly now = () => Date.now() + this.#aheadMs;
  readonly monotonic = () => performance.now() + this.#aheadMs;
  advance(ms: number): void {
    this.#aheadMs += ms;
  }
}

/** A folder with a database, and hosts that can be started on it. */
export function openOffice() {
  const folder = mkdtempSync(join(tmpdir(), 'requests-'));
  const file = join(folder, 'books.db');
  const db = new DatabaseSync(file);
  db.exec(SCHEMA);
  const keyring = testKeyring();
  const clock = new OfficeClock();
  const [alice, bob] = [generateApprover('alice'), generateApprover('bob')];
  return {
    ...{ folder, clock, db },
    alice: approver({ ...alice, clock }),
    bob: approver({ ...bob, clock }),
    stranger: approver({ ...generateApprover('alice'), clock }),
    /** With these terms for Bob and Alice in addition to the usual ones. */
    async start(options: Partial<RequestsOptions> = {}, limits = {}, terms = {}) {
      const runtime = await createRuntime(
        {
          store: join(folder, 'effectmatch.db'),
          keyring,
          issuers: {
            alice: {
              key: alice.publicKey,
              may: ['books'],
              sources: ['manifest', 'rehearsed', 'contract'],
              ...terms,
            },
            bob: { key: bob.publicKey, may: ['books'], sources: ['rehearsed'], ...limits },
          },
          adapters: { books: sqlite({ file, relations: ['payment', 'budget'] }) },
          ...(options.operations && { operations: options.operations }),
        },
        { clock },
      );
      const store = join(folder, 'requests.db');
      const requests = await openRequests({ runtime, store, clock, ...options });
      return {
        ...{ runtime, requests },
        async [Symbol.asyncDispose]() {
          await requests.close();
          await runtime.close();
        },
      };
    },
    payments: () =>
      db
        .prepare('select payee, amount from payment order by id')
        .all()
        .map((row) => ({ ...row })),
    [Symbol.dispose]() {
      db.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
