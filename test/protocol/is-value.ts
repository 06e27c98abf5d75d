import { readTag, type Value } from '../../src/protocol/value.ts';

const MAX_DEPTH = 64;

/** Whether something is a value at every level: JSON in which only tags have keys with one `$`. */
export function isValue(value: unknown, depth = 0): value is Value {
  if (value === null || typeof value === 'boolean') return true;
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value === 'number') return Number.isFinite(value) && !Object.is(value, -0);
  if (typeof value !== 'object' || depth >= MAX_DEPTH) return false;
  if (Array.isArray(value)) return Array.from(value).every((item) => isValue(item, depth + 1));
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return false;
  if (readTag(value as Value) !== undefined) return true;
  return Object.entries(value).every(
    ([key, inner]) => !/^\$(?!\$)/.test(key) && isValue(inner, depth + 1),
  );
}
