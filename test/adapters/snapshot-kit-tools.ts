/** The state of the shop that `snapshot-kit.ts` protects. */
export interface Shop {
  readonly orders: { id: number; status: string }[];
  readonly audit: Record<string, { text: string }>;
  revision: number;
}

/** Leaves more than its arguments say: an audit entry, and a revision outside the collections. */
export function setStatus(
  state: Shop,
  { id, status }: { readonly id: number; readonly status: string },
): void {
  const order = state.orders.find((candidate) => candidate.id === id);
  if (order === undefined) throw new Error(`there is no order ${id}`);
  order.status = status;
  state.audit[String(id)] = { text: status };
  state.revision += 1;
}
