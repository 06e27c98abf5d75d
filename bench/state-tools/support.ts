// The support desk's tools: orders, returns, refunds, cancellations, exchanges and warranties.
import type { StateRecord } from '../data/state-bench.ts';
import { type Case, itemsOf, noItem, openCase, refuseWrite } from './cases.ts';
import {
  type Answer,
  type Arguments,
  DAY_MS,
  type Desk,
  list,
  number,
  policyTool,
  type Row,
  type StateTools,
  text,
  timeOf,
  words,
} from './desk.ts';
import { markReturned, processReturn, windowOf } from './returns.ts';

const INTERCEPT_FEE = 10;
const REPAIR_SHARE = 40;
const REPAIR_FROM = 100;
const RECURRING_FROM = 2;
const RECENT_DAYS = 30;

function getOrder(desk: Desk, { order_id }: Arguments): Answer {
  const order = desk.row('orders', order_id);
  if (order === undefined) return { error: `Order ${order_id} not found.` };
  const items = itemsOf(desk, order).map((item) => {
    const product = desk.find('products', 'product_id', item.product_id);
    return { ...item, product: product === undefined ? null : summarise(product) };
  });
  return { ...order, items };
}

const SUMMARY = [
  'product_id',
  'name',
  'category',
  'price',
  'current_price',
  'return_window_days',
  'warranty_months',
  'in_stock',
] as const;

function summarise(product: StateRecord): Answer {
  return Object.fromEntries(SUMMARY.map((field) => [field, product[field] ?? null]));
}

const MULTIPLIER: { readonly [tier: string]: string } = { gold: '1.5x', platinum: '2.0x' };

function getCustomer(desk: Desk, { customer_id }: Arguments): Answer {
  const customer = desk.row('customers', customer_id);
  if (customer === undefined) return { error: `Customer ${customer_id} not found.` };
  const tier = text(customer.membership_tier);
  const multiplier = MULTIPLIER[tier];
  const benefits = {
    return_window_extension: multiplier === undefined ? '+0 days' : '+15 days',
    compensation_multiplier: multiplier ?? '1.0x',
    restocking_fee_waiver: tier === 'platinum',
    prime_shipping: customer.has_prime_shipping ?? false,
  };
  return { ...customer, benefits };
}

/** Ranks a product higher if its name contains the whole query. */
const PHRASE_BONUS = 1;
const FIELDS = ['name', 'subcategory', 'category'] as const;

function searchProducts(desk: Desk, { query }: Arguments): Answer {
  const asked = words(text(query));
  const phrase = asked.join(' ');
  const found = desk.catalogue('products').flatMap((product) => {
    const scores = FIELDS.map((field) => {
      const own = text(product[field]).toLowerCase();
      const isWhole = own.includes(phrase);
      return asked.filter((word) => own.includes(word)).length + (isWhole ? PHRASE_BONUS : 0);
    });
    const best = Math.max(...scores);
    const field = FIELDS[scores.indexOf(best)] ?? 'name';
    return best === 0 ? [] : [{ product, field, best }];
  });
  found.sort((a, b) => b.best - a.best || (text(a.product.name) < text(b.product.name) ? -1 : 1));
  const results = found.map(({ product, field }) => ({
    product_id: product.product_id ?? null,
    name: product.name ?? null,
    matched_field: field,
    category: product.category ?? null,
    subcategory: product.subcategory ?? null,
    in_stock: product.in_stock ?? null,
  }));
  return { query: text(query), results };
}

function getProduct(desk: Desk, { product_id }: Arguments): Answer {
  const product = desk.find('products', 'product_id', product_id);
  return product === undefined ? { error: `Product ${product_id} not found.` } : { ...product };
}

function warrantyStatus(desk: Desk, { item_id }: Arguments): Answer {
  const warranty = desk.rows('warranties').find((one) => one.item_id === item_id);
  if (warranty === undefined) {
    const message = 'No warranty found for this item.';
    return { item_id: text(item_id), has_warranty: false, message };
  }
  const left = daysLeft(desk, warranty);
  return {
    ...warranty,
    is_active: left >= 0 && warranty.status === 'active',
    days_until_expiry: Math.max(0, left),
    days_past_expiry: Math.max(0, -left),
    has_warranty: true,
  };
}

/** Whole days until a warranty ends; negative after its end. */
function daysLeft(desk: Desk, { end_date }: Row): number {
  return Math.trunc((timeOf(end_date) - timeOf(desk.data.now)) / DAY_MS);
}

