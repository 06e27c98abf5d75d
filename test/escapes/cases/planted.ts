import type { EscapeCase } from '../case.ts';
import { boundary, PAID, PAY } from './shop.ts';

/** The approved update, and a statement that reaches what was planted. */
export const payAnd = (sql: string) => ({ statements: [PAY, { sql }] });

/** Code that runs without being called. */
export const planted = (
  name: string,
  setup: string,
  because: string,
  more: Partial<EscapeCase> = {},
): EscapeCase => ({
  name: `gate: ${name}`,
  setup,
  action: PAY,
  approved: PAID,
  expectation: boundary(because),
  ...more,
});
