import { EffectMatchError } from '../../errors.ts';
import { canonical } from '../../protocol/canon.ts';
import { isObject, readReal, type Value } from '../../protocol/value.ts';
import { stepInto, type Tokens } from './pointer.ts';

/**
 * The value with every list that a pattern leads to in one fixed order, so that two orders of the
 * same elements are the same value while every element still counts. Inner lists first: they are
 * part of what outer ones sort by.
 */
export function sortLists(value: Value, unordered: readonly Tokens[]): Value {
  if (unordered.length === 0 || typeof value !== 'object' || value === null) return value;
  if (isObject(value)) {
    const entries = Object.entries(value);
    return Object.fromEntries(
      entries.map(([key, inner]) => [key, sortLists(inner, stepInto(unordered, key))]),
    );
  }
  const items = value.map((item, index) => sortLists(item, stepInto(unordered, String(index))));
  if (!unordered.some((pattern) => pattern.length === 0)) return items;
  const texts = items.map((item) => ({ item, text: canonical(item) }));
  return texts
    .sort((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0))
    .map(({ item }) => item);
}

/**
 * What a declared field holds that its record does not have. No JSON document contains bytes, so
 * none can forge it.
 */
export const ABSENT: Value = Object.freeze({ $bytes: '' });

export function isAbsent(value: Value): boolean {
  return isObject(value) && value.$bytes === '' && Object.keys(value).length === 1;
}

/**
 * The JSON that a value of a manifest stands for; undefined where JSON has no form for it (bytes,
 * big integers).
 */
export function decodeData(value: Value): Value | undefined {
  try {
    return decode(value);
  } catch {
    return undefined;
  }
}

function decode(value: Value): Value {
  if (typeof value !== 'object' || value === null) return value;
  if (!isObject(value)) return value.map(decode);
  const real = readReal(value);
  if (real !== undefined) return real;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      if (!key.startsWith('$')) return [key, decode(inner)];
      if (!key.startsWith('$$'))
        throw new EffectMatchError('ERR_EM_MANIFEST_INVALID', 'a tag is not JSON');
      return [key.slice(1), decode(inner)];
    }),
  );
}
