/** The state of the books that `snapshot.ts` protects. */
export interface Books {
  account: { id: number; balance: number }[];
  entry: { id: string; ref: number; amount: number }[];
  deposit: Record<string, { amount: number }>;
  message: { ref: number; body: string }[];
  notice: number[];
  sheet: { id: number; op: number; mark: number; filler: string }[];
}

interface Posting {
  readonly ref: number;
  readonly amount: number;
}

export function append(state: Books, { ref, amount }: Posting): void {
  state.entry.push({ id: `entry-${state.entry.length + 1}`, ref, amount });
  if (amount <= 0) throw new Error('an amount is more than nothing');
}

export function deposit(state: Books, { ref, amount }: Posting): void {
  state.deposit[`d${ref}`] = { amount };
  for (const account of state.account) if (account.id === ref) account.balance += amount;
}

export function mark(state: Books, { op }: { readonly op: number }): void {
  for (const sheet of state.sheet) if (sheet.op === op) sheet.mark += 1;
}

export function send(
  state: Books,
  { ref, body }: { readonly ref: number; readonly body: string },
): void {
  state.message.push({ ref, body });
  state.notice.push(ref);
}
