import { EffectMatchError } from '../errors.ts';
import { hexOf } from './utf8.ts';

/**
 * A value as it is compared and stored: plain JSON, plus tagged scalars for what JSON numbers and
 * strings cannot carry. A tag is an object with exactly one key that starts with one `$`:
 *
 * - `{ $int: '9223372036854775807' }` an integer beyond the safe range,
 * - `{ $real: '1.5' }` a binary floating-point number in shortest round-trip form (`-0.0`,
 *   `Infinity` included),
 * - `{ $dec: '35' }` an exact decimal without trailing zeros,
 * - `{ $bytes: 'c0ffee' }` binary data, lower-case hex,
 * - `{ $text: 'ff' }` text whose bytes are not valid UTF-8, lower-case hex,
 * - `{ $digest: '…' }` a keyed digest in place of a value that must not be stored,
 * - `{ $omitted: '276000002' }` in a stored diff: the size in bytes of a value too long to keep.
 *
 * In application data, a leading `$` of a key is doubled, so data never reads as a tag.
 */
export type Value =
  | null
  | boolean
  | number
  | string
  | readonly Value[]
  | { readonly [key: string]: Value };

/** Maps column (or field) names to values. */
export type Row = { readonly [column: string]: Value };

const TAG_FORMS = {
  $int: /^-?(?:0|[1-9]\d*)$/,
  $real: /^(?:-?\d+(?:\.\d+)?(?:e[+-]?\d{1,3})?|-?Infinity)$/,
  $dec: /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/,
  $bytes: /^[0-9a-f]*$/,
  $text: /^[0-9a-f]*$/,
  $digest: /^[^\p{Cc}]+$/u,
  $omitted: /^[1-9]\d{0,15}$/,
} as const;

/** The tags of {@link Value}. */
type Tag = keyof typeof TAG_FORMS;

/** A tagged scalar, split into tag and text. */
export interface Tagged {
  readonly tag: Tag;
  readonly text: string;
}

const MAX_DEPTH = 64;

/**
 * Reads a tagged scalar. Undefined for any other value, including data whose keys merely start with
 * `$`.
 */
export function readTag(value: Value): Tagged | undefined {
  if (!isObject(value)) return undefined;
  const keys = Object.keys(value);
  const tag = keys[0];
  if (keys.length !== 1 || tag === undefined || !Object.hasOwn(TAG_FORMS, tag)) return undefined;
  const text = value[tag];
  if (typeof text !== 'string' || !TAG_FORMS[tag as Tag].test(text)) return undefined;
  if ((tag === '$bytes' || tag === '$text') && text.length % 2 !== 0) return undefined;
  return { tag: tag as Tag, text };
}

/** Whether a value is a JSON object, not a scalar, null or an array. */
export function isObject(value: Value): value is { readonly [key: string]: Value } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A deep copy of a value. */
export function copyValue(value: Value): Value {
  if (Array.isArray(value)) return value.map(copyValue);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, copyValue(inner)]));
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return (
    (prototype === Object.prototype || prototype === null) &&
    Object.getOwnPropertySymbols(value).length === 0 &&
    !Object.hasOwn(value, '__proto__')
  );
}

/**
 * A binary floating-point number as a value: the shortest text that reads back as the same number.
 * NaN is refused.
 */
export function encodeReal(real: number): Value {
  if (Number.isNaN(real))
    throw new EffectMatchError('ERR_EM_MANIFEST_INVALID', 'NaN is not a value');
  return { $real: Object.is(real, -0) ? '-0.0' : String(real) };
}

/** An integer as a value: a JSON number in the safe range, else a tag. */
export function encodeInteger(integer: bigint): Value {
  const number = Number(integer);
  return Number.isSafeInteger(number) ? number : { $int: String(integer) };
}

/** Binary data as a value. */
export function encodeBytes(bytes: Uint8Array): Value {
  return { $bytes: hexOf(bytes) };
}

/**
 * Application JSON as a value. Keys that start with `$` get another `$`, so that data never reads
 * as a tag.
 */
export function encodeData(json: Value): Value {
  if (Array.isArray(json)) return json.map(encodeData);
  if (!isObject(json)) return json;
  return Object.fromEntries(
    Object.entries(json).map(([key, inner]) => [encodeKey(key), encodeData(inner)]),
  );
}

function encodeKey(key: string): string {
  return key.startsWith('$') ? `$${key}` : key;
}

/**
 * The value that plain JavaScript in a manifest means. Numbers stay JSON numbers, because only the
 * backend's column type determines whether 35.5 is a decimal or a floating-point number. Ambiguous
 * values are refused with a hint. `where` names the place in messages.
 */
export function fromJs(value: unknown, where = 'value'): Value {
  return convert(value, where, 0);
}

function convert(value: unknown, where: string, depth: number): Value {
  switch (typeof value) {
    case 'boolean':
      return value;
    case 'string':
      if (!value.isWellFormed())
        throw unusable(where, 'has a lone surrogate; pass such text as bytes');
      return value;
    case 'bigint':
      return encodeInteger(value);
    case 'number':
      if (Number.isNaN(value))
        throw unusable(where, 'is NaN, which no column compares equal to; use null or a number');
      if (isRounded(value)) throw unusable(where, `is ${describeRounded(value, BIGINT_OR_REAL)}`);
      return Object.is(value, -0) || !Number.isFinite(value) ? encodeReal(value) : value;
    case 'object':
      return value === null ? null : convertObject(value, where, depth);
    case 'undefined':
      throw unusable(where, 'is undefined; use null, or leave the column out');
    default:
      throw unusable(where, `is a ${typeof value}`);
  }
}

