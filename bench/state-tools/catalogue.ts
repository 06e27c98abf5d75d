// The shop's catalogue: search, products, variants and promotions.
import type { Json } from '../data/patch.ts';
import type { StateRecord } from '../data/state-bench.ts';
import { type Answer, type Arguments, type Desk, list, number, text, words } from './desk.ts';

const MOST_FOUND = 10;
const NAME_WEIGHT = 4;
/** Shorter words, such as the C of USB-C, are ignored. */
const SHORTEST_WORD = 2;
const SORTING: { readonly [name: string]: (product: StateRecord) => number } = {
  price_low: ({ price }) => number(price),
  price_high: ({ price }) => -number(price),
  rating: ({ rating }) => -number(rating),
  review_count: ({ review_count }) => -number(review_count),
};

export function searchProducts(desk: Desk, given: Arguments): Answer {
  const allowed = desk.catalogue('products').filter((product) => passesFilters(product, given));
  const none = { products: [], total_found: 0 };
  if (allowed.length === 0)
    return {
      ...none,
      note: 'No products match the hard filters (category / price / rating / stock). Try relaxing them and search again.',
    };
  const asked = text(given.query);
  const tokens = new Set(words(asked).filter(({ length }) => length >= SHORTEST_WORD));
  const scored = allowed.map((product) => ({ product, score: scoreOf(product, tokens) }));
  const found = asked === '' ? scored : scored.filter(({ score }) => score > 0);
  if (found.length === 0)
    return {
      ...none,
      note: `No products match the query '${asked}'. Try broader or different keywords.`,
    };
  const order = SORTING[text(given.sort_by)];
  found.sort((a, b) =>
    order === undefined
      ? b.score - a.score || number(b.product.rating) - number(a.product.rating)
      : order(a.product) - order(b.product),
  );
  const shown = found.slice(0, MOST_FOUND).map(({ product }) => summarise(product));
  return { products: shown, total_found: found.length };
}

function passesFilters(product: StateRecord, given: Arguments): boolean {
  const { category, price, rating, in_stock } = product;
  if (text(given.category) !== '' && category !== given.category) return false;
  if (number(price) < number(given.min_price)) return false;
  if (number(given.max_price) > 0 && number(price) > number(given.max_price)) return false;
  if (number(rating) < number(given.min_rating)) return false;
  return given.in_stock_only !== true || in_stock === true;
}

/** Each word of the query counts once. A word in the product's name counts most. */
function scoreOf(product: StateRecord, tokens: ReadonlySet<string>): number {
  const name = new Set(words(text(product.name)));
  const specs = Object.entries(product.specs ?? {})
    .flat()
    .join(' ');
  const others = [product.brand, product.subcategory, product.description, specs];
  const rest = new Set(others.flatMap((value) => words(text(value))));
  let score = 0;
  for (const token of tokens) {
    if (name.has(token)) score += NAME_WEIGHT;
    else if (rest.has(token)) score += 1;
  }
  return score;
}

const SUMMARY = [
  'product_id',
  'name',
  'brand',
  'category',
  'subcategory',
  'price',
  'rating',
  'review_count',
  'in_stock',
] as const;

function summarise(product: StateRecord): Answer {
  return Object.fromEntries(SUMMARY.map((field) => [field, product[field] ?? null]));
}

export function productDetails(desk: Desk, { product_id }: Arguments): Answer {
  const product = desk.find('products', 'product_id', product_id);
  if (product === undefined) return { error: `Product ${product_id} not found.` };
  return { ...product, shipping_estimate: `${product.shipping_days} business days (standard)` };
}

export function variantsOf(desk: Desk, { product_id }: Arguments): Answer {
  const product = desk.find('products', 'product_id', product_id);
  if (product === undefined) return { error: `Product ${product_id} not found.` };
  const { name, price } = product;
  const head = {
    product_id: text(product_id),
    product_name: text(name),
    base_price: number(price),
  };
  const variants = list(product.variants) as readonly StateRecord[];
  if (variants.length > 0)
    return { ...head, variants: variants.map((variant) => describeVariant(product, variant)) };
  const note = 'This product has no variants; no variant_id is needed for add_to_cart.';
  return { ...head, variants: [], note };
}

function describeVariant(product: StateRecord, variant: StateRecord): Answer {
  const stock = number(variant.stock_quantity);
  return {
    variant_id: variant.variant_id ?? null,
    label: variant.label ?? null,
    effective_price: priceOf(product, variant),
    in_stock: stock > 0,
    stock_quantity: stock,
  };
}

export function findVariant(product: StateRecord, id: Json | undefined): StateRecord | undefined {
  const variants = list(product.variants) as readonly StateRecord[];
  return variants.find(({ variant_id }) => variant_id === id);
}

/** The price of one unit: a variant may add to the product's price. */
export function priceOf(product: StateRecord, variant: StateRecord | undefined): number {
  return number(product.price) + number(variant?.price_delta);
}

export function checkCompatibility(desk: Desk, { product_id, device_name }: Arguments): Answer {
  const product = desk.find('products', 'product_id', product_id);
  if (product === undefined) return { error: `Product ${product_id} not found.` };
  const device = text(device_name);
  const head = { product_id: text(product_id), device };
  const all = desk.catalogue('products').flatMap((one) => list(one.compatible_with));
  const known = [...new Set(all as readonly string[])].sort();
  if (!known.includes(device)) {
    const names = known.length === 0 ? 'none' : known.join(', ');
    const reason = `Unknown device name '${device}'. Canonical devices in this catalog: ${names}.`;
    return { compatible: false, ...head, reason, canonical_devices: known };
  }
  const own = list(product.compatible_with);
  if (own.includes(device))
    return { compatible: true, ...head, reason: `${product.name} is compatible with ${device}.` };
  const names = own.length === 0 ? 'none listed' : own.join(', ');
  const reason = `${product.name} is not compatible with ${device}. Compatible devices for this product: ${names}.`;
  return { compatible: false, ...head, reason };
}

export function listPromotions(desk: Desk, { category }: Arguments): Answer {
  const promotions = desk.catalogue('promotions').filter((promotion) => {
    if (promotion.active !== true || isExpired(desk, promotion)) return false;
    const restriction = categoriesOf(promotion);
    if (text(category) === '' || restriction.length === 0) return true;
    return restriction.includes(text(category));
  });
  return { promotions };
}

export function isExpired(desk: Desk, promotion: StateRecord): boolean {
  return text(promotion.expiry_date) < desk.data.now.slice(0, text(promotion.expiry_date).length);
}

/** The categories that a promotion is limited to. An empty list means every category. */
export function categoriesOf({ category_restriction: given }: StateRecord): readonly Json[] {
  if (given === null || given === undefined) return [];
  return Array.isArray(given) ? given : [given];
}
