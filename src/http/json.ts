import { encodeInteger, type Value } from '../protocol/value.ts';
import { hasRepeatedKey } from './repeated-key.ts';

/**
 * JSON as values: whole numbers beyond the safe range and decimals that no double carries keep their digits in a tag
 * rather than becoming their neighbours, and keys that start with `$` are doubled, so that a text cannot contain tags.
 * Undefined where the bytes are not JSON in UTF-8, or say two things under one key: that is then no answer at all.
 */
export function parseJson(bytes: Buffer): Value | undefined {
  const text = bytes.toString('utf8');
  if (!Buffer.from(text, 'utf8').equals(bytes)) return undefined;
  try {
    const value = JSON.parse(text, revive as (key: string, value: unknown) => unknown) as Value;
    return hasRepeatedKey(text) ? undefined : value;
  } catch {
    return undefined;
  }
}

/** Called for what stands in the text, innermost first; what it returns is not visited again. */
function revive(key: string, value: unknown, context: { readonly source?: string }): unknown {
  if (key === '__proto__') throw new SyntaxError('no value has a key of that name');
  if (typeof value === 'number') return reviveNumber(value, context.source ?? '');
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  if (!Object.keys(value).some((name) => name.startsWith('$'))) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name.startsWith('$') ? `$${name}` : name, inner]),
  );
}

const DIGITS_OF_A_DOUBLE = 15;
/** Below it a double has fewer digits, and in the end none. */
const SMALLEST_FULL_DOUBLE = 2 ** -1022;
/** Longer numbers are written to keep a reader busy. */
const NUMBER_LENGTH_MAX = 1000;

function reviveNumber(value: number, source: string): Value {
  if (source.length > NUMBER_LENGTH_MAX) throw new SyntaxError('a number is longer than any that is compared');
  if (/^-?\d+$/.test(source)) return encodeInteger(BigInt(source));
  const digits = withoutZerosAtEnd(
    source
      .replace(/[eE].*$/, '')
      .replace(/[-.]/g, '')
      .replace(/^0+/, ''),
  );
  if (digits === '') return 0;
  const carried = Number.isFinite(value) && Math.abs(value) >= SMALLEST_FULL_DOUBLE;
  if (carried && digits.length <= DIGITS_OF_A_DOUBLE) return value;
  if (/[eE]/.test(source)) throw new SyntaxError('a number has more digits than can be compared');
  return { $dec: withoutZerosAtEnd(source).replace(/\.$/, '') };
}

/** By counting: a pattern for zeros at the end is tried again at every zero before them. */
function withoutZerosAtEnd(digits: string): string {
  let end = digits.length;
  while (digits[end - 1] === '0') end -= 1;
  return digits.slice(0, end);
}
