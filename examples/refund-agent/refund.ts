import { defineOperation, generated, insert, read, update } from 'effectmatch';
import { z } from 'zod';

/**
 * The business rule: computes the approved outcome from the agent's request and the shop's data.
 * The last update is made by the trigger, and is approved because this rule includes it. The agent
 * is free to choose its SQL (`bindAction: false`): the outcome is approved, not the SQL.
 */
export const refund = defineOperation({
  name: 'refund',
  adapter: 'shop',
  input: z.strictObject({
    lines: z.array(z.strictObject({ purchase: z.int(), amount: z.int().positive() })).min(1),
    reason: z.string().max(100),
  }),
  reads: ({ lines }) => lines.map(({ purchase }) => read('purchase', { id: purchase })),
  approve({ lines, reason }, purchases) {
    const effects = lines.flatMap(({ purchase, amount }, index) => {
      const { paid = 0, refunded = 0 } = (purchases[index] ?? {}) as {
        paid?: number;
        refunded?: number;
      };
      if (refunded + amount > paid)
        throw new Error(`${paid - refunded} is left of purchase ${purchase}`);
      return [
        insert('refund', { id: generated(`refund of ${purchase}`), purchase, amount, reason }),
        update('purchase', { id: purchase }, { refunded: [refunded, refunded + amount] }),
      ];
    });
    return { effects, continuations: ['letter'] };
  },
  action: ({ lines, reason }) => ({
    statements: lines.map((line) => insertRefund({ ...line, reason })),
  }),
  bindAction: false,
});

/** One refund as SQL. */
export function insertRefund(line: {
  readonly purchase: number;
  readonly amount: number;
  readonly reason: string;
}) {
  const values = [line.purchase, line.amount, line.reason];
  return { sql: 'insert into refund (purchase, amount, reason) values (?, ?, ?)', values };
}