function processRefund(desk: Desk, given: Arguments): Answer {
  const found = openCase(desk, given);
  if (found === undefined) return noItem(given);
  const { item } = found;
  const key = `refund ${given.item_id} ${given.amount} ${given.refund_method}`;
  const refusal =
    refuseWrite(desk, given, { topic: 'refund', what: 'refund', key }) ?? refuseRefund(item, given);
  if (refusal !== undefined) return refusal;
  const amount = number(given.amount);
  const method = text(given.refund_method);
  const head = { item_id: text(given.item_id), refund_amount: amount, refund_method: method };
  if (given.confirm !== true) {
    desk.notes.add(key);
    return { status: 'preview', ...head };
  }
  desk.notes.delete(key);
  const mode = refundMode(item, given);
  if (mode === 'supplemental_refund') {
    item.goodwill_credit = number(item.goodwill_credit) + amount;
    item.goodwill_credit_method = method;
  } else {
    item.refund_amount = amount;
    item.refund_method = method;
  }
  return { status: 'refunded', mode, ...head, total_goodwill_credit: item.goodwill_credit ?? 0 };
}

/** A second refund of the same amount by another method moves the first; others add to it. */
function refundMode(item: Row, { amount, refund_method }: Arguments): string {
  if (item.refund_amount === null) return 'refund';
  const isMoved = item.refund_amount === amount && item.refund_method !== refund_method;
  return isMoved ? 'refund_method_update' : 'supplemental_refund';
}

function refuseRefund(
  item: Row,
  { amount, refund_method, confirm }: Arguments,
): Answer | undefined {
  if (item.item_status === 'cancelled')
    return {
      error:
        'Refunds for cancelled items are issued automatically by cancel_order — do not call process_refund on this item.',
    };
  const isKept = item.item_status === 'returned' && item.return_reason === 'changed_mind';
  if (confirm === true && isKept && number(amount) > 0 && item.restocking_fee === amount)
    return {
      error:
        'Cannot issue a supplemental refund equal to the completed changed-mind restocking fee. Completed changed-mind restocking fees are not reversed later as courtesy or supplemental refunds.',
    };
  if (item.store_credit_only === true && refund_method === 'original_payment')
    return { error: 'This return is store credit only; the refund method cannot be changed.' };
  return undefined;
}

function cancelOrder(desk: Desk, given: Arguments): Answer {
  const order = desk.row('orders', given.order_id);
  if (order === undefined) return { error: `Order ${given.order_id} not found.` };
  const head = { order_id: text(given.order_id) };
  if (order.status === 'cancelled')
    return { status: 'rejected', ...head, reason: 'Order already cancelled' };
  const asked = list(given.item_ids);
  const key = `cancellation ${given.order_id} ${asked.join(' ')}`;
  const refusal = refuseWrite(desk, given, { topic: 'cancellation', what: 'cancellation', key });
  if (refusal !== undefined) return refusal;
  const all = itemsOf(desk, order);
  const named =
    asked.length === 0 ? all : all.filter(({ item_id }) => asked.includes(item_id ?? ''));
  const isOpen = ({ item_status }: Row) => !CLOSED.has(text(item_status));
  const open = asked.length === 0 ? named.filter(isOpen) : named;
  const ids = open.map(({ item_id }) => item_id ?? null);
  const terms = TERMS[text(order.shipping_status)] ?? NOT_CANCELLABLE;
  if (open.length === 0 || terms.fee === undefined)
    return { status: 'rejected', ...head, reason: terms.reason };
  const { fee } = terms;
  const total = open.reduce((sum, item) => sum + refundFor(item, fee), 0);
  const sums = { cancellation_fee: fee * open.length, refund_amount: total };
  if (given.confirm !== true) {
    desk.notes.add(key);
    return { status: 'preview', ...head, items_to_cancel: ids, ...sums, reason: terms.reason };
  }
  desk.notes.delete(key);
  const method = text(order.payment_method);
  for (const item of open) {
    item.item_status = 'cancelled';
    item.refund_amount = refundFor(item, fee);
    item.refund_method = method;
  }
  const isWhole = all.every(({ item_status }) => item_status === 'cancelled');
  order.status = isWhole ? 'cancelled' : 'partially_cancelled';
  return {
    status: 'cancelled',
    ...head,
    items_cancelled: ids,
    ...sums,
    refund_method: method,
    ...(method === 'split' && { split_details: splitRefund(order, total) }),
  };
}

