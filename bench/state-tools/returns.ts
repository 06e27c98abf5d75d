// Returning an item: eligibility, refund and deductions.

import { type Case, itemsOf, noItem, openCase, refuseWrite } from './cases.ts';
import {
  type Answer,
  type Arguments,
  DAY_MS,
  type Desk,
  number,
  type Row,
  text,
  timeOf,
} from './desk.ts';

const EXTENSION_DAYS = 15;
const GRACE_DAYS = 15;
const FREE_SHIPPING_FROM = 100;
const SHIPPING_FEE = 8;
const FREE_LABEL_FROM = 50;
const BULK_FROM = 3;
const BULK_CLAWBACK = 5;
const REPEAT_SURCHARGE = 5;
const FAULTS: ReadonlySet<string> = new Set(['defective', 'wrong_item', 'damaged_in_transit']);
const CLOSED: ReadonlySet<string> = new Set(['returned', 'exchanged', 'cancelled']);
const WAIVED: { readonly [tier: string]: number } = { platinum: 100, gold: 50, silver: 25 };

/** The number of days in which an item may be returned, and the days since delivery. */
export function windowOf(desk: Desk, { order, product, customer }: Case) {
  const delivered = timeOf(order.delivery_date);
  const tier = text(customer.membership_tier);
  let days = number(product.return_window_days);
  if (tier === 'gold' || tier === 'platinum') days += EXTENSION_DAYS;
  if (customer.has_prime_shipping === true) days += EXTENSION_DAYS;
  const ordered = text(order.order_date);
  if (ordered.slice(5, 7) >= '11') {
    const until = timeOf(`${Number(ordered.slice(0, 4)) + 1}-01-31`);
    days = Math.max(days, Math.floor((until - delivered) / DAY_MS));
  }
  const passed = Math.floor((timeOf(desk.data.now) - delivered) / DAY_MS);
  return { days, sinceDelivery: Number.isNaN(passed) ? 0 : passed };
}

/** The deductions from the price, by reason. */
function deductions(desk: Desk, found: Case, isFault: boolean, reason: string) {
  const { item, order, product, customer } = found;
  const price = number(item.unit_price);
  const isOpened = product.category === 'electronics' && reason === 'changed_mind';
  const waived = WAIVED[text(customer.membership_tier)] ?? 0;
  const full = isOpened ? Math.floor((price * number(product.restocking_fee_pct)) / 100) : 0;
  const fee = waived === 100 ? 0 : full;
  const others = itemsOf(desk, order).filter((one) => one !== item);
  const kept = others.filter(({ item_status }) => !CLOSED.has(text(item_status)));
  const left = kept.reduce((sum, one) => sum + number(one.unit_price) * number(one.quantity), 0);
  const isShippedFree = number(order.subtotal) >= FREE_SHIPPING_FROM;
  const isBulk = order.discount_code !== null && others.length + 1 >= BULK_FROM;
  const isBroken = isBulk && kept.length < BULK_FROM;
  const sameCategory = others.filter(({ item_status, product_id }) => {
    const other = desk.find('products', 'product_id', product_id);
    return item_status === 'returned' && other?.category === product.category;
  });
  const isLabelPaid = !isFault && number(order.subtotal) < FREE_LABEL_FROM;
  return {
    restocking_fee: fee,
    discount_adjustment: promoShare(found),
    shipping_clawback: !isFault && isShippedFree && left < FREE_SHIPPING_FROM ? SHIPPING_FEE : 0,
    bulk_clawback: isBroken ? kept.length * BULK_CLAWBACK : 0,
    repeat_surcharge: sameCategory.length > 0 ? REPEAT_SURCHARGE : 0,
    paid_return_shipping_fee: isLabelPaid ? SHIPPING_FEE : 0,
    restocking_discount: Math.floor((fee * waived) / 100),
  };
}

/** The item's share of the order's discount, by price. */
function promoShare({ item, order }: Case): number {
  const discount = number(order.discount_amount);
  const price = number(item.unit_price);
  return discount === 0 ? 0 : Math.floor((discount * price) / number(order.subtotal));
}

export function processReturn(desk: Desk, given: Arguments): Answer {
  const found = openCase(desk, given);
  if (found === undefined) return noItem(given);
  const { item, order, product } = found;
  const head = { item_id: text(given.item_id) };
  const status = text(item.item_status);
  if (CLOSED.has(status)) return { status: 'rejected', ...head, reason: `Item already ${status}` };
  const key = `return ${given.item_id}`;
  const refusal = refuseWrite(desk, given, { topic: 'return', what: 'return', key });
  if (refusal !== undefined) return refusal;
  const reason = text(given.reason);
  const isFault = FAULTS.has(reason);
  const { days, sinceDelivery } = windowOf(desk, found);
  const isLate = !isFault && sinceDelivery > days;
  if (isLate && sinceDelivery > days + GRACE_DAYS)
    return {
      status: 'rejected',
      ...head,
      reason: `Outside ${days}-day return window (${sinceDelivery} days since delivery)`,
    };
  const isCredit = isLate || order.is_gift === true;
  const method = isCredit ? 'store_credit' : 'original_payment';
  const off = deductions(desk, found, isFault, reason);
  const isGiftAtNewPrice = order.is_gift === true && product.current_price !== null;
  const base = number(isGiftAtNewPrice ? product.current_price : item.unit_price);
  const { restocking_discount: back, ...taken } = off;
  const net = Object.values(taken).reduce((sum, amount) => sum - amount, base) + back;
  if (given.confirm !== true) {
    desk.notes.add(key);
    return {
      status: 'preview',
      ...head,
      return_eligible: true,
      reason,
      refund_amount: net,
      refund_method: method,
      free_return_shipping: isFault,
      shipping_refund: isFault,
      ...off,
    };
  }
  desk.notes.delete(key);
  const { discount_adjustment: _, ...reported } = off;
  const fee = off.restocking_fee;
  const amount = number(given.amount);
  recordReturn(desk, found, { amount, reason, method, isFault, isCredit, fee });
  return {
    status: 'returned',
    ...head,
    refund_amount: amount,
    policy_computed_amount: net,
    refund_method: method,
    return_label_issued: isFault,
    ...reported,
  };
}

function recordReturn(
  desk: Desk,
  { item, order }: Case,
  made: {
    readonly amount: number;
    readonly reason: string;
    readonly method: string;
    readonly isFault: boolean;
    readonly isCredit: boolean;
    readonly fee: number;
  },
): void {
  item.item_status = 'returned';
  item.return_reason = made.reason;
  item.refund_amount = made.amount;
  item.refund_method = made.method;
  item.restocking_fee = made.fee;
  item.return_label_issued = made.isFault;
  if (made.isCredit) item.store_credit_only = true;
  markReturned(desk, order);
}

/** Updates the order's status after one of its items was returned. */
export function markReturned(desk: Desk, order: Row): void {
  const isWhole = itemsOf(desk, order).every(({ item_status }) => item_status === 'returned');
  order.status = isWhole ? 'fully_returned' : 'partially_returned';
}
