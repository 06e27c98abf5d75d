import type { Packet, Snapshot, StateRecord } from '../data/state-bench.ts';
import { demandSaid, Expected, instantOf, lookUp, numberOf, textOf } from './draft.ts';

/**
 * What customers ask of support, read from the messages by hand. It applies to the order that the
 * customer names.
 */
const REQUESTS: {
  readonly [taskId: string]: { readonly kind: 'cancel' | 'price-match'; readonly says: string };
} = {
  '11-cancel_before_shipment': { kind: 'cancel', says: 'cancel my order' },
  '14-cancel_split_payment': { kind: 'cancel', says: 'cancel order' },
  '150-spare_cancel_in_transit_fee_decline': { kind: 'cancel', says: 'cancel everything left' },
  '17-cancel_price_match': { kind: 'price-match', says: 'price difference back' },
};

const DAY_MS = 86_400_000;
const PRICE_MATCH_DAYS = 7;
const FEE_PER_ITEM: { readonly [shippingStatus: string]: number } = {
  pending: 0,
  processing: 0,
  in_transit: 10,
};

/** The order and items after the request. Payments and customer balances do not change. */
export function approveSupport(packet: Packet): Snapshot {
  const request = REQUESTS[packet.taskId];
  if (request === undefined) throw new Error(`no request is specified for ${packet.taskId}`);
  demandSaid(packet, [request.says]);
  const expected = new Expected(packet.initial);
  const orderId = namedOrder(packet);
  const order = expected.record('orders', orderId);
  if (order.customer_id !== packet.userId) throw new Error(`${orderId} is not the customer's`);
  const items = expected.records('order_items').filter(([, { order_id }]) => order_id === orderId);
  if (request.kind === 'cancel') cancelOrder(expected, orderId, order, items);
  else refundDifference(packet, expected, order, items);
  return expected.state;
}

function namedOrder({ messages }: Packet): string {
  const named = new Set(messages.join('\n').match(/ORD-\d+/g));
  const [order] = named;
  if (order === undefined || named.size > 1)
    throw new Error(`the customer names ${named.size} orders`);
  return order;
}

type Items = readonly (readonly [id: string, item: StateRecord])[];

/**
 * Cancels the items that were not delivered. Each refund is the item's price less the fee for the
 * order's shipping status.
 */
function cancelOrder(expected: Expected, orderId: string, order: StateRecord, items: Items): void {
  const fee = FEE_PER_ITEM[textOf(order.shipping_status)];
  if (fee === undefined) throw new Error(`${orderId} can no longer be cancelled`);
  const open = items.filter(([, { item_status }]) => item_status !== 'delivered');
  if (open.length === 0) throw new Error(`nothing of ${orderId} is left to cancel`);
  for (const [id, { unit_price, quantity }] of open) {
    if (quantity !== 1) throw new Error(`${id}: the rule is stated for single items`);
    expected.change('order_items', id, {
      item_status: 'cancelled',
      refund_amount: numberOf(unit_price) - fee,
      refund_method: methodOf(order),
    });
  }
  expected.change('orders', orderId, {
    status: open.length === items.length ? 'cancelled' : 'partially_cancelled',
  });
}

/** Several payment methods are stored as `split`. */
function methodOf({ payment_details, payment_method }: StateRecord): string {
  const methods = Object.keys(payment_details as StateRecord);
  return methods.length > 1 ? 'split' : textOf(payment_method);
}

/**
 * Within a week of delivery, a price difference is refunded to the original payment method. The
 * customer keeps the item.
 */
function refundDifference(
  packet: Packet,
  expected: Expected,
  order: StateRecord,
  items: Items,
): void {
  const [[id, item] = [], ...others] = items;
  if (id === undefined || item === undefined || others.length > 0)
    throw new Error('one item was asked about');
  const days = (instantOf(packet.now) - instantOf(textOf(order.delivery_date))) / DAY_MS;
  if (days < 0 || days > PRICE_MATCH_DAYS) throw new Error('the time for a price match is over');
  const { current_price } = lookUp(packet, 'products', 'product_id', textOf(item.product_id));
  const difference = numberOf(item.unit_price) - numberOf(current_price);
  if (difference <= 0) throw new Error('the price did not fall');
  expected.change('order_items', id, {
    refund_amount: difference,
    refund_method: 'original_payment',
  });
}
