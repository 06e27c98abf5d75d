// The shop's business tools: a cart with lines, one promotion code, points and shipping.
import type { Json } from '../data/patch.ts';
import type { StateRecord } from '../data/state-bench.ts';
import {
  categoriesOf,
  checkCompatibility,
  findVariant,
  isExpired,
  listPromotions,
  priceOf,
  productDetails,
  searchProducts,
  variantsOf,
} from './catalogue.ts';
import {
  type Answer,
  type Arguments,
  type Desk,
  list,
  nextId,
  number,
  policyTool,
  type Row,
  type StateTools,
  text,
} from './desk.ts';

const WRAP_PER_LINE = 5;
const MOST_OF_ONE_PRODUCT = 3;
const POINTS_PER_DOLLAR = 100;
const FEWEST_POINTS = 500;
const FREE_STANDARD_FROM = 5;

interface Cart {
  readonly cart: Row;
  readonly customer: Row;
  readonly lines: readonly Row[];
}

function openCart(desk: Desk, id: Json | undefined): Cart | undefined {
  const customer = desk.row('customers', id);
  const cart = desk.rows('carts').find(({ customer_id }) => customer_id === id);
  if (customer === undefined || cart === undefined) return undefined;
  const lines = list(cart.item_ids)
    .map((line) => desk.row('cart_items', line))
    .filter((line) => line !== undefined);
  return { cart, customer, lines };
}

function noCustomer({ customer_id }: Arguments): Answer {
  return { error: `Customer ${customer_id} not found.` };
}

function unitPrice(desk: Desk, line: Row): number {
  const product = desk.find('products', 'product_id', line.product_id);
  return product === undefined ? 0 : priceOf(product, findVariant(product, line.variant_id));
}

function subtotalOf(desk: Desk, lines: readonly Row[]): number {
  return lines.reduce((sum, line) => sum + unitPrice(desk, line) * number(line.quantity), 0);
}

/** The discount of a promotion for these lines, or why it does not apply. */
function judgePromotion(
  desk: Desk,
  code: string,
  lines: readonly Row[],
): { readonly discount: number; readonly promotion: StateRecord } | { readonly why: string } {
  const promotion = desk.find('promotions', 'promo_code', code);
  if (promotion === undefined) return { why: `Promo code '${code}' not found.` };
  if (promotion.active !== true) return { why: `Promo code '${code}' is not active.` };
  if (isExpired(desk, promotion)) return { why: `Promo code expired on ${promotion.expiry_date}.` };
  const subtotal = subtotalOf(desk, lines);
  if (subtotal < number(promotion.min_purchase))
    return {
      why: `Minimum purchase of $${promotion.min_purchase} required. Cart subtotal: $${subtotal}.`,
    };
  const categories = categoriesOf(promotion);
  const isForAll = lines.every(({ product_id }) => {
    const product = desk.find('products', 'product_id', product_id);
    return categories.includes(product?.category ?? null);
  });
  if (categories.length > 0 && !isForAll)
    return { why: `Promo code '${code}' applies only to ${categories.join(', ')}.` };
  return { discount: discountOn(promotion, subtotal), promotion };
}

function discountOn(promotion: StateRecord, base: number): number {
  const value = number(promotion.discount_value);
  const isShare = promotion.discount_type === 'percentage';
  const full = isShare ? Math.floor((base * value) / 100) : Math.min(value, base);
  const most = number(promotion.max_discount);
  return most > 0 ? Math.min(full, most) : full;
}

