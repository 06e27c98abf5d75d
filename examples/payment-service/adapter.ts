import type {
  DraftOptions,
  MediatedOptions,
  OpaqueOptions,
  TargetOptions,
} from 'effectmatch/adapters/http';
import type { TargetCount } from 'effectmatch/contract';
import type { ChangeRecord, Value } from 'effectmatch/protocol';

/** Where the service is and what only the gateway has. */
export interface Place {
  readonly origin: string;
  readonly token: string;
  readonly account: string;
}

const TARGETS: Readonly<Record<string, TargetOptions>> = {
  payment: { columns: ['id', 'payee', 'amount', 'memo'], key: ['id'] },
  notice: { columns: ['id', 'payee', 'text'], key: ['id'] },
  payee: {
    columns: ['id', 'iban', 'etag'],
    key: ['id'],
    volatile: ['etag'],
    read: { path: '/payees/{id}', row: (body) => body as Readonly<Record<string, Value>> },
  },
};

/** What the service itself keeps under an idempotency key, and its second book. */
const READ_BACK = {
  path: '/requests/{key}',
  found: (body: Value) => {
    const { state, why, effects } = body as unknown as Kept;
    return {
      records: effects,
      ...(state === 'refused' && { refused: `the service refused it: ${why}` }),
    };
  },
  witness: {
    path: '/ledger?key={key}',
    counts: (body: Value) =>
      (body as unknown as { readonly counts: readonly TargetCount[] }).counts,
  },
  covers: ['payment', 'notice', 'payee'],
};

interface Kept {
  readonly state: 'done' | 'refused';
  readonly why: string | null;
  readonly effects: readonly ChangeRecord[];
}

const serviceOf = ({ origin, token, account }: Place) => ({
  url: origin,
  backend: 'payments',
  credential: { header: 'Authorization', value: `${token}.${account}` },
  timeoutMs: 5000,
});

/** The payment service as a MEDIATED backend: pay, and change where a payee's money goes. */
export function paymentOptions(place: Place): MediatedOptions {
  return {
    service: serviceOf(place),
    targets: TARGETS,
    operations: {
      pay: {
        effects: [{ op: 'insert', target: 'payment' }],
        method: 'POST',
        path: '/payments',
        idempotency: { header: 'Idempotency-Key' },
        request: ({ effect: { after } }) => ({
          body: {
            payee: after.payee ?? null,
            amount: after.amount ?? null,
            memo: after.memo ?? null,
          },
        }),
        sample: [
          {
            op: 'insert',
            target: 'payment',
            key: {},
            before: {},
            after: { payee: 'acme', amount: 0, memo: 'probe' },
          },
        ],
        identifier: ['id'],
        assigns: ['payment.id'],
        readBack: READ_BACK,
      },
      'change-payee': {
        effects: [{ op: 'update', target: 'payee' }],
        method: 'PATCH',
        path: '/payees/{id}',
        idempotency: { header: 'Idempotency-Key' },
        ifMatch: { target: 'payee', column: 'etag' },
        request: ({ effect: { key, after } }) => ({
          parameters: key,
          body: { iban: after.iban ?? null },
        }),
        sample: [
          {
            op: 'update',
            target: 'payee',
            key: { id: 'acme' },
            before: {},
            after: { iban: 'NL00' },
          },
        ],
        identifier: ['id'],
        readBack: READ_BACK,
      },
    },
  };
}

/**
 * The same service, as one that others write to as well: the agent says what to pay, within these
 * fields.
 */
export function opaquePaymentOptions(place: Place): OpaqueOptions {
  return {
    service: serviceOf(place),
    targets: TARGETS,
    operations: {
      pay: {
        method: 'POST',
        path: '/payments',
        idempotency: { header: 'Idempotency-Key' },
        input: (untrusted) => {
          const {
            payee,
            amount,
            memo = null,
            ...more
          } = untrusted as Readonly<Record<string, Value>>;
          if (typeof payee !== 'string' || typeof amount !== 'number')
            throw new Error('it needs payee and amount');
          if (Object.keys(more).length > 0)
            throw new Error(`there is no field "${Object.keys(more)[0]}"`);
          return { payee, amount, memo };
        },
        request: (input) => ({ body: input }),
        assigns: ['payment.id'],
        readBack: READ_BACK,
      },
    },
  };
}

interface DraftBody {
  readonly base: number;
  readonly revision: number;
  readonly orders: readonly {
    readonly id: string;
    readonly payee: string;
    readonly amount: number;
    readonly memo: string | null;
  }[];
}

const PROBE = 'probe-';

/**
 * The same service by its drafts: orders are drafted, compared, and paid only if they are what was
 * approved.
 */
export function draftPaymentOptions(place: Place): DraftOptions {
  return {
    service: { ...serviceOf(place), backend: `payments of ${place.account}` },
    targets: TARGETS,
    draft: {
      input: (untrusted) => {
        const { orders, ...more } = untrusted as Readonly<Record<string, Value>>;
        if (!Array.isArray(orders) || orders.length === 0) throw new Error('it needs orders');
        if (Object.keys(more).length > 0) throw new Error('it has more than orders');
        return { orders: orders.map(readOrder) };
      },
      create: { path: '/drafts', request: (input) => ({ body: input }), id: ['id'] },
      path: '/drafts/{id}',
      content: (body) => {
        const { base, revision, orders } = body as unknown as DraftBody;
        const records = orders.map(({ id, ...payment }): ChangeRecord => {
          const target = id.startsWith(PROBE) ? 'probe' : 'payment';
          return { op: 'insert', target, key: { id }, before: null, after: payment };
        });
        return { records, base: { before: `revision ${base}`, now: `revision ${revision}` } };
      },
    },
    publication: {
      path: '/publications/{key}',
      publish: (draft, metadata) => ({ draft, metadata }),
      void: (metadata) => ({ metadata }),
      standing: (body) =>
        body as unknown as {
          readonly disposition: 'published' | 'void';
          readonly metadata: string;
        },
      refusals: [410, 412, 422],
    },
    probe: {
      input: (token) => ({ orders: [{ id: `${PROBE}${token}`, payee: 'acme', amount: 0 }] }),
      target: 'probe',
      path: '/payments',
      durable: (body, token) => JSON.stringify(body).includes(`${PROBE}${token}`),
    },
  };
}

function readOrder(order: Value): Value {
  const { id, payee, amount, memo = null, ...more } = order as Readonly<Record<string, Value>>;
  if (typeof id !== 'string' || id.startsWith(PROBE)) {
    throw new Error(`an order needs an id that does not start with "${PROBE}"`);
  }
  if (typeof payee !== 'string' || typeof amount !== 'number')
    throw new Error('an order needs payee and amount');
  if (Object.keys(more).length > 0) throw new Error(`there is no field "${Object.keys(more)[0]}"`);
  return { id, payee, amount, memo };
}
