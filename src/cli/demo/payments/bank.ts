import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One payment that the bank has made. */
export interface Paid {
  readonly id: string;
  readonly payee: string;
  readonly amount: number;
}

interface Entry {
  readonly target: 'payment' | 'fee';
  readonly id: string;
  readonly row: Readonly<Record<string, string | number>>;
}

/** What the bank does wrong with the next payment. */
export type Mishap =
  /** Pays, and cuts the connection instead of answering. */
  | 'answer-lost'
  /** Pays, and charges a fee that nobody was told about. */
  | 'hidden-fee';

/** A bank on loopback: it pays once per idempotency key, and as often as it is asked without one. */
export class Bank implements AsyncDisposable {
  readonly payments: Paid[] = [];
  readonly token = `Bearer ${randomUUID()}`;
  readonly #entries = new Map<string, readonly Entry[]>();
  readonly #server: Server;
  mishap: Mishap | undefined;
  /** While set, nothing can be looked up. */
  unreachable = false;

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch(() => response.destroy());
    });
  }

  static async open(): Promise<Bank> {
    const bank = new Bank();
    await new Promise<void>((resolve, reject) => {
      bank.#server.once('error', reject);
      bank.#server.listen(0, '127.0.0.1', resolve);
    });
    return bank;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Payments of money: the probe of an admission is one of nothing. */
  get made(): readonly Paid[] {
    return this.payments.filter(({ amount }) => amount > 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const reply = (status: number, body: unknown) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    if (request.headers.authorization !== this.token) return reply(401, { error: 'who are you?' });
    if (request.method === 'GET') {
      const entries = this.#entries.get((request.url ?? '').replace('/requests/', ''));
      if (this.unreachable) return void response.destroy();
      return entries === undefined ? reply(404, { error: 'unknown key' }) : reply(200, { entries });
    }
    const { payee, amount } = JSON.parse(Buffer.concat(chunks).toString()) as Omit<Paid, 'id'>;
    const entries = this.#pay(request.headers['idempotency-key'], { payee, amount });
    const lost = this.mishap === 'answer-lost';
    this.mishap = undefined;
    if (lost) return void response.destroy();
    reply(201, { id: entries[0]?.id });
  }

  #pay(key: string | string[] | undefined, { payee, amount }: Omit<Paid, 'id'>): readonly Entry[] {
    const known = typeof key === 'string' ? this.#entries.get(key) : undefined;
    if (known !== undefined) return known;
    const id = randomUUID();
    this.payments.push({ id, payee, amount });
    const entries: Entry[] = [{ target: 'payment', id, row: { payee, amount } }];
    if (this.mishap === 'hidden-fee') entries.push({ target: 'fee', id: randomUUID(), row: { amount: 250 } });
    if (typeof key === 'string') this.#entries.set(key, entries);
    return entries;
  }
}
