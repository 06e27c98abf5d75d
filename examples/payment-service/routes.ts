import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import {
  type Account,
  type Effect,
  etagOf,
  type Order,
  Refusal,
  type Remembered,
} from './account.ts';
import type { Fault, Faults } from './faults.ts';

/** A request whose credential is valid. */
export interface Inbound {
  readonly method: string;
  readonly path: readonly string[];
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly honoursKeys: boolean;
}

export interface Outbound {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Record<string, string>;
  readonly truncate?: boolean;
}

/** What the service answers; `drop` cuts the connection. */
export function answer(account: Account, faults: Faults, inbound: Inbound): Outbound | 'drop' {
  try {
    const { method, path } = inbound;
    const [collection, id] = path;
    if (method === 'GET') {
      return faults.readsUnavailable
        ? { status: 503, body: { error: 'try later' } }
        : read(account, inbound);
    }
    if (method === 'POST' && collection === 'payments') {
      return write(account, faults, inbound, (fault) =>
        account.pay(orderOf(inbound), fault === 'hidden-effect'),
      );
    }
    if (method === 'PATCH' && collection === 'payees' && id !== undefined) {
      const { iban } = parse(inbound.body) as { iban?: unknown };
      return write(account, faults, inbound, () =>
        account.changePayee(id, String(iban), inbound.headers['if-match'] as string | undefined),
      );
    }
    return writeDraft(account, faults, inbound);
  } catch (error) {
    if (error instanceof Refusal) return { status: error.status, body: { error: error.message } };
    throw error;
  }
}

function read(account: Account, { path, query }: Inbound): Outbound {
  const [collection, id] = path;
  if (collection === 'payments') {
    const payments = [...account.payments].map(([paymentId, payment]) => ({
      id: paymentId,
      ...payment,
    }));
    return { status: 200, body: { payments } };
  }
  if (collection === 'payees' && id !== undefined) {
    const payee = account.payees.get(id);
    if (payee === undefined) throw new Refusal(404, 'there is no such payee');
    const etag = etagOf(payee);
    return { status: 200, body: { id, iban: payee.iban, etag }, headers: { etag } };
  }
  if (collection === 'requests' && id !== undefined) {
    const known = account.requests.get(id);
    if (known === undefined) throw new Refusal(404, 'no request has this key');
    const { state, why, at, effects } = known;
    return { status: 200, body: { key: id, state, why, at, effects } };
  }
  if (collection === 'ledger') {
    const entries = account.ledger.filter(({ key }) => key === query.get('key'));
    return { status: 200, body: { counts: countOf(entries.map(({ effect }) => effect)) } };
  }
  if (collection === 'drafts' && id !== undefined) {
    const draft = account.drafts.get(id);
    if (draft === undefined) throw new Refusal(404, 'there is no such draft');
    return { status: 200, body: { ...draft, revision: account.revision } };
  }
  if (collection === 'publications' && id !== undefined) {
    const publication = account.publications.get(id);
    if (publication === undefined) throw new Refusal(404, 'nothing stands under this key');
    return { status: 200, body: publication };
  }
  if (collection === 'account') return { status: 200, body: { revision: account.revision } };
  throw new Refusal(404, 'there is nothing here');
}

/** One effectful request: a key that was seen before replays what came of it, and does nothing. */
function write(
  account: Account,
  faults: Faults,
  { headers, honoursKeys }: Inbound,
  act: (fault: Fault | undefined) => Effect[],
): Outbound | 'drop' {
  const header = headers['idempotency-key'];
  const key = typeof header === 'string' && honoursKeys ? header : undefined;
  if (typeof header === 'string')
    account.arrivals.set(header, 1 + (account.arrivals.get(header) ?? 0));
  const known = key === undefined ? undefined : account.requests.get(key);
  if (known !== undefined) return { status: known.status, body: known.body };
  const fault = faults.take();
  if (fault === 'drop-before') return 'drop';
  if (fault === 'error-before') return { status: 503, body: { error: 'nothing was done' } };
  if (fault === 'delay-effect') {
    faults.postpone(() => void perform(account, key, () => act(fault)));
    return { status: 202, body: { accepted: true } };
  }
  const done = perform(account, key, () => act(fault));
  if (fault === 'drop-after') return 'drop';
  if (fault === 'error-after') return { status: 500, body: { error: 'something went wrong' } };
  return { status: done.status, body: done.body, truncate: fault === 'truncate-answer' };
}

function perform(account: Account, key: string | undefined, act: () => Effect[]): Remembered {
  const at = new Date().toISOString();
  let remembered: Remembered;
  try {
    const effects = act();
    const body = { id: effects[0]?.key.id ?? null };
    remembered = { state: 'done', why: null, at, effects, status: 201, body };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const body = { error: error.message };
    remembered = {
      state: 'refused',
      why: error.message,
      at,
      effects: [],
      status: error.status,
      body,
    };
  }
  account.remember(key, remembered);
  return remembered;
}

function writeDraft(account: Account, faults: Faults, inbound: Inbound): Outbound | 'drop' {
  const { method, path, body } = inbound;
  const [collection, id = ''] = path;
  if (method === 'POST' && collection === 'drafts') {
    const { orders } = parse(body) as { orders?: unknown };
    if (!Array.isArray(orders)) throw new Refusal(422, 'a draft has orders');
    const checked = orders.map((order) => ({
      ...readOrder(order),
      id: String(order.id ?? randomUUID()),
    }));
    if (checked.some(({ amount }) => amount < 0)) throw new Refusal(422, 'an amount is negative');
    const draft = { id: randomUUID(), base: account.revision, orders: checked };
    account.drafts.set(draft.id, draft);
    return { status: 201, body: { id: draft.id, base: draft.base } };
  }
  if (method === 'DELETE' && collection === 'drafts') {
    account.drafts.delete(id);
    return { status: 204, body: undefined };
  }
  if (collection === 'publications' && method === 'PUT') {
    const { draft, metadata } = parse(body) as { draft?: unknown; metadata?: unknown };
    const fault = faults.take();
    if (fault === 'drop-before') return 'drop';
    const made = !account.publications.has(id);
    const standing =
      typeof draft === 'string'
        ? account.publish(id, draft, String(metadata))
        : account.voidKey(id, String(metadata));
    return fault === 'drop-after' ? 'drop' : { status: made ? 201 : 200, body: standing };
  }
  if (collection === 'publications' && method === 'DELETE') {
    account.publications.delete(id);
    return { status: 204, body: undefined };
  }
  throw new Refusal(405, 'that cannot be done here');
}

function orderOf({ body }: Inbound): Order {
  return readOrder(parse(body));
}

function readOrder(input: unknown): Order {
  const { payee, amount, memo = null } = (input ?? {}) as Record<string, unknown>;
  if (typeof payee !== 'string' || !Number.isSafeInteger(amount))
    throw new Refusal(422, 'payee and amount are needed');
  return { payee, amount: amount as number, memo: memo === null ? null : String(memo) };
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    throw new Refusal(400, 'the body is not JSON');
  }
}

function countOf(effects: readonly Effect[]) {
  const counts = new Map<string, { op: string; target: string; count: number }>();
  for (const { op, target } of effects) {
    const entry = counts.get(`${op} ${target}`) ?? { op, target, count: 0 };
    counts.set(`${op} ${target}`, { ...entry, count: entry.count + 1 });
  }
  return [...counts.values()];
}
