import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import {
  defineOperation,
  generateApprover,
  insert,
  type RuntimeConfig,
  type StandardSchema,
  update,
} from 'effectmatch';
import { sqlite } from 'effectmatch/adapters/sqlite';
import { defineWorkflow } from 'effectmatch/workflow';

/** What the workflow is started with. */
export interface Month {
  readonly month: string;
  readonly invoices: readonly number[];
}

/** A schema without a library: any package with Standard Schema will do. */
function fields<T>(check: (value: Partial<T>) => boolean): StandardSchema<T> {
  const validate = (value: unknown) =>
    check(Object(value)) ? { value: value as T } : { issues: [{ message: 'it does not fit' }] };
  return { '~standard': { version: 1, vendor: 'example', validate } };
}

const pay = defineOperation({
  name: 'pay-invoice',
  adapter: 'books',
  input: fields<{ id: number }>(({ id }) => Number.isInteger(id)),
  approve: ({ id }) => ({
    effects: [update('invoice', { id }, { status: ['pending', 'paid'] })],
  }),
  action: ({ id }) => ({
    sql: "update invoice set status = 'paid' where id = ?",
    values: [id],
  }),
});

const close = defineOperation({
  name: 'close-month',
  adapter: 'books',
  input: fields<{ month: string; count: number }>(({ month }) => typeof month === 'string'),
  approve: ({ month, count }) => ({ effects: [insert('closing', { month, invoices: count })] }),
  action: ({ month, count }) => ({
    sql: 'insert into closing (month, invoices) values (?, ?)',
    values: [month, count],
  }),
});

/** Pays every invoice of a month, then closes the month, then tells those who wait for it. */
export const monthEnd = defineWorkflow<Month>('month-end', {
  pay: {
    operation: 'pay-invoice',
    each: ({ invoices }) => invoices,
    input: ({ item }) => ({ id: item }),
    atMost: 4,
  },
  close: {
    operation: 'close-month',
    after: 'pay',
    input: ({ input }) => ({ month: input.month, count: input.invoices.length }),
  },
  announce: {
    of: 'close',
    run: ({ input }) => console.log(`   announced  ${input.month} is closed`),
  },
});

/** Creates the business file with the invoices of three months. */
export function createBooks(folder: string): void {
  const books = new DatabaseSync(join(folder, 'books.db'));
  books.exec(`create table invoice (id integer primary key not null, status text not null);
    create table closing (month text primary key not null, invoices integer not null);
    create table notification (id integer primary key not null, text text not null);
    insert into invoice values ${[...Array(12).keys()].map((id) => `(${id + 1}, 'pending')`)};`);
  books.close();
}

/** Runs SQL as any other program would, without EffectMatch. */
export function lookAt(folder: string, sql: string): readonly string[] {
  const books = new DatabaseSync(join(folder, 'books.db'), { timeout: 5000 });
  try {
    return books
      .prepare(sql)
      .all()
      .map((row) => Object.values(row).join(' '));
  } finally {
    books.close();
  }
}

/** The approver, who would be another person on another machine. */
export const treasurer = generateApprover('treasurer');

/** The configuration of every process. */
export function configOf(folder: string, publicKey: string) {
  const relations = ['invoice', 'closing', 'notification'];
  return {
    store: join(folder, 'effectmatch.db'),
    keyring: join(folder, 'effectmatch.keys.json'),
    leaseMs: 3000,
    issuers: { treasurer: { key: publicKey, may: ['books'] } },
    operations: { 'pay-invoice': pay, 'close-month': close },
    adapters: { books: sqlite({ file: join(folder, 'books.db'), relations }) },
  } satisfies RuntimeConfig;
}
