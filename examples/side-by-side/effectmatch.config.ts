import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig, defineOperation, read, update } from 'effectmatch';
import { sqlite } from 'effectmatch/adapters/sqlite';
import { z } from 'zod';

const at = (name: string) => join(process.env.SIDE_BY_SIDE ?? '.', name);

/** What a person approves: this invoice goes from open to paid, and nothing else changes. */
const markPaid = defineOperation({
  name: 'mark-paid',
  adapter: 'books',
  input: z.strictObject({ invoice: z.int() }).describe('Marks one open invoice as paid.'),
  reads: ({ invoice }) => [read('invoice', { id: invoice })],
  approve: ({ invoice }) => ({
    effects: [update('invoice', { id: invoice }, { status: ['open', 'paid'] })],
  }),
  action: ({ invoice }) => ({
    sql: "update invoice set status = 'paid' where id = ?",
    values: [invoice],
  }),
});

export default defineConfig({
  store: at('effectmatch.db'),
  keyring: at('effectmatch.keys.json'),
  issuers: {
    alice: {
      key: JSON.parse(readFileSync(at('alice.json'), 'utf8')).publicKey,
      may: ['books'],
      sources: ['contract'],
    },
  },
  adapters: {
    books: sqlite({ file: at('books.db'), relations: ['invoice', 'vendor', 'reminder'] }),
  },
  operations: { 'mark-paid': markPaid },
  requests: { store: at('requests.db') },
  agents: { clerk: { operations: ['mark-paid'], read: ['books'] } },
});
