import { draftPaymentOptions } from '../../examples/payment-service/adapter.ts';
import { startPaymentService } from '../../examples/payment-service/server.ts';
import { draftHttp } from '../../src/adapters/http/index.ts';
import { insert, read } from '../../src/protocol/draft.ts';
import type { AdapterKit } from '../../src/testing/index.ts';

let accounts = 0;

/** A payment service whose orders are drafted before they are paid. */
export const draftsKit: AdapterKit = {
  async fresh() {
    const service = await startPaymentService();
    accounts += 1;
    const account = `account-${accounts}`;
    const { payments, notices, payees } = service.account(account);
    const order = { id: 'p-1', payee: 'acme', amount: 35, memo: null };
    const extra = { ...order, id: 'p-2' };
    const failing = { ...order, amount: -1 };
    return {
      factory: draftHttp(
        draftPaymentOptions({ origin: service.origin, token: service.token, account }),
      ),
      readDurable: async () => structuredClone({ payments, notices, payees }),
      effect: { action: { input: { orders: [order] } }, leaves: [insert('payment', order)] },
      extra: { input: { orders: [order, extra] } },
      failing: { input: { orders: [order, failing] } },
      reads: [
        read('payee', { id: 'acme' }),
        read('payee', { id: 'globex' }, ['iban']),
        read('payee', { id: 'nobody' }),
      ],
      close: async () => await service[Symbol.asyncDispose](),
    };
  },
};
