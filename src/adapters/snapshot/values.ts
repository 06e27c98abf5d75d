import { canonical } from '../../protocol/canon.ts';
import { isObject, readReal, type Value } from '../../protocol/value.ts';
import { stepInto, type Tokens } from './pointer.ts';

/** The value at a path; undefined if there is none. Paths do not lead into lists. */
export function findValue(value: Value, tokens: Tokens): Value | undefined {
  let found: Value | undefined = value;
  for (const token of tokens) {
    if (found === undefined || !isObject(found) || !Object.hasOwn(found, token)) return undefined;
    found = found[token];
  }
  return found;
}

/**
 * Sorts every list that a pattern matches, so that the same elements in any order give the same
 * value. Duplicates are kept. Inner lists come first, because outer lists are sorted by their
 * content.
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
 * The value of a declared field that is missing from its record. JSON has no bytes, so no document
 * can contain it.
 */
export const ABSENT: Value = Object.freeze({ $bytes: '' });

export function isAbsent(value: Value): boolean {
  return isObject(value) && value.$bytes === '' && Object.keys(value).length === 1;
}

/** Converts a manifest value to JSON; undefined if JSON cannot represent it. */
export function jsonOf(value: Value): Value | undefined {
  if (typeof value !== 'object' || value === null) return value;
  if (!isObject(value)) {
    const items = value.map(jsonOf);
    return items.every((item) => item !== undefined) ? items : undefined;
  }
  const real = readReal(value);
  if (real !== undefined) return real;
  const fields: [string, Value][] = [];
  for (const [key, inner] of Object.entries(value)) {
    const decoded = /^\$(?!\$)/.test(key) ? undefined : jsonOf(inner);
    if (decoded === undefined) return undefined;
    fields.push([key.startsWith('$') ? key.slice(1) : key, decoded]);
  }
  return Object.fromEntries(fields);
}
