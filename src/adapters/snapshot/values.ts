import { canonical } from '../../protocol/canon.ts';
import { isObject, readReal, type Value } from '../../protocol/value.ts';
import { stepInto, type Tokens } from './pointer.ts';

/** What is at a place; undefined if there is nothing. A list has no places. */
export function findValue(value: Value, tokens: Tokens): Value | undefined {
  let found: Value | undefined = value;
  for (const token of tokens) {
    if (found === undefined || !isObject(found) || !Object.hasOwn(found, token)) return undefined;
    found = found[token];
  }
  return found;
}

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

/** The JSON that a value of a manifest stands for; undefined if JSON has no form for it. */
export function decodeData(value: Value): Value | undefined {
  if (typeof value !== 'object' || value === null) return value;
  if (!isObject(value)) {
    const items = value.map(decodeData);
    return items.every((item) => item !== undefined) ? items : undefined;
  }
  const real = readReal(value);
  if (real !== undefined) return real;
  const fields: [string, Value][] = [];
  for (const [key, inner] of Object.entries(value)) {
    const decoded = /^\$(?!\$)/.test(key) ? undefined : decodeData(inner);
    if (decoded === undefined) return undefined;
    fields.push([key.startsWith('$') ? key.slice(1) : key, decoded]);
  }
  return Object.fromEntries(fields);
}
