import { encodeInteger, type Value } from '../protocol/value.ts';

/**
 * JSON as values: whole numbers beyond the safe range and decimals that no double carries keep their digits in a tag
 * rather than becoming their neighbours, and keys that start with `$` are doubled, so that a text cannot contain tags.
 * Undefined where the bytes are not JSON in UTF-8, which is then no answer at all.
 */
export function parseJson(bytes: Buffer): Value | undefined {
  const text = bytes.toString('utf8');
  if (!Buffer.from(text, 'utf8').equals(bytes)) return undefined;
  try {
    return JSON.parse(text, revive as (key: string, value: unknown) => unknown) as Value;
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

function reviveNumber(value: number, source: string): Value {
  if (/^-?\d+$/.test(source)) return encodeInteger(BigInt(source));
  const digits = source
    .replace(/[eE].*$/, '')
    .replace(/[-.]/g, '')
    .replace(/^0+/, '');
  if (digits.length <= DIGITS_OF_A_DOUBLE && Number.isFinite(value)) return Object.is(value, -0) ? 0 : value;
  if (/[eE]/.test(source)) throw new SyntaxError('a number has more digits than can be compared');
  return { $dec: source.replace(/0+$/, '').replace(/\.$/, '') };
}
