import { join } from 'node:path';
import { mediatedHttp } from '../../../adapters/http/index.ts';
import {
  type Approver,
  approver,
  generateApprover,
  generated,
  insert,
  type PrepareRequest,
  type RuntimeConfig,
} from '../../../index.ts';
import type { Value } from '../../../protocol/value.ts';
import type { Bank } from './bank.ts';

/** What the person approves: one payment, and nothing else at the bank. */
export const PAYMENT: PrepareRequest = {
  adapter: 'bank',
  task: 'invoice-4711',
  planRevision: 1,
  effects: [insert('payment', { id: generated('payment'), payee: 'Nordlicht GmbH', amount: 129_900 })],
  continuations: ['reconcile'],
};

interface Found {
  readonly entries: readonly {
    readonly target: string;
    readonly id: string;
    readonly row: Readonly<Record<string, Value>>;
  }[];
}

/** A deployment in front of the bank, and an approver for it. */
export function openCounter(
  bank: Bank,
  folder: string,
): { readonly config: RuntimeConfig; readonly approver: Approver } {
  const { issuer, publicKey, privateKey } = generateApprover('ap-team');
  return {
    approver: approver({ issuer, privateKey }),
    config: {
      store: join(folder, 'effectmatch.db'),
      keyring: join(folder, 'effectmatch.keys.json'),
      issuers: { 'ap-team': { key: publicKey, may: ['bank'] } },
      adapters: { bank: bankAdapter(bank) },
      recoverAtStart: false,
    },
  };
}

function bankAdapter(bank: Bank) {
  return mediatedHttp({
    service: { url: bank.url, backend: 'demo bank', credential: { header: 'authorization', value: bank.token } },
    targets: {
      payment: { columns: ['id', 'payee', 'amount'], key: ['id'] },
      fee: { columns: ['id', 'amount'], key: ['id'] },
    },
    operations: {
      pay: {
        effects: [{ op: 'insert', target: 'payment' }],
        method: 'POST',
        path: '/payments',
        idempotency: { header: 'idempotency-key' },
        request: ({ effect: { after } }) => ({ body: { payee: after.payee ?? null, amount: after.amount ?? null } }),
        sample: [{ op: 'insert', target: 'payment', key: {}, before: {}, after: { payee: 'probe', amount: 0 } }],
        identifier: ['id'],
        assigns: ['payment.id'],
        readBack: {
          path: '/requests/{key}',
          found: (body) => ({
            records: (body as unknown as Found).entries.map(({ target, id, row }) => ({
              op: 'insert',
              target,
              key: { id },
              before: null,
              after: row,
            })),
          }),
          covers: ['payment', 'fee'],
        },
      },
    },
  });
}
