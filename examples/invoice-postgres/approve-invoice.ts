import { defineOperation, generated, insert, now, read, update } from 'effectmatch';
import { z } from 'zod';

/**
 * The business rule: computes the approved outcome from the request, the current rows and the
 * vendor's ceiling. A trigger writes the audit row, which is approved because this rule includes
 * it.
 */
export const approveInvoice = defineOperation({
  name: 'approve-invoice',
  adapter: 'books',
  input: z.strictObject({ invoice: z.int().positive(), vendor: z.int().positive() }),
  reads: ({ invoice, vendor }) => [
    read('invoice', { id: invoice }),
    read('vendor', { id: vendor }),
  ],
  approve({ invoice, vendor }, [bill, payee]) {
    const amount = Number(bill?.amount);
    if (bill?.status !== 'pending' || bill.vendor !== vendor)
      throw new Error(`invoice ${invoice} is not open`);
    if (payee?.blocked !== false) throw new Error(`vendor ${vendor} is blocked`);
    if (amount > Number(payee.ceiling))
      throw new Error(`${amount} is above the vendor's ceiling of ${payee.ceiling}`);
    return {
      effects: [
        update('invoice', { id: invoice }, { status: ['pending', 'approved'] }),
        insert('payment', { id: generated('payment'), invoice, amount }),
        insert('audit', {
          id: generated('entry'),
          invoice,
          status: 'approved',
          at: now({ within: '5s' }),
        }),
      ],
      continuations: ['tell-vendor'],
    };
  },
  action: ({ invoice }) => ({
    statements: [
      { sql: "update invoice set status = 'approved' where id = $1", values: [invoice] },
      {
        sql: 'insert into payment (invoice, amount) select id, amount from invoice where id = $1',
        values: [invoice],
      },
    ],
  }),
});
