import { scanJson } from '../protocol/json-text.ts';
import { isObject, type Row, type Value } from '../protocol/value.ts';
import { encodeNumber } from './number.ts';

/**
 * The backslash is unusable because of `JSON.parse` in V8 13.6: after it has seen an object with
 * that key, it reads other keys that begin with an escape, such as `"\\""`, as a backslash.
 */
const UNUSABLE_KEYS: readonly string[] = ['__proto__', '\\'];

/**
 * Parses JSON to values. Integers beyond the safe range and decimals that no double represents keep
 * their digits in a tag. Keys that start with `$` get a second `$`, so that the text cannot contain
 * tags. Returns undefined if the bytes are not JSON in UTF-8, or if an object repeats a key:
 * readers differ in which value they use, so it proves nothing.
 */
export function parseJson(bytes: Buffer): Value | undefined {
  const text = bytes.toString('utf8');
  if (!Buffer.from(text, 'utf8').equals(bytes)) return undefined;
  let keys = 0;
  // Called for the values in the text, innermost first. It is not called for what it returns.
  const revive = (key: string, value: Value, { source }: { readonly source?: string }): Value => {
    if (UNUSABLE_KEYS.includes(key)) throw new SyntaxError('no value has a key of that name');
    if (typeof value === 'number') return reviveNumber(source ?? String(value));
    if (!isObject(value)) return value;
    keys += Object.keys(value).length;
    return doubleDollars(value);
  };
  try {
    const value = JSON.parse(text, revive as (key: string, value: unknown) => unknown) as Value;
    // `JSON.parse` keeps only the last value of a repeated key.
    return keys === scanJson(text).members ? value : undefined;
  } catch {
    return undefined;
  }
}

function reviveNumber(source: string): Value {
  const value = encodeNumber(source);
  if (value === undefined) throw new SyntaxError('a number is longer than any that is compared');
  return value;
}

function doubleDollars(row: Row): Row {
  if (!Object.keys(row).some((name) => name.startsWith('$'))) return row;
  const entries = Object.entries(row).map(([name, value]) => {
    return [name.startsWith('$') ? `$${name}` : name, value] as const;
  });
  return Object.fromEntries(entries);
}
