import { basename } from 'node:path';
import { opaquePaymentOptions, paymentOptions } from '../../../examples/payment-service/adapter.ts';
import type { PaymentService } from '../../../examples/payment-service/server.ts';
import { mediatedHttp, opaqueHttp } from '../../../src/adapters/http/index.ts';
import { generated, insert } from '../../../src/protocol/draft.ts';
import type { Backend } from './backend.ts';

/** Where every process finds the service: origin, a blank, and the credential. */
export const PAYMENTS = 'EFFECTMATCH_TEST_PAYMENTS';

const amountOf = (n: number) => 10 + n;

/**
 * The payment service, which runs in the process of the test and outlives everybody who is killed.
 * Every folder has an account of its own. What is durable is read from the service itself, so the
 * ports that look into a folder are empty.
 */
function httpBackend(capability: 'MEDIATED' | 'OPAQUE'): Backend {
  const name = `http-${capability.toLowerCase()}`;
  return {
    name,
    blocksAt: [],
    create: async () => {},
    factory(folder) {
      const [origin = '', ...token] = (process.env[PAYMENTS] ?? '').split(' ');
      const place = { origin, token: token.join(' '), account: accountOf(name, folder) };
      return capability === 'MEDIATED'
        ? mediatedHttp(paymentOptions(place))
        : opaqueHttp(opaquePaymentOptions(place));
    },
    plan({ n, kind }) {
      const payment = { payee: 'acme', amount: amountOf(n), memo: `order ${n}` };
      const asked = { ...payment, amount: kind === 'surprise' ? 1000 : payment.amount };
      return {
        effects: [insert('payment', { id: generated('payment'), ...payment })],
        action: capability === 'MEDIATED' ? {} : { operation: 'pay', input: asked },
      };
    },
    readState: async () => [],
    expectState: () => [],
    readMarkers: async () => [],
    falsify: async () => {},
    loseMarker: async () => {},
  };
}

export const REMOTE_BACKENDS: readonly Backend[] = [httpBackend('MEDIATED'), httpBackend('OPAQUE')];

function accountOf(backend: string, folder: string): string {
  return `${backend}-${basename(folder)}`;
}

/** What the service did for an operation: how often its key arrived, and how often it was paid. */
export function readService(
  service: PaymentService,
  installation: { readonly backend: Backend; readonly folder: string },
  operation: { readonly n: number; readonly occurrence: string },
): { readonly arrivals: number; readonly payments: number } {
  const account = service.account(accountOf(installation.backend.name, installation.folder));
  const paid = [...account.payments.values()].filter(({ memo }) => memo === `order ${operation.n}`);
  return { arrivals: account.arrivals.get(operation.occurrence) ?? 0, payments: paid.length };
}
