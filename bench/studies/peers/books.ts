import { createHash } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { remove, row, update } from '../../../src/protocol/draft.ts';
import type { PrepareRequest } from '../../../src/runtime/prepare.ts';

export const RELATIONS = ['vendor', 'invoice', 'reminder'];

const SCHEMA = `
  create table vendor (id integer primary key, name text not null, balance integer not null) strict;
  create table invoice (id integer primary key, amount integer not null, status text not null,
    vendor integer not null references vendor (id) on delete cascade) strict;
  create table reminder (id integer primary key, text text not null,
    invoice integer not null references invoice (id) on delete cascade) strict;
  insert into vendor values (1, 'globex', 100), (2, 'initech', 0);
  insert into invoice values (4711, 35, 'open', 1), (4712, 20, 'void', 2);
  insert into reminder values (1, 'disputed', 4712)`;
const CHARGE = `create trigger charge after update of status on invoice begin
  update vendor set balance = balance - new.amount where id = new.vendor; end`;

/** Every row of every table, which is what a run is judged by. */
export type PeerBooks = {
  readonly [table: string]: readonly { readonly [column: string]: unknown }[];
};

/** A statement that was agreed to, and what goes wrong beneath it. */
export interface PeerCase {
  readonly name: string;
  readonly sql: string;
  /** Added to the database before anything is agreed to. */
  readonly more?: string;
  /** What others do between the agreement and the execution. */
  readonly meanwhile?: string;
  /** How often the agreement is used. */
  readonly times: number;
  readonly approved: Pick<PrepareRequest, 'effects' | 'requires'>;
  /** What the approving party expects to find afterwards. */
  expected(initial: PeerBooks): PeerBooks;
}

const PAY = "update invoice set status = 'paid' where id = 4711";
const paid = {
  effects: [update('invoice', { id: 4711 }, { status: ['open', 'paid'] })],
  requires: [row('invoice', { id: 4711 }, { amount: 35 })],
};
const withPaid = (books: PeerBooks): PeerBooks => ({
  ...books,
  invoice: change(books.invoice, 4711, { status: 'paid' }),
});

function change(rows: PeerBooks[string] = [], id: number, values: object): PeerBooks[string] {
  return rows.map((one) => (one.id === id ? { ...one, ...values } : one));
}

const isKept = ({ id }: { readonly id?: unknown }) => id !== 4712;

export const PEER_CASES: readonly PeerCase[] = [
  { name: 'clean', sql: PAY, times: 1, approved: paid, expected: withPaid },
  { name: 'trigger', sql: PAY, more: CHARGE, times: 1, approved: paid, expected: withPaid },
  {
    name: 'cascade',
    sql: 'delete from invoice where id = 4712',
    times: 1,
    approved: { effects: [remove('invoice', { id: 4712 })] },
    expected: (books) => ({ ...books, invoice: (books.invoice ?? []).filter(isKept) }),
  },
  {
    name: 'stale',
    sql: PAY,
    meanwhile: 'update invoice set amount = 3500 where id = 4711',
    times: 1,
    approved: paid,
    expected: withPaid,
  },
  {
    name: 'trigger added after the agreement',
    sql: PAY,
    meanwhile: CHARGE,
    times: 1,
    approved: paid,
    expected: withPaid,
  },
  {
    name: 'replay',
    sql: 'update vendor set balance = balance - 35 where id = 1',
    times: 2,
    approved: { effects: [update('vendor', { id: 1 }, { balance: [100, 65] })] },
    expected: (books) => ({ ...books, vendor: change(books.vendor, 1, { balance: 65 }) }),
  },
];

export function createPeerBooks(file: string, { more }: PeerCase): void {
  using db = new DatabaseSync(file);
  db.exec(`pragma journal_mode = wal; ${SCHEMA}; ${more ?? ''}`);
}

export function disturb(file: string, { meanwhile }: PeerCase): void {
  if (meanwhile === undefined) return;
  using db = new DatabaseSync(file);
  db.exec(meanwhile);
}

export function readPeerBooks(file: string): PeerBooks {
  using db = new DatabaseSync(file, { readOnly: true });
  const read = (table: string) =>
    db
      .prepare(`select * from ${table} order by id`)
      .all()
      .map((one) => ({ ...one }));
  return Object.fromEntries(RELATIONS.map((table) => [table, read(table)]));
}

export function digestPeerBooks(books: PeerBooks): string {
  return createHash('sha256').update(JSON.stringify(books)).digest('hex');
}