/** Recalculates the cart's amounts. Returns any change in the redemption of points. */
function settle(desk: Desk, customerId: Json | undefined): Answer {
  const opened = openCart(desk, customerId);
  if (opened === undefined) return {};
  const { cart, lines } = opened;
  let discount = 0;
  const kept = list(cart.applied_promo_codes).filter((code) => {
    const judged = judgePromotion(desk, text(code), lines);
    if (!('discount' in judged)) return false;
    discount += judged.discount;
    return true;
  });
  cart.applied_promo_codes = kept;
  cart.subtotal = subtotalOf(desk, lines);
  cart.discount_amount = discount;
  cart.gift_wrap_fee = lines.filter(({ gift_wrap }) => gift_wrap === true).length * WRAP_PER_LINE;
  const due = cart.subtotal - discount + cart.gift_wrap_fee + number(cart.shipping_cost);
  const trimmed = trimRedemption(opened, Math.max(0, due));
  cart.total = Math.max(0, due - number(cart.loyalty_discount));
  return trimmed;
}

/** Points pay at most half of the amount due. The customer gets the rest back. */
function trimRedemption({ cart, customer }: Cart, due: number): Answer {
  const before = number(cart.loyalty_discount);
  const most = Math.floor(due / 2);
  if (before <= most) return {};
  const refunded = (before - most) * POINTS_PER_DOLLAR;
  cart.loyalty_discount = most;
  cart.loyalty_points_redeemed = most * POINTS_PER_DOLLAR;
  customer.loyalty_points = number(customer.loyalty_points) + refunded;
  return {
    loyalty_redemption_clamped: true,
    previous_loyalty_discount: before,
    loyalty_points_refunded: refunded,
    new_loyalty_discount: most,
    new_loyalty_points_redeemed: most * POINTS_PER_DOLLAR,
    customer_loyalty_points: customer.loyalty_points,
  };
}

function amounts({ cart }: Cart): Answer {
  return { cart_subtotal: number(cart.subtotal), cart_total: number(cart.total) };
}

function variantId({ variant_id }: Arguments): string | null {
  return text(variant_id) === '' ? null : text(variant_id);
}

function findLine({ lines }: Cart, given: Arguments): Row | undefined {
  const wanted = variantId(given);
  const own = lines.filter(({ product_id }) => product_id === given.product_id);
  return own.find((line) => line.variant_id === wanted) ?? (wanted === null ? own[0] : undefined);
}

function addToCart(desk: Desk, given: Arguments): Answer {
  const opened = openCart(desk, given.customer_id);
  if (opened === undefined) return noCustomer(given);
  const product = desk.find('products', 'product_id', given.product_id);
  if (product === undefined) return { error: `Product ${given.product_id} not found.` };
  const quantity = given.quantity === undefined ? 1 : number(given.quantity);
  const refusal = refuseAddition(opened, product, given, quantity);
  if (refusal !== undefined) return { error: refusal };
  const variant = findVariant(product, variantId(given));
  const same = opened.lines.find(
    (line) => line.product_id === given.product_id && line.variant_id === variantId(given),
  );
  const line = same ?? appendLine(desk, opened, given);
  line.quantity = number(line.quantity) + quantity;
  if (given.gift_wrap === true) line.gift_wrap = true;
  const trimmed = settle(desk, given.customer_id);
  return {
    status: same === undefined ? 'added' : 'updated',
    cart_item_id: line.cart_item_id ?? null,
    product_id: text(given.product_id),
    product_name: product.name ?? null,
    variant_id: line.variant_id ?? null,
    quantity: line.quantity,
    gift_wrap: line.gift_wrap ?? false,
    ...(same === undefined && { unit_price: priceOf(product, variant) }),
    ...amounts(opened),
    ...trimmed,
  };
}

function refuseAddition(
  { lines }: Cart,
  product: StateRecord,
  given: Arguments,
  quantity: number,
): string | undefined {
  if (quantity < 1) return 'Quantity must be at least 1.';
  const variant = findVariant(product, variantId(given));
  if (list(product.variants).length > 0 && variant === undefined)
    return 'This product has variants; variant_id is required.';
  const stock = number(variant === undefined ? product.stock_quantity : variant.stock_quantity);
  if (product.in_stock !== true || stock === 0) return 'Product is currently out of stock.';
  const own = lines.filter(({ product_id }) => product_id === given.product_id);
  const has = own.reduce((sum, line) => sum + number(line.quantity), 0);
  if (has + quantity > MOST_OF_ONE_PRODUCT)
    return `Maximum ${MOST_OF_ONE_PRODUCT} of the same product per cart. You already have ${has}.`;
  if (has + quantity > stock) return `Only ${stock} in stock.`;
  if (given.gift_wrap === true && product.gift_wrap_available !== true)
    return 'Gift wrap is not available for this product.';
  return undefined;
}

