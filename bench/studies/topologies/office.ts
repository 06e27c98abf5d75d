// Four backends for the cases: a SQLite file, a folder, a payment service and a PostgreSQL
// database. What another process needs to open the same deployment is one JSON text.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { z } from 'zod';
import { paymentOptions } from '../../../examples/payment-service/adapter.ts';
import { startPaymentService } from '../../../examples/payment-service/server.ts';
import { files } from '../../../src/adapters/files/index.ts';
import { mediatedHttp } from '../../../src/adapters/http/index.ts';
import { type PostgresOptions, postgres } from '../../../src/adapters/postgres/index.ts';
import { sqlite } from '../../../src/adapters/sqlite/index.ts';
import { type ApproverKey, generateApprover } from '../../../src/crypto/approver.ts';
import { generated, insert, row } from '../../../src/protocol/draft.ts';
import { defineOperation } from '../../../src/runtime/operation.ts';
import type { RuntimeConfig } from '../../../src/runtime/runtime.ts';
import { protectedDatabase } from '../../../test/postgres/protected.ts';
import type { TestDatabase } from '../../../test/postgres/server.ts';

/** What every process needs to open the deployment. */
export interface OfficeFacts {
  readonly folder: string;
  readonly store: string;
  readonly publicKey: string;
  readonly bank: Parameters<typeof paymentOptions>[0];
  readonly crm: PostgresOptions;
}

/** An amount with which a backend does more than was approved. */
export const POISON = 666;
/** More than the approver may sign. */
export const EXCESSIVE = 5000;

const TABLES = `create table entry (tag text primary key not null, amount integer not null);
  create table notice (tag text primary key not null);
  create table gate (id text primary key not null, open integer not null);`;

const schema = z.object({ tag: z.string(), gate: z.string(), amount: z.number() });
const approveEntry = ({ tag, gate, amount }: z.infer<typeof schema>) => ({
  effects: [insert('entry', { tag, amount })],
  requires: [row('gate', { id: gate }, { open: 1 })],
});

const OPERATIONS = {
  post: defineOperation({
    name: 'post',
    adapter: 'books',
    input: schema,
    approve: approveEntry,
    action: ({ tag, amount }) => ({
      sql: 'insert into entry values (?, ?)',
      values: [tag, amount],
    }),
  }),
  note: defineOperation({
    name: 'note',
    adapter: 'crm',
    input: schema,
    approve: approveEntry,
    action: ({ tag, amount }) => ({
      sql: 'insert into entry values ($1, $2)',
      values: [tag, amount],
    }),
  }),
  file: defineOperation({
    name: 'file',
    adapter: 'archive',
    input: schema,
    approve: ({ tag }) => ({ effects: [insert('file', { path: `${tag}.txt`, content: tag })] }),
    action: ({ tag, amount }) => ({
      operations: [
        { write: { path: `${tag}.txt`, text: tag } },
        ...(amount === 666 ? [{ write: { path: 'surplus.txt', text: 'more' } }] : []),
      ],
    }),
  }),
  pay: defineOperation({
    name: 'pay',
    adapter: 'bank',
    input: schema,
    approve: ({ tag, amount }) => ({
      effects: [insert('payment', { id: generated('payment'), payee: 'acme', amount, memo: tag })],
    }),
    action: () => ({}),
  }),
};
/** The operations, in the order in which the nodes of a plan take turns. */
export const OPERATION_NAMES = ['post', 'file', 'pay', 'note'] as const;

/** The configuration of one process. */
export function officeConfig(facts: OfficeFacts) {
  const at = (name: string) => join(facts.folder, name);
  const amounts = { amounts: [{ target: 'entry', column: 'amount', max: 1000 }] };
  return {
    store: facts.store,
    keyring: at('keys.json'),
    leaseMs: 6000,
    issuers: {
      clerk: {
        key: facts.publicKey,
        may: ['books', 'archive', 'bank', 'crm'],
        sources: ['contract'],
        limits: amounts,
      },
    },
    operations: OPERATIONS,
    adapters: {
      books: sqlite({ file: at('books.db'), relations: ['entry', 'notice', 'gate'] }),
      archive: files({ root: at('archive'), adopt: true }),
      bank: mediatedHttp(paymentOptions(facts.bank)),
      crm: postgres(facts.crm),
    },
  } satisfies RuntimeConfig;
}

/** The backends, seen from outside of EffectMatch. */
export interface Office extends AsyncDisposable {
  readonly facts: OfficeFacts;
  readonly clerk: ApproverKey;
  /** Opens or closes the gate that entries of one run need. */
  setGate(id: string, open: boolean): Promise<void>;
  /** Lets the next payment do more than was asked for. */
  poisonBank(): void;
}

/** Starts the backends. `store` says where the ledger is, given the database of the CRM. */
export async function openOffice(
  folder: string,
  store: (db: TestDatabase) => Promise<string> = async () => join(folder, 'ledger.db'),
  db?: TestDatabase,
): Promise<Office> {
  const books = new DatabaseSync(join(folder, 'books.db'));
  books.exec(`${TABLES}
    create trigger surplus after insert on entry when new.amount = ${POISON}
      begin insert into notice values (new.tag); end;`);
  mkdirSync(join(folder, 'archive'));
  writeFileSync(join(folder, 'archive', 'readme.txt'), 'papers\n');
  const service = await startPaymentService({ book: join(folder, 'bank.jsonl') });
  const relations = ['entry', 'notice', 'gate'];
  const crm = await protectedDatabase(
    `${TABLES}
    create function surplus() returns trigger language plpgsql as
      $$ begin insert into notice values (new.tag); return null; end $$;
    create trigger surplus after insert on entry for each row when (new.amount = ${POISON})
      execute function surplus();`,
    { relations },
    db === undefined ? {} : { db },
  );
  const clerk = generateApprover('clerk');
  const bank = { origin: service.origin, token: service.token, account: 'main' };
  const facts = {
    ...{ folder, bank, crm: crm.options, publicKey: clerk.publicKey },
    store: await store(crm.db),
  };
  return {
    ...{ facts, clerk },
    async setGate(id, open) {
      const text = `insert into gate values ('${id}', ${open ? 1 : 0})
        on conflict (id) do update set open = excluded.open`;
      books.exec(text);
      await crm.db.run(text);
    },
    poisonBank: () => service.faults('main').arm('hidden-effect'),
    async [Symbol.asyncDispose]() {
      books.close();
      await service[Symbol.asyncDispose]();
      await crm[Symbol.asyncDispose]();
    },
  };
}
