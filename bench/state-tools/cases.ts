// What the support desk's tools share: an item with its related records, and the conditions for a
// write.
import type { StateRecord } from '../data/state-bench.ts';
import type { Answer, Arguments, Desk, Row } from './desk.ts';

/** An item with its related records. */
export interface Case {
  readonly item: Row;
  readonly order: Row;
  readonly product: StateRecord;
  readonly customer: Row;
}

export function openCase(desk: Desk, { item_id }: Arguments): Case | undefined {
  const item = desk.row('order_items', item_id);
  const order = desk.row('orders', item?.order_id);
  const product = desk.find('products', 'product_id', item?.product_id);
  const customer = desk.row('customers', order?.customer_id);
  if (item === undefined || order === undefined) return undefined;
  if (product === undefined || customer === undefined) return undefined;
  return { item, order, product, customer };
}

export function noItem({ item_id }: Arguments): Answer {
  return { error: `Item ${item_id} not found.` };
}

/** Refuses a write whose policy was not read, or a confirmation without a preview. */
export function refuseWrite(
  desk: Desk,
  given: Arguments,
  { topic, what, key }: { readonly topic: string; readonly what: string; readonly key: string },
): Answer | undefined {
  if (!desk.notes.has(`policy ${topic}`))
    return { error: `Must review the ${topic} policy first. Call get_policies(topic='${topic}').` };
  if (given.confirm === true && !desk.notes.has(key))
    return { error: `Must preview ${what} before confirming. Call without confirm first.` };
  return undefined;
}

export function itemsOf(desk: Desk, order: Row): readonly Row[] {
  return desk.rows('order_items').filter(({ order_id }) => order_id === order.order_id);
}
