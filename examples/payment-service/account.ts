import { randomUUID } from 'node:crypto';

/** One change that a request made, as the account's own audit trail keeps it. */
export interface Effect {
  readonly op: 'insert' | 'update' | 'delete';
  readonly target: 'payment' | 'notice' | 'payee';
  readonly key: { readonly id: string };
  readonly before: Fields | null;
  readonly after: Fields | null;
}

export type Fields = { readonly [field: string]: string | number | boolean | null };

/** What the service remembers under an idempotency key. */
export interface Remembered {
  readonly state: 'done' | 'refused';
  readonly why: string | null;
  readonly at: string;
  readonly effects: readonly Effect[];
  readonly status: number;
  readonly body: unknown;
}

/** One line of the second book: a change, and the key of the request that made it. */
export interface Entry {
  readonly key: string | null;
  readonly effect: Effect;
}

/** A payment as requested. */
export interface Order {
  /** Chosen by the service, except in a draft. */
  readonly id?: string;
  readonly payee: string;
  readonly amount: number;
  readonly memo: string | null;
}

/** A prepared set of payments that are not paid yet. */
export interface Draft {
  readonly id: string;
  /** Revision of the account that the draft was made on. */
  readonly base: number;
  readonly orders: readonly Order[];
}

/**
 * What stands under a publication key: the draft that was published under it, or nothing for ever.
 */
export interface Publication {
  readonly key: string;
  readonly disposition: 'published' | 'void';
  readonly metadata: string;
}

/** An account that was asked for something it does not do. */
export class Refusal extends Error {
  readonly status: number;

  constructor(status: number, why: string) {
    super(why);
    this.status = status;
  }
}

/** One customer's payments: the durable side of the service, kept in memory. */
export class Account {
  readonly payments = new Map<string, Fields>();
  readonly notices = new Map<string, Fields>();
  readonly payees = new Map<string, { iban: string; version: number }>([
    ['acme', { iban: 'NL01', version: 1 }],
    ['globex', { iban: 'NL02', version: 1 }],
  ]);
  readonly requests = new Map<string, Remembered>();
  readonly drafts = new Map<string, Draft>();
  readonly publications = new Map<string, Publication>();
  /** How often each key arrived, repeated ones included: what really came over the wire. */
  readonly arrivals = new Map<string, number>();
  /** Every change, in order, with the key of the request that made it: the second book. */
  readonly ledger: Entry[] = [];
  revision = 1;
  readonly #written: (entry: Entry) => void;

  /** `written` is called with every entry of the ledger as it is made. */
  constructor(written: (entry: Entry) => void = () => {}) {
    this.#written = written;
  }

  /** Pays, and with it whatever the account's own rules add. */
  pay(order: Order, hidden: boolean): Effect[] {
    if (order.amount < 0) throw new Refusal(422, 'the amount is negative');
    if (!this.payees.has(order.payee)) throw new Refusal(422, 'there is no such payee');
    const id = order.id ?? randomUUID();
    const payment = { payee: order.payee, amount: order.amount, memo: order.memo };
    this.payments.set(id, payment);
    const effects: Effect[] = [
      { op: 'insert', target: 'payment', key: { id }, before: null, after: payment },
    ];
    if (hidden) {
      const notice = { payee: order.payee, text: `paid ${order.amount}` };
      const noticeId = randomUUID();
      this.notices.set(noticeId, notice);
      effects.push({
        op: 'insert',
        target: 'notice',
        key: { id: noticeId },
        before: null,
        after: notice,
      });
    }
    this.revision += 1;
    return effects;
  }

  /** Changes a payee's account, unless it has been changed since the given version. */
  changePayee(id: string, iban: string, ifMatch: string | undefined): Effect[] {
    const payee = this.payees.get(id);
    if (payee === undefined) throw new Refusal(404, 'there is no such payee');
    if (ifMatch !== undefined && ifMatch !== etagOf(payee))
      throw new Refusal(412, 'the payee has changed');
    const before = { iban: payee.iban };
    payee.iban = iban;
    payee.version += 1;
    this.revision += 1;
    return [{ op: 'update', target: 'payee', key: { id }, before, after: { iban } }];
  }

  /** Writes the audit trail: under the key that was sent, or under none. */
  remember(key: string | undefined, remembered: Remembered): void {
    for (const effect of remembered.effects) this.#enter({ key: key ?? null, effect });
    if (key !== undefined) this.requests.set(key, remembered);
  }

  /** Pays a draft under a key that nothing was published or voided under before. */
  publish(key: string, draftId: string, metadata: string): Publication {
    const standing = this.publications.get(key);
    if (standing !== undefined) return standing;
    const draft = this.drafts.get(draftId);
    if (draft === undefined) throw new Refusal(410, 'there is no such draft');
    if (draft.base !== this.revision)
      throw new Refusal(412, 'the account has changed since the draft was made');
    for (const order of draft.orders) {
      for (const effect of this.pay(order, false)) this.#enter({ key, effect });
    }
    this.drafts.delete(draftId);
    const publication = { key, disposition: 'published' as const, metadata };
    this.publications.set(key, publication);
    return publication;
  }

  /** Uses a key up without publishing anything under it. */
  voidKey(key: string, metadata: string): Publication {
    const standing = this.publications.get(key);
    if (standing !== undefined) return standing;
    const publication = { key, disposition: 'void' as const, metadata };
    this.publications.set(key, publication);
    return publication;
  }

  #enter(entry: Entry): void {
    this.ledger.push(entry);
    this.#written(entry);
  }
}

/** The version of a payee, as `ETag` and `If-Match` carry it. */
export function etagOf({ version }: { readonly version: number }): string {
  return `"v${version}"`;
}
