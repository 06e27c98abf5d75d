import { encodeInteger, isObject, readDecimal, readTag, type Value } from '../protocol/value.ts';

/** Longer numbers are not parsed, because they could keep a reader busy. */
const NUMBER_LENGTH_MAX = 1000;

/**
 * The value of a JSON number, independent of how it is written. An integer is a JSON number in the
 * safe range, and an integer tag beyond it. Any other number is the double whose shortest text has
 * the same digits, or an exact decimal if there is none. Numbers that are too long return
 * undefined.
 */
export function encodeNumber(source: string): Value | undefined {
  if (source.length > NUMBER_LENGTH_MAX) return undefined;
  const { sign, digits, scale } = readDecimal(source.toLowerCase());
  if (sign === 0) return 0;
  if (scale > NUMBER_LENGTH_MAX || digits.length - scale > NUMBER_LENGTH_MAX) return undefined;
  const minus = sign < 0 ? '-' : '';
  if (scale >= digits.length) return encodeWhole(`${minus}${digits.padEnd(scale, '0')}`);
  const double = Number(source);
  // Equal digits mean an equal number: the nearest double is never off by a power of ten.
  if (readDecimal(String(double)).digits === digits) return double;
  const whole = scale > 0 ? digits.slice(0, scale) : '0';
  const fraction = scale > 0 ? digits.slice(scale) : `${'0'.repeat(-scale)}${digits}`;
  return { $dec: `${minus}${whole}.${fraction}` };
}

/** No safe integer has more characters. */
const SAFE_LENGTH_MAX = String(Number.MIN_SAFE_INTEGER).length;

/** A service can send many long numbers, and converting one takes longer than copying it. */
function encodeWhole(text: string): Value {
  return text.length > SAFE_LENGTH_MAX ? { $int: text } : encodeInteger(BigInt(text));
}

/**
 * A value as it would come back in JSON. All numbers get the form of {@link encodeNumber}, so that
 * approved and read values are compared as numbers. JSON has no negative zero.
 */
export function normaliseNumbers(value: Value): Value {
  if (typeof value === 'number')
    return Number.isFinite(value) ? (encodeNumber(String(value)) ?? value) : value;
  if (Array.isArray(value)) return (value as readonly Value[]).map(normaliseNumbers);
  if (!isObject(value)) return value;
  const tagged = readTag(value);
  if (tagged === undefined) return normaliseRow(value);
  const isNumber =
    ['$int', '$dec', '$real'].includes(tagged.tag) && !tagged.text.endsWith('Infinity');
  return isNumber ? (encodeNumber(tagged.text) ?? value) : value;
}

/** The same for the columns of a row. */
export function normaliseRow<R extends { readonly [column: string]: Value }>(row: R): R {
  return Object.fromEntries(
    Object.entries(row).map(([column, inner]) => [column, normaliseNumbers(inner)]),
  ) as R;
}

/**
 * The digits of a number that is too large or too precise for a double; undefined for other values.
 */
export function digitsOf(value: Value): string | undefined {
  const tagged = readTag(value);
  return tagged?.tag === '$int' || tagged?.tag === '$dec' ? tagged.text : undefined;
}