const CLOSED: ReadonlySet<string> = new Set(['delivered', 'cancelled', 'returned', 'exchanged']);
const FREE = { fee: 0, reason: 'Pre-shipment cancellation — no fee' } as const;
const NOT_CANCELLABLE = {
  fee: undefined,
  reason: 'Delivered orders cannot be cancelled — use the return process',
} as const;
const TERMS: {
  readonly [shipping: string]: { readonly fee: number | undefined; readonly reason: string };
} = {
  pending: FREE,
  processing: FREE,
  in_transit: {
    fee: INTERCEPT_FEE,
    reason: `In-transit cancellation — $${INTERCEPT_FEE} intercept fee per item`,
  },
  lost: { fee: 0, reason: 'Package lost — free cancellation with full refund' },
};

function refundFor({ unit_price, quantity }: Row, fee: number): number {
  return number(unit_price) * number(quantity) - fee;
}

/** Splits a refund in proportion to each payment, rounded down. The last method gets the rest. */
function splitRefund({ payment_details }: Row, total: number): Answer {
  const paid = Object.entries(payment_details as { readonly [method: string]: number }).sort();
  const all = paid.reduce((sum, [, amount]) => sum + amount, 0);
  let left = total;
  const shares = paid.map(([method, amount], place) => {
    const share = place === paid.length - 1 ? left : Math.floor((total * amount) / all);
    left -= share;
    return [method, share] as const;
  });
  return Object.fromEntries(shares);
}

function processExchange(desk: Desk, given: Arguments): Answer {
  const found = openCase(desk, given);
  if (found === undefined) return noItem(given);
  const fresh = desk.find('products', 'product_id', given.new_product_id);
  if (fresh === undefined) return { error: `Product ${given.new_product_id} not found.` };
  const { item } = found;
  const key = `exchange ${given.item_id} ${given.new_product_id}`;
  const refusal = refuseWrite(desk, given, { topic: 'exchange', what: 'exchange', key });
  if (refusal !== undefined) return refusal;
  const { days, sinceDelivery } = windowOf(desk, found);
  if (sinceDelivery > days) {
    const reason = `Outside ${days}-day exchange window (${sinceDelivery} days since delivery)`;
    return { status: 'rejected', item_id: text(given.item_id), reason };
  }
  const head = { item_id: text(given.item_id), new_product_id: text(given.new_product_id) };
  if (given.confirm === true) desk.notes.delete(key);
  else desk.notes.add(key);
  if (fresh.in_stock !== true) return offerCredit(desk, found, given, head);
  const difference = number(fresh.price) - number(item.unit_price);
  const sums = {
    price_difference: difference,
    customer_pays: Math.max(0, difference),
    store_credit_refund: Math.max(0, -difference),
  };
  if (given.confirm !== true)
    return { status: 'preview', ...head, ...sums, reason: exchangeReason(difference) };
  const id = swapItem(desk, found, fresh);
  return { status: 'exchanged', ...head, new_item_id: id, ...sums };
}

function exchangeReason(difference: number): string {
  if (difference === 0) return 'Exchange for same-price item — no charge, no refund';
  return difference < 0
    ? `Exchange for cheaper item — $${-difference} to store credit`
    : `Exchange for more expensive item — customer pays $${difference}`;
}

/** Offers store credit for the item if the wanted product is out of stock. */
function offerCredit(desk: Desk, { item, order }: Case, given: Arguments, head: Answer): Answer {
  const reason = 'Requested item out of stock — store credit is available for the original item';
  const tail = { refund_method: 'store_credit', reason };
  const amount = number(item.unit_price);
  if (given.confirm !== true)
    return { status: 'preview', ...head, out_of_stock: true, store_credit_amount: amount, ...tail };
  item.item_status = 'returned';
  item.return_reason = 'changed_mind';
  item.refund_amount = amount;
  item.refund_method = 'store_credit';
  item.restocking_fee = 0;
  markReturned(desk, order);
  return {
    status: 'store_credit_issued',
    ...head,
    out_of_stock: true,
    refund_amount: amount,
    ...tail,
  };
}

function swapItem(desk: Desk, { item, order }: Case, fresh: StateRecord): string {
  const id = addItem(desk, order, fresh, number(fresh.price));
  const credit = number(item.unit_price) - number(fresh.price);
  item.item_status = 'exchanged';
  item.replacement_item_id = id;
  if (credit > 0) {
    item.refund_amount = credit;
    item.refund_method = 'store_credit';
  }
  return id;
}