function convertObject(value: object, where: string, depth: number): Value {
  if (depth >= MAX_DEPTH) throw unusable(where, `is nested deeper than ${MAX_DEPTH} levels`);
  if (value instanceof Uint8Array) return encodeBytes(value);
  if (value instanceof Date) {
    throw unusable(
      where,
      'is a Date; write the text or number that the column stores, or now() for the current time',
    );
  }
  if (Array.isArray(value)) {
    return Array.from(value, (item, index) => convert(item, `${where}[${index}]`, depth + 1));
  }
  if (!isPlain(value))
    throw unusable(where, 'is not plain data; a constraint must stand for a whole column');
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      encodeKey(key),
      convert(inner, `${where}[${JSON.stringify(key)}]`, depth + 1),
    ]),
  );
}

const BIGINT_OR_REAL =
  'write a BigInt, such as 9007199254740993n, or real(…) for a floating-point number';

/** Whether a number is an integer beyond 2^53, to which several integers are rounded. */
export function isRounded(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value);
}

/** Finds a rounded integer anywhere in plain data. */
export function findRounded(value: unknown): number | undefined {
  const seen = new Set<unknown>();
  const left = [value];
  while (left.length > 0) {
    const next = left.pop();
    if (isRounded(next)) return next;
    if (typeof next !== 'object' || next === null || ArrayBuffer.isView(next) || seen.has(next))
      continue;
    seen.add(next);
    for (const inner of Object.values(next)) left.push(inner);
  }
  return undefined;
}

/** What is wrong with a rounded integer, and what to write instead. */
export function describeRounded(value: number, instead: string): string {
  return `${value}, which is beyond 2^53 and may have been rounded; ${instead}`;
}

/**
 * A finite number that was stated as a floating-point number, for backends with one type of number.
 */
export function readReal(value: Value): number | undefined {
  const tagged = readTag(value);
  const number = tagged?.tag === '$real' ? Number(tagged.text) : Number.NaN;
  return Number.isFinite(number) && !Object.is(number, -0) ? number : undefined;
}

function unusable(where: string, why: string): EffectMatchError {
  return new EffectMatchError('ERR_EM_MANIFEST_INVALID', `${where} ${why}`);
}

/**
 * The order of two values: negative, zero or positive, or undefined if they have none. Numbers of
 * every type compare by exact value, never as doubles, which would make 9007199254740993 and
 * 9007199254740992 equal. Text compares by code points. Zero does not mean the same value: 1 and `{
 * $real: '1' }` rank equally but are different values.
 */
export function orderValues(a: Value, b: Value): number | undefined {
  if (typeof a === 'string' && typeof b === 'string') return orderText(a, b);
  const left = readNumeric(a);
  const right = readNumeric(b);
  return left === undefined || right === undefined ? undefined : orderNumeric(left, right);
}

function orderText(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  let at = 0;
  while (at < length && a.charCodeAt(at) === b.charCodeAt(at)) at += 1;
  if (at === length) return Math.sign(a.length - b.length);
  return rankUnit(a.charCodeAt(at)) < rankUnit(b.charCodeAt(at)) ? -1 : 1;
}

/** Surrogates encode code points above U+FFFF, so they rank after every other unit. */
function rankUnit(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}

/**
 * 0.digits × 10^scale with a sign. The digits have no zeros at either end and are empty for zero.
 */
interface Numeric {
  readonly sign: -1 | 0 | 1;
  readonly digits: string;
  readonly scale: number;
}

function readNumeric(value: Value): Numeric | undefined {
  if (typeof value === 'number') return readDouble(value);
  const tagged = readTag(value);
  switch (tagged?.tag) {
    case '$int':
    case '$dec':
      return readDecimal(tagged.text);
    case '$real':
      return readDouble(Number(tagged.text));
    default:
      return undefined;
  }
}

/**
 * Below 2^53, a double means its shortest decimal text, which is what people write and read. From
 * 2^53 on, it is an integer whose shortest text may be inexact, so its exact digits are used. Both
 * parts keep the order of doubles.
 */
function readDouble(double: number): Numeric {
  if (!Number.isFinite(double)) {
    return { sign: double > 0 ? 1 : -1, digits: '1', scale: Number.POSITIVE_INFINITY };
  }
  return readDecimal(Math.abs(double) >= 2 ** 53 ? String(BigInt(double)) : String(double));
}

/** Splits decimal text, with or without an exponent, into its parts. */
export function readDecimal(text: string): Numeric {
  const negative = text.startsWith('-');
  const [mantissa = '', exponent = '0'] = text.slice(negative ? 1 : 0).split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const all = `${whole}${fraction}`;
  let start = 0;
  let end = all.length;
  while (start < end && all[start] === '0') start += 1;
  while (end > start && all[end - 1] === '0') end -= 1;
  if (start === end) return { sign: 0, digits: '', scale: 0 };
  return {
    sign: negative ? -1 : 1,
    digits: all.slice(start, end),
    scale: whole.length - start + Number(exponent),
  };
}

function orderNumeric(a: Numeric, b: Numeric): number {
  if (a.sign !== b.sign) return a.sign < b.sign ? -1 : 1;
  if (a.sign === 0) return 0;
  const magnitude =
    a.scale !== b.scale ? (a.scale < b.scale ? -1 : 1) : orderText(a.digits, b.digits);
  return a.sign * magnitude || 0;
}
