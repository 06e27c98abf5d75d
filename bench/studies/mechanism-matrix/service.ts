// The remote side: the payment service of the examples, with an event log as ordinary services have
// one.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Account } from '../../../examples/payment-service/account.ts';
import { Faults } from '../../../examples/payment-service/faults.ts';
import { answer } from '../../../examples/payment-service/routes.ts';

export const TOKEN = 'Bearer matrix-19c4';

/** One customer of the service, and how the service treats that customer. */
export class Customer {
  readonly account = new Account();
  readonly faults = new Faults();
  /** The service's own rule: with every payment it also sends a notice. */
  sendsNotices = false;
  /** From the next payment on, nothing can be read. */
  losesReads = false;
  /** Called once the next payment is made; it is never answered then. */
  swallows: (() => void) | undefined;
  /** Called in place of the next payment, which is not made. */
  loses: (() => void) | undefined;
  /** Payments that were asked for; those of admission are none. */
  requests = 0;
}

export interface Service extends AsyncDisposable {
  readonly origin: string;
  customer(name: string): Customer;
}

/**
 * Starts the service on loopback. A customer exists as soon as a request names one:
 * `<token>.<customer>`.
 */
export async function startService(): Promise<Service> {
  const customers = new Map<string, Customer>();
  const customer = (name: string) => {
    const known = customers.get(name) ?? new Customer();
    customers.set(name, known);
    return known;
  };
  const server = createServer(
    (request, response) => void handle(request, response).catch(() => response.destroy()),
  );
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString('utf8');
    const credential = request.headers.authorization;
    if (!credential?.startsWith(`${TOKEN}.`)) return reply(response, 401, {});
    const one = customer(credential.slice(TOKEN.length + 1));
    const url = new URL(request.url ?? '/', 'http://service');
    const [, ...path] = url.pathname.split('/').map(decodeURIComponent);
    const { method = 'GET', headers } = request;
    if (method === 'GET' && path[0] === 'events' && !one.faults.readsUnavailable) {
      return reply(response, 200, { events: eventsOf(one) });
    }
    const isPayment = method === 'POST' && path[0] === 'payments';
    const asked = isPayment ? (JSON.parse(body) as { memo?: unknown; notify?: unknown }) : {};
    const isOrdered = isPayment && asked.memo !== 'probe';
    if (isOrdered) one.requests += 1;
    const loses = isOrdered ? one.loses : undefined;
    if (loses !== undefined) {
      one.loses = undefined;
      return loses();
    }
    if (isOrdered && (one.sendsNotices || asked.notify === true)) one.faults.arm('hidden-effect');
    const outbound = answer(one.account, one.faults, {
      method,
      path,
      query: url.searchParams,
      headers,
      body,
      honoursKeys: true,
    });
    if (isOrdered && one.losesReads) one.faults.readsUnavailable = true;
    const swallows = isOrdered ? one.swallows : undefined;
    if (swallows !== undefined) {
      one.swallows = undefined;
      return swallows();
    }
    if (outbound === 'drop') return void response.destroy();
    reply(response, outbound.status, outbound.body, outbound.headers);
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    customer,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/**
 * The ordinary audit trail: that something changed, in order. It names the request for what a
 * request creates; of what the service does besides, it says neither what it was nor what it was
 * for.
 */
function eventsOf({
  account,
}: Customer): readonly { readonly type: string; readonly request: string | null }[] {
  return account.ledger.map(({ key, effect }) =>
    effect.target === 'payment'
      ? { type: 'payment created', request: key }
      : { type: 'internal', request: null },
  );
}

function reply(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(body === undefined ? '' : JSON.stringify(body));
}