function appendLine(desk: Desk, { cart }: Cart, given: Arguments): Row {
  const id = nextId(desk, 'cart_items', 'CI-');
  const line: Row = {
    cart_item_id: id,
    customer_id: text(given.customer_id),
    product_id: text(given.product_id),
    quantity: 0,
    gift_wrap: false,
    variant_id: variantId(given),
  };
  desk.add('cart_items', id, line);
  cart.item_ids = [...list(cart.item_ids), id];
  return line;
}

function dropLine(desk: Desk, { cart }: Cart, line: Row): void {
  const id = text(line.cart_item_id);
  desk.remove('cart_items', id);
  cart.item_ids = list(cart.item_ids).filter((one) => one !== id);
}

function updateCartItem(desk: Desk, given: Arguments): Answer {
  const opened = openCart(desk, given.customer_id);
  if (opened === undefined) return noCustomer(given);
  const line = findLine(opened, given);
  if (line === undefined) return { error: `Product ${given.product_id} not in cart.` };
  if (given.quantity === 0) return removeFromCart(desk, given);
  const quantity = given.quantity === undefined ? number(line.quantity) : number(given.quantity);
  if (quantity > MOST_OF_ONE_PRODUCT)
    return { error: `Maximum ${MOST_OF_ONE_PRODUCT} of the same product per cart.` };
  line.quantity = quantity;
  if (given.gift_wrap !== undefined) line.gift_wrap = given.gift_wrap;
  const trimmed = settle(desk, given.customer_id);
  const product = desk.find('products', 'product_id', given.product_id);
  return {
    status: 'updated',
    cart_item_id: line.cart_item_id ?? null,
    product_id: text(given.product_id),
    variant_id: line.variant_id ?? null,
    product_name: product?.name ?? null,
    quantity,
    gift_wrap: line.gift_wrap ?? false,
    ...amounts(opened),
    ...trimmed,
  };
}

function removeFromCart(desk: Desk, given: Arguments): Answer {
  const opened = openCart(desk, given.customer_id);
  if (opened === undefined) return noCustomer(given);
  const line = findLine(opened, given);
  if (line === undefined) return { error: `Product ${given.product_id} not in cart.` };
  dropLine(desk, opened, line);
  const trimmed = settle(desk, given.customer_id);
  return {
    status: 'removed',
    cart_id: opened.cart.cart_id ?? null,
    product_id: text(given.product_id),
    variant_id: line.variant_id ?? null,
    ...amounts(opened),
    ...trimmed,
  };
}

function applyPromo(desk: Desk, given: Arguments): Answer {
  const opened = openCart(desk, given.customer_id);
  if (opened === undefined) return noCustomer(given);
  const { cart, lines } = opened;
  const code = text(given.promo_code);
  const [applied] = list(cart.applied_promo_codes);
  if (applied !== undefined && applied !== code)
    return {
      error: `Only one promo code can be applied per cart. Remove existing promo code ${applied} before applying ${code}.`,
    };
  if (applied === code) {
    const discount = cart.discount_amount ?? 0;
    return {
      status: 'already_applied',
      promo_code: code,
      discount_amount: discount,
      ...amounts(opened),
    };
  }
  const judged = judgePromotion(desk, code, lines);
  if (!('discount' in judged)) return { error: judged.why };
  cart.applied_promo_codes = [code];
  const trimmed = settle(desk, given.customer_id);
  return { status: 'applied', promo_code: code, ...promoAmounts(opened), ...trimmed };
}