/** Adds an item to the order, with the number after the highest one. */
function addItem(desk: Desk, order: Row, product: StateRecord, price: number): string {
  const ids = Object.keys(desk.state.order_items ?? {});
  const taken = ids.map((id) => Number(/^ITEM-(\d+)$/.exec(id)?.[1] ?? 0));
  const id = `ITEM-${Math.max(0, ...taken) + 1}`;
  desk.add('order_items', id, {
    item_id: id,
    order_id: order.order_id ?? null,
    product_id: product.product_id ?? null,
    quantity: 1,
    unit_price: price,
    item_status: 'confirmed',
    return_reason: null,
    refund_amount: null,
    refund_method: null,
    restocking_fee: null,
    return_label_issued: false,
    replacement_item_id: null,
    goodwill_credit: 0,
    goodwill_credit_method: null,
    store_credit_only: false,
  });
  return id;
}

interface Claim {
  readonly eligible: boolean;
  readonly resolution: string;
  readonly cost: number;
  readonly reason: string;
}

function judgeClaim(desk: Desk, { item }: Case, warranty: Row): Claim {
  const price = number(item.unit_price);
  const repair = Math.floor((price * REPAIR_SHARE) / 100);
  const claims = number(warranty.claim_count);
  const left = daysLeft(desk, warranty);
  if (left < 0 && -left <= RECENT_DAYS)
    return {
      eligible: true,
      resolution: 'discounted_repair',
      cost: Math.floor(repair / 2),
      reason: `Warranty expired ${-left} days ago — discounted repair available`,
    };
  if (left < 0)
    return {
      eligible: true,
      resolution: 'paid_repair_or_discounted_replacement',
      cost: 0,
      reason: `Warranty expired ${-left} days ago — paid repair or discounted replacement`,
    };
  if (claims >= number(warranty.max_claims))
    return {
      eligible: false,
      resolution: 'paid_repair',
      cost: repair,
      reason: `Maximum claims (${warranty.max_claims}) reached — paid repair only`,
    };
  if (claims >= RECURRING_FROM)
    return {
      eligible: true,
      resolution: 'full_replacement',
      cost: 0,
      reason: `Recurring defect (${claims} prior claims) — automatic replacement`,
    };
  return price < REPAIR_FROM
    ? {
        eligible: true,
        resolution: 'full_replacement',
        cost: 0,
        reason: `Active ${warranty.warranty_type} warranty — replacement`,
      }
    : {
        eligible: true,
        resolution: 'repair',
        cost: 0,
        reason: `Active ${warranty.warranty_type} warranty — repair`,
      };
}

function processClaim(desk: Desk, given: Arguments): Answer {
  const found = openCase(desk, given);
  const warranty = desk.row('warranties', given.warranty_id);
  if (found === undefined) return noItem(given);
  if (warranty === undefined) return { error: `Warranty ${given.warranty_id} not found.` };
  const key = `warranty ${given.warranty_id} ${given.item_id}`;
  const refusal = refuseWrite(desk, given, { topic: 'warranty', what: 'warranty claim', key });
  if (refusal !== undefined) return refusal;
  const { eligible, resolution, cost, reason } = judgeClaim(desk, found, warranty);
  const head = { warranty_id: text(given.warranty_id), item_id: text(given.item_id) };
  if (given.confirm !== true) {
    desk.notes.add(key);
    return { status: 'preview', ...head, eligible, resolution, cost, reason };
  }
  desk.notes.delete(key);
  let replacement: string | null = null;
  if (resolution.endsWith('replacement')) {
    replacement = addItem(desk, found.order, found.product, number(found.item.unit_price));
    found.item.replacement_item_id = replacement;
  }
  warranty.status = 'claimed';
  warranty.claim_count = number(warranty.claim_count) + 1;
  warranty.resolution = resolution;
  return {
    status: 'claimed',
    ...head,
    resolution,
    cost,
    replacement_item_id: replacement,
    claim_count: warranty.claim_count,
  };
}

export const supportTools: StateTools = {
  get_order: getOrder,
  get_customer: getCustomer,
  search_products: searchProducts,
  get_product_details: getProduct,
  get_policies: policyTool,
  get_warranty_status: warrantyStatus,
  process_return: processReturn,
  process_refund: processRefund,
  cancel_order: cancelOrder,
  process_exchange: processExchange,
  process_warranty_claim: processClaim,
};
