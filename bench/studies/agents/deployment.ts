import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { sqlite } from '../../../src/adapters/sqlite/index.ts';
import {
  approver,
  defineOperation,
  generated,
  insert,
  loadApproverKey,
} from '../../../src/index.ts';
import type { RuntimeConfig } from '../../../src/runtime/runtime.ts';

export const AGENTS = 50;
/** The numbers of operations that agents are offered. */
export const OFFERS = [1, 10, 50] as const;
const MANY = 1_000_000;

/** Only the first operation is signed automatically. They differ in name but have the same rule. */
function operation(index: number) {
  return defineOperation({
    name: `pay_${index}`,
    adapter: 'books',
    input: z
      .strictObject({ payee: z.string().max(100), amount: z.int().positive() })
      .describe('Pays an amount to a payee.'),
    approve: ({ payee, amount }) => ({
      effects: [insert('payment', { id: generated('id'), payee, amount })],
    }),
    action: ({ payee, amount }) => ({
      sql: 'insert into payment (payee, amount) values (?, ?)',
      values: [payee, amount],
    }),
  });
}

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

/** The names of the paying agents. {@link offerName} names one agent per offer. */
export const PAYERS = numbers(AGENTS).map((index) => `payer-${index}`);
export const offerName = (count: number) => `offered-${count}`;

/** The deployment in a folder. An approver without limits signs `pay_1`, so a call executes it. */
export function configFor(folder: string): RuntimeConfig {
  const at = (name: string) => join(folder, name);
  const rule = approver(loadApproverKey(at('rule.key.json')));
  const digests = JSON.parse(readFileSync(at('digests.json'), 'utf8')) as Record<string, string>;
  const names = numbers(Math.max(...OFFERS)).map((index) => `pay_${index}`);
  const agent = (name: string, operations: readonly string[]) => {
    const token = digests[name] ?? [];
    return [name, { token, operations, callsPerMinute: MANY }] as const;
  };
  return {
    store: at('effectmatch.db'),
    keyring: at('keys.json'),
    issuers: { rule: { key: rule.publicKey, may: ['books'], sources: ['contract'] } },
    adapters: { books: sqlite({ file: at('books.db'), relations: ['payment'] }) },
    operations: Object.fromEntries(
      names.map((name, index) => [name, operation(index + 1)] as const),
    ),
    requests: {
      store: at('requests.db'),
      run: 'on-call',
      rules: [{ approver: rule, operations: ['pay_1'], expiresIn: '10m' }],
    },
    agents: Object.fromEntries([
      ...PAYERS.map((name) => agent(name, ['pay_1'])),
      ...OFFERS.map((count) => agent(offerName(count), names.slice(0, count))),
    ]),
  };
}