function promoAmounts(opened: Cart): Answer {
  const { applied_promo_codes: codes, discount_amount: discount } = opened.cart;
  return {
    applied_promo_codes: codes ?? [],
    discount_amount: discount ?? 0,
    ...amounts(opened),
  };
}

function removePromo(desk: Desk, given: Arguments): Answer {
  const opened = openCart(desk, given.customer_id);
  if (opened === undefined) return noCustomer(given);
  const { cart } = opened;
  const code = text(given.promo_code);
  const codes = list(cart.applied_promo_codes);
  if (!codes.includes(code)) return { error: `Promo code ${code} is not applied to this cart.` };
  cart.applied_promo_codes = codes.filter((one) => one !== code);
  const trimmed = settle(desk, given.customer_id);
  return { status: 'removed', promo_code: code, ...promoAmounts(opened), ...trimmed };
}

function validatePromo(desk: Desk, given: Arguments): Answer {
  const opened = openCart(desk, given.customer_id);
  if (opened === undefined) return noCustomer(given);
  const judged = judgePromotion(desk, text(given.promo_code), opened.lines);
  if (!('discount' in judged)) return { valid: false, reason: judged.why, estimated_discount: 0 };
  const reason = `Promo applied: ${judged.promotion.description}`;
  return { valid: true, reason, estimated_discount: judged.discount };
}

function redeemPoints(desk: Desk, given: Arguments): Answer {
  const opened = openCart(desk, given.customer_id);
  if (opened === undefined) return noCustomer(given);
  const { cart, customer, lines } = opened;
  const redeemed = number(cart.loyalty_points_redeemed);
  if (lines.length === 0)
    return { error: 'Cart is empty — cannot redeem points on an empty cart.' };
  if (redeemed > 0)
    return {
      error: `Points already redeemed on this cart (${redeemed} pts = $${cart.loyalty_discount}). Cancel first to redeem a different amount.`,
    };
  const points = number(given.points);
  if (points < FEWEST_POINTS) return { error: `Minimum redemption is ${FEWEST_POINTS} points.` };
  const balance = number(customer.loyalty_points);
  if (points > balance) return { error: `Insufficient points. Balance: ${balance}.` };
  const most = Math.floor(number(cart.total) / 2);
  const discount = Math.min(Math.floor(points / POINTS_PER_DOLLAR), most);
  cart.loyalty_discount = discount;
  cart.loyalty_points_redeemed = discount * POINTS_PER_DOLLAR;
  customer.loyalty_points = balance - discount * POINTS_PER_DOLLAR;
  settle(desk, given.customer_id);
  return {
    status: 'redeemed',
    points_redeemed: discount * POINTS_PER_DOLLAR,
    discount_applied: discount,
    remaining_balance: customer.loyalty_points,
    ...amounts(opened),
  };
}

function cancelRedemption(desk: Desk, given: Arguments): Answer {
  const opened = openCart(desk, given.customer_id);
  if (opened === undefined) return noCustomer(given);
  const { cart, customer } = opened;
  const points = number(cart.loyalty_points_redeemed);
  if (points === 0) return { error: 'No loyalty redemption on this cart to cancel.' };
  cart.loyalty_points_redeemed = 0;
  cart.loyalty_discount = 0;
  customer.loyalty_points = number(customer.loyalty_points) + points;
  settle(desk, given.customer_id);
  return {
    status: 'cancelled',
    points_credited: points,
    new_balance: customer.loyalty_points,
    ...amounts(opened),
  };
}

interface Shipping {
  readonly option: string;
  readonly cost: number;
  readonly eta_description: string;
  readonly eligibility: string;
}

