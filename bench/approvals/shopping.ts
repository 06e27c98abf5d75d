import type { Packet, Snapshot, StateRecord } from '../data/state-bench.ts';
import { demandSaid, Expected, lookUp, numberOf, textOf } from './draft.ts';

/**
 * A customer's changes to a cart, read from the messages by hand. Products have the names that the
 * customer uses.
 */
interface CartRequest {
  readonly add?: readonly { readonly product: string; readonly giftWrap: boolean }[];
  /** Products whose whole line is removed. */
  readonly remove?: readonly string[];
  readonly promo?: string;
}

const REQUESTS: { readonly [taskId: string]: CartRequest } = {
  '10-loyalty_points_on_discount': {
    add: [{ product: 'SlimBook Air 13', giftWrap: false }],
    promo: 'SAVE10',
  },
  '14-price_drop_disclosure': { add: [{ product: 'SlimBook Touch 15', giftWrap: false }] },
  '20-triple_policy_compound_disclosure': {
    add: [
      { product: 'SoundMax Wireless Headphones', giftWrap: false },
      { product: 'SoundMax Beat Pro Wireless Speaker', giftWrap: true },
    ],
  },
  '84-remove_qty_scope_all_vs_one': { remove: ['webcam'] },
};

const GIFT_WRAP_PER_LINE = 5;

/** The cart after the request, with totals recalculated by the shop's rules. */
export function approveShopping(packet: Packet): Snapshot {
  const request = REQUESTS[packet.taskId];
  if (request === undefined) throw new Error(`no request is specified for ${packet.taskId}`);
  const { add = [], remove = [], promo } = request;
  demandSaid(packet, [
    ...add.map(({ product }) => product),
    ...remove,
    ...(promo === undefined ? [] : [promo]),
  ]);
  const expected = new Expected(packet.initial);
  const [cartId, cart] = ownCart(packet, expected);
  let lines = [...(cart.item_ids as readonly string[])];
  for (const name of remove) {
    const line = lines.find((id) => isProduct(packet, expected.record('cart_items', id), name));
    if (line === undefined) throw new Error(`the cart holds no ${name}`);
    expected.remove('cart_items', line);
    lines = lines.filter((id) => id !== line);
  }
  for (const { product, giftWrap } of add) {
    const { product_id, variants, gift_wrap_available } = lookUp(
      packet,
      'products',
      'name',
      product,
    );
    if (variants !== null || (giftWrap && gift_wrap_available !== true))
      throw new Error(`${product} needs a choice`);
    const id = nextLine(expected);
    expected.add('cart_items', id, {
      cart_item_id: id,
      customer_id: packet.userId,
      product_id: textOf(product_id),
      quantity: 1,
      gift_wrap: giftWrap,
      variant_id: null,
    });
    lines.push(id);
  }
  const codes = promo === undefined ? (cart.applied_promo_codes as readonly string[]) : [promo];
  expected.change('carts', cartId, {
    item_ids: lines,
    applied_promo_codes: codes,
    ...calculateMoney(packet, {
      cart,
      lines: lines.map((id) => expected.record('cart_items', id)),
      codes,
    }),
  });
  return expected.state;
}

function ownCart({ userId }: Packet, expected: Expected): readonly [string, StateRecord] {
  const own = expected.records('carts').filter(([, { customer_id }]) => customer_id === userId);
  const [cart] = own;
  if (cart === undefined || own.length > 1) throw new Error(`${userId} has ${own.length} carts`);
  return cart;
}

function isProduct(packet: Packet, line: StateRecord, name: string): boolean {
  const product = lookUp(packet, 'products', 'product_id', textOf(line.product_id));
  return textOf(product.name).toLowerCase().includes(name.toLowerCase());
}

/** The id after the highest line number. */
function nextLine(expected: Expected): string {
  const numbers = expected
    .records('cart_items')
    .map(([id]) => Number(/^CI-(\d+)$/.exec(id)?.[1] ?? 0));
  return `CI-${String(Math.max(0, ...numbers) + 1).padStart(4, '0')}`;
}

function calculateMoney(
  packet: Packet,
  {
    cart,
    lines,
    codes,
  }: { cart: StateRecord; lines: readonly StateRecord[]; codes: readonly string[] },
) {
  const subtotal = lines.reduce((sum, { product_id, quantity }) => {
    const { price } = lookUp(packet, 'products', 'product_id', textOf(product_id));
    return sum + numberOf(price) * numberOf(quantity);
  }, 0);
  const wrap = lines.filter(({ gift_wrap }) => gift_wrap === true).length * GIFT_WRAP_PER_LINE;
  const discount = codes.reduce((sum, code) => sum + discountOf(packet, code, subtotal), 0);
  const total =
    subtotal + wrap + numberOf(cart.shipping_cost) - discount - numberOf(cart.loyalty_discount);
  return { subtotal, gift_wrap_fee: wrap, discount_amount: discount, total: Math.max(0, total) };
}

/**
 * A percentage of the subtotal, rounded down. A request with an invalid code gets no approval.
 */
function discountOf(packet: Packet, code: string, subtotal: number): number {
  const promo = lookUp(packet, 'promotions', 'promo_code', code);
  const holds =
    promo.active === true &&
    promo.discount_type === 'percentage' &&
    promo.category_restriction === null &&
    promo.max_discount === 0 &&
    textOf(promo.expiry_date) >= packet.now.slice(0, 10) &&
    subtotal >= numberOf(promo.min_purchase);
  if (!holds) throw new Error(`${code} does not hold for this cart`);
  return Math.floor((subtotal * numberOf(promo.discount_value)) / 100);
}
