import {
  createRuntime,
  type Proposal,
  type Runtime,
  type SignedLicense,
  type Terminal,
  update,
} from '../../src/index.ts';
import type { Office } from './command.ts';

/** What an agent runs to pay an invoice. */
export const paying = (id: number) => ({
  sql: 'update invoice set status = ? where id = ?',
  values: ['paid', id],
});

export function proposePayment(runtime: Runtime, id: number): Promise<Proposal> {
  return runtime.prepare({
    adapter: 'books',
    task: `invoice-${id}`,
    planRevision: 1,
    effects: [update('invoice', { id }, { status: ['pending', 'paid'] })],
    continuations: ['reconcile'],
  });
}

/** What the three invoices came to. */
export interface Payments {
  readonly license: SignedLicense;
  readonly committed: Terminal;
  readonly replayed: Terminal;
  readonly diverged: Terminal;
  readonly refused: Terminal;
}

/**
 * Pays invoice 1, releases its reconciliation and presents the license again; pays invoice 2 where
 * a trigger writes more than was approved; presents a license for invoice 3 that is not valid yet.
 * The journal then holds, in this order: claim, committed, released, completed, rejected (spent),
 * claim, rejected (diverged), rejected (not yet).
 */
export async function makePayments(office: Office): Promise<Payments> {
  await using runtime = await createRuntime(office.config);
  const sign = async (id: number, notBefore?: number) =>
    office.approver.sign(await proposePayment(runtime, id), {
      expiresIn: '1h',
      ...(notBefore && { notBefore }),
    });
  const license = await sign(1);
  const committed = await runtime.execute(license, paying(1));
  await runtime.continuation(committed, 'reconcile').release(() => {});
  const replayed = await runtime.execute(license, paying(1));
  office.change(`create trigger tell after update on invoice when new.id = 2
    begin insert into notification (invoice_id) values (new.id); end;`);
  const diverged = await runtime.execute(await sign(2), paying(2));
  const refused = await runtime.execute(await sign(3, Date.now() + 3_600_000), paying(3));
  return { license, committed, replayed, diverged, refused };
}
