import { appendFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Account, type Entry } from './account.ts';
import { Faults } from './faults.ts';
import { answer, type Inbound } from './routes.ts';

/**
 * A running service. The credential of an account is `<token>.<account>`; the account is created on
 * first use.
 */
export interface PaymentService extends AsyncDisposable {
  readonly origin: string;
  /**
   * The secret part of every credential that the service accepts, for the `Authorization` header.
   */
  readonly token: string;
  /** How many requests arrived without a valid credential. */
  readonly strangers: number;
  account(name: string): Account;
  faults(name: string): Faults;
}

const BODY_MAX = 1 << 20;

/** How a service differs from the usual one. */
export interface PaymentServiceOptions {
  readonly token?: string;
  readonly honoursKeys?: boolean;
  readonly open?: boolean;
  /**
   * A file to which every change is added as it happens, one line each: what remains when the
   * service has ended.
   */
  readonly book?: string;
}

/** Starts the service on loopback, on a free port. It remembers as long as it runs. */
export async function startPaymentService(
  options: PaymentServiceOptions = {},
): Promise<PaymentService> {
  const { token = 'Bearer pay-7d41c7f09b2e', honoursKeys = true, open = false, book } = options;
  const accounts = new Map<string, { readonly account: Account; readonly faults: Faults }>();
  const at = (name: string) => {
    const write = (entry: Entry) =>
      book && appendFileSync(book, `${JSON.stringify({ account: name, ...entry })}\n`);
    const known = accounts.get(name) ?? { account: new Account(write), faults: new Faults() };
    accounts.set(name, known);
    return known;
  };
  let strangers = 0;
  const server = createServer((request, response) => {
    void handle(request, response).catch(() => response.destroy());
  });
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await readBody(request);
    if (body === undefined) return reply(response, 413, { error: 'too large' });
    const name = accountOf(request.headers.authorization, token) ?? (open ? 'main' : undefined);
    if (name === undefined) {
      strangers += 1;
      return reply(response, 401, { error: 'the credential is missing or wrong' });
    }
    const url = new URL(request.url ?? '/', 'http://service');
    const [, ...path] = url.pathname.split('/').map(decodeURIComponent);
    const inbound: Inbound = {
      method: request.method ?? 'GET',
      path,
      query: url.searchParams,
      headers: request.headers,
      body,
      honoursKeys,
    };
    const { account, faults } = at(name);
    const outbound = answer(account, faults, inbound);
    if (outbound === 'drop') return void response.destroy();
    if (outbound.truncate) {
      response.writeHead(outbound.status, {
        'content-type': 'application/json',
        'content-length': 4096,
      });
      response.write(JSON.stringify(outbound.body).slice(0, 8), () => response.destroy());
      return;
    }
    reply(response, outbound.status, outbound.body, outbound.headers);
  };
  const origin = await listen(server);
  return {
    origin,
    token,
    get strangers() {
      return strangers;
    },
    account: (name) => at(name).account,
    faults: (name) => at(name).faults,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function accountOf(credential: string | undefined, token: string): string | undefined {
  return credential?.startsWith(`${token}.`) ? credential.slice(token.length + 1) : undefined;
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The body as text; undefined if it is too large. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += (chunk as Buffer).length;
    if (size > BODY_MAX) return undefined;
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString('utf8');
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
