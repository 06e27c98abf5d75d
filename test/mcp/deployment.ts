import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { sqlite } from '../../src/adapters/sqlite/index.ts';
import { defineOperation, generated, insert } from '../../src/index.ts';
import type { RuntimeConfig } from '../../src/runtime/runtime.ts';

/** What a folder of the tests has to say about its deployment. */
export interface OfficeFile {
  readonly publicKey: string;
  readonly digests: Readonly<Record<string, string>>;
  readonly link?: string;
  readonly callsPerMinute?: number;
  /** The adapters on which clerk and rival may open tasks. */
  readonly tasks?: readonly string[];
  /** The upstream servers that clerk reaches. */
  readonly upstreams?: readonly string[];
}

/** Paying depends on no state: a second execution would pay twice. */
const pay = defineOperation({
  name: 'pay/invoice',
  adapter: 'books',
  input: z.strictObject({ payee: z.string(), amount: z.int().positive() }).describe('Pays.'),
  approve: ({ payee, amount }) => ({
    effects: [insert('payment', { id: generated('id'), payee, amount })],
  }),
  action: ({ payee, amount }) => ({
    sql: 'insert into payment (payee, amount) values (?, ?) returning id',
    values: [payee, amount],
  }),
});

/** The deployment in a folder, for servers in this process and in others. */
export function configFor(folder: string, more: Partial<RuntimeConfig> = {}): RuntimeConfig {
  const at = (name: string) => join(folder, name);
  const file = JSON.parse(readFileSync(at('office.json'), 'utf8')) as OfficeFile;
  const { publicKey, digests, link, callsPerMinute = 100_000, tasks = [], upstreams } = file;
  const agent = (name: string) => ({ token: digests[name] ?? [], callsPerMinute });
  return {
    store: at('effectmatch.db'),
    leaseMs: 1000,
    keyring: at('effectmatch.keys.json'),
    issuers: {
      alice: { key: publicKey, may: ['books'], sources: ['manifest', 'rehearsed', 'contract'] },
    },
    adapters: { books: sqlite({ file: at('books.db'), relations: ['payment', 'budget'] }) },
    operations: { 'pay/invoice': pay },
    requests: { store: at('requests.db'), ...(link !== undefined && { link }) },
    agents: {
      clerk: {
        ...agent('clerk'),
        ...{ operations: ['pay/invoice'], sql: ['books'], read: ['books'], tasks },
        ...(upstreams && { upstreams }),
      },
      rival: { ...agent('rival'), operations: ['pay/invoice'], tasks },
      guest: agent('guest'),
    },
    ...more,
  };
}
