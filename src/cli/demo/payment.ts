import { generated, insert, type PrepareRequest, row, update } from '../../index.ts';

/** What the person approves: one invoice becomes paid, provided that its vendor is not blocked, and nothing else. */
export const PAYMENT = {
  adapter: 'books',
  task: 'invoice-4711',
  planRevision: 1,
  effects: [update('invoice', { id: 4711 }, { status: ['pending', 'paid'] })],
  requires: [row('vendor', { id: 7 }, { blocked: 0 })],
  continuations: ['reconcile'],
} satisfies PrepareRequest;

/** The same, by somebody who knows of the notification and wants it. */
export const PAYMENT_WITH_NOTE = {
  ...PAYMENT,
  effects: [...PAYMENT.effects, insert('notification', { id: generated('note'), invoice_id: 4711, text: 'paid' })],
} satisfies PrepareRequest;

/** What the agent runs. */
export const PAYING = { sql: 'update invoice set status = ? where id = ?', values: ['paid', 4711] } as const;