function shippingOptions(desk: Desk, { customer, lines }: Cart): readonly Shipping[] {
  const tier = text(customer.tier);
  const count = lines.reduce((sum, line) => sum + number(line.quantity), 0);
  const days = lines.map(({ product_id }) =>
    number(desk.find('products', 'product_id', product_id)?.shipping_days),
  );
  const slowest = Math.max(1, ...days);
  const perk = `free — ${tier.charAt(0).toUpperCase()}${tier.slice(1)} perk`;
  const option = (name: string, fee: number, eta: string, free: string | undefined) => ({
    option: name,
    cost: free === undefined ? fee : 0,
    eta_description: eta,
    eligibility: free ?? `$${fee}`,
  });
  const isMany = count >= FREE_STANDARD_FROM;
  const isHigh = tier === 'gold' || tier === 'platinum';
  return [
    option(
      'standard',
      6,
      `${slowest} business days`,
      isMany ? `free — ${FREE_STANDARD_FROM}+ items in cart` : undefined,
    ),
    option('express', 12, `${Math.max(1, slowest - 1)} business days`, isHigh ? perk : undefined),
    option('next_day', 15, 'next business day', tier === 'platinum' ? perk : undefined),
  ];
}

function getShippingOptions(desk: Desk, given: Arguments): Answer {
  const opened = openCart(desk, given.customer_id);
  if (opened === undefined) return noCustomer(given);
  const count = opened.lines.reduce((sum, line) => sum + number(line.quantity), 0);
  return {
    options: shippingOptions(desk, opened).map((option) => ({ ...option })),
    cart_item_count: count,
    customer_tier: opened.customer.tier ?? null,
  };
}

function setShippingOption(desk: Desk, given: Arguments): Answer {
  const opened = openCart(desk, given.customer_id);
  if (opened === undefined) return noCustomer(given);
  const { cart, lines } = opened;
  if (lines.length === 0) return { error: 'Cart is empty — cannot set shipping on an empty cart.' };
  const chosen = shippingOptions(desk, opened).find(({ option }) => option === given.option);
  if (chosen === undefined) return { error: `Unknown shipping option '${given.option}'.` };
  cart.shipping_option = chosen.option;
  cart.shipping_cost = chosen.cost;
  const trimmed = settle(desk, given.customer_id);
  return {
    status: 'set',
    shipping_option: chosen.option,
    shipping_cost: chosen.cost,
    ...amounts(opened),
    ...trimmed,
  };
}

function getCart(desk: Desk, given: Arguments): Answer {
  const opened = openCart(desk, given.customer_id);
  if (opened === undefined) return noCustomer(given);
  const { item_ids: _, ...cart } = opened.cart;
  const items = opened.lines.map((line) => {
    const product = desk.find('products', 'product_id', line.product_id);
    const variant = product === undefined ? undefined : findVariant(product, line.variant_id);
    const price = unitPrice(desk, line);
    return {
      cart_item_id: line.cart_item_id ?? null,
      product_id: line.product_id ?? null,
      product_name: product?.name ?? null,
      quantity: line.quantity ?? 0,
      gift_wrap: line.gift_wrap ?? false,
      unit_price: price,
      line_total: price * number(line.quantity),
      ...(variant !== undefined && {
        variant_id: variant.variant_id ?? null,
        variant_label: variant.label ?? null,
      }),
    };
  });
  return { ...cart, items };
}

function getAccount(desk: Desk, given: Arguments): Answer {
  const customer = desk.row('customers', given.customer_id);
  return customer === undefined ? noCustomer(given) : { ...customer };
}

export const shoppingTools: StateTools = {
  search_products: searchProducts,
  get_product_details: productDetails,
  get_variants: variantsOf,
  get_customer_account: getAccount,
  get_cart: getCart,
  check_compatibility: checkCompatibility,
  get_promotions: listPromotions,
  get_policies: policyTool,
  validate_promo: validatePromo,
  add_to_cart: addToCart,
  update_cart_item: updateCartItem,
  remove_from_cart: removeFromCart,
  apply_promo: applyPromo,
  remove_promo: removePromo,
  redeem_loyalty_points: redeemPoints,
  cancel_loyalty_redemption: cancelRedemption,
  get_shipping_options: getShippingOptions,
  set_shipping_option: setShippingOption,
};
