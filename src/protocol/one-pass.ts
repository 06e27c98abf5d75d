import { MAX_DEPTH, MAX_LENGTH, settleItem, sortKeys, writeKey, writeText } from './canon.ts';

/** What a pass has written so far, and how many objects it may still meet. */
export interface Pass {
  text: string;
  objectsLeft: number;
}

/**
 * Checks a value, appends its canonical text and returns a frozen copy that shares nothing with it; undefined as soon as
 * anything does not fit. Every property is read once and from its descriptor: check, text and copy are about the same
 * thing whatever stands behind the value, and no accessor runs.
 */
export type Reader = (value: unknown, pass: Pass, depth: number) => unknown;

/** Any plain data, by the rules of `canonical`. */
export const readPlain: Reader = (value, pass, depth) => {
  switch (typeof value) {
    case 'string':
      return append(writeText(value), pass) ? value : undefined;
    case 'number':
      if (!Number.isFinite(value) || Object.is(value, -0)) return undefined;
      pass.text += value;
      return value;
    case 'boolean':
      pass.text += value;
      return value;
    case 'object':
      if (value === null) {
        pass.text += 'null';
        return null;
      }
      return Array.isArray(value)
        ? readItems(value, ANY_ITEMS, pass, depth)
        : readMembers(value, isAnyKey, readPlain, pass, depth);
    default:
      return undefined;
  }
};

const isAnyKey = () => true;

/** How many items an array may have, and their reader, or one for each where several are given. */
export interface Items {
  readonly min: number;
  readonly max: number;
  readonly readers: Reader | readonly Reader[];
}

const ANY_ITEMS: Items = { min: 0, max: Number.POSITIVE_INFINITY, readers: readPlain };

/** An array. Its length is read once, like everything else: a proxy could give another answer the next time. */
export function readItems(value: unknown, { min, max, readers }: Items, pass: Pass, depth: number): unknown {
  if (!Array.isArray(value) || Object.getPrototypeOf(value) !== Array.prototype) return undefined;
  const { length } = value;
  if (length < min || length > max) return undefined;
  // Holes and named properties both make these differ, or leave an index without a descriptor.
  if (!isWithin(value, pass, depth) || Object.keys(value).length !== length) return undefined;
  const copy: unknown[] = [];
  for (let index = 0; index < length; index += 1) {
    const before = pass.text;
    pass.text = index === 0 ? '[' : ',';
    const read = typeof readers === 'function' ? readers : (readers[index] as Reader);
    const item = readProperty(value, index, read, pass, depth);
    if (item === undefined || before.length + pass.text.length > MAX_LENGTH) return undefined;
    pass.text = before + settleItem(pass.text, length);
    copy.push(item);
  }
  pass.text += length === 0 ? '[]' : ']';
  return Object.freeze(copy);
}

/** An object whose keys are data. */
export function readMembers(
  value: unknown,
  isKey: (key: string) => boolean,
  read: Reader,
  pass: Pass,
  depth: number,
): unknown {
  if (!isPlainObject(value, pass, depth)) return undefined;
  const copy: Record<string, unknown> = {};
  const keys = sortKeys(Object.keys(value));
  for (let index = 0; index < keys.length; index += 1) {
    const key = keys[index] as string;
    if (key === '__proto__' || !isKey(key)) return undefined;
    pass.text += index === 0 ? '{' : ',';
    if (!append(writeKey(key), pass)) return undefined;
    const inner = readProperty(value, key, read, pass, depth);
    if (inner === undefined) return undefined;
    copy[key] = inner;
  }
  pass.text += keys.length === 0 ? '{}' : '}';
  return Object.freeze(copy);
}

/** Bound, because `call` is looked up on the function, where a tool may have written something by a careless path. */
const isEnumerable = Function.prototype.call.bind(Object.prototype.propertyIsEnumerable) as unknown as (
  owner: object,
  key: string,
) => boolean;

/** A field of an object whose keys are known, with its key as it is written before the value. */
export interface Field {
  readonly key: string;
  readonly keyText: string;
  readonly optional: boolean;
  readonly read: Reader;
}

/** An object with exactly these fields, which are in the order of their text. */
export function readFields(value: unknown, fields: readonly Field[], pass: Pass, depth: number): unknown {
  if (!isPlainObject(value, pass, depth)) return undefined;
  const copy: Record<string, unknown> = {};
  let present = 0;
  for (let index = 0; index < fields.length; index += 1) {
    const { key, keyText, optional, read } = fields[index] as Field;
    if (optional && !isEnumerable(value, key)) continue;
    pass.text += present === 0 ? '{' : ',';
    pass.text += keyText;
    const inner = readProperty(value, key, read, pass, depth);
    if (inner === undefined) return undefined;
    copy[key] = inner;
    present += 1;
  }
  if (Object.keys(value).length !== present) return undefined;
  pass.text += present === 0 ? '{}' : '}';
  return Object.freeze(copy);
}

function readProperty(owner: object, key: string | number, read: Reader, pass: Pass, depth: number): unknown {
  const property = Object.getOwnPropertyDescriptor(owner, key);
  if (property === undefined || property.enumerable !== true) return undefined;
  return property.get === undefined && property.set === undefined ? read(property.value, pass, depth + 1) : undefined;
}

function isPlainObject(value: unknown, pass: Pass, depth: number): value is object {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return (prototype === Object.prototype || prototype === null) && isWithin(value, pass, depth);
}

function isWithin(value: object, pass: Pass, depth: number): boolean {
  pass.objectsLeft -= 1;
  return depth < MAX_DEPTH && pass.objectsLeft >= 0 && Object.getOwnPropertySymbols(value).length === 0;
}

/** Refuses text before it is made: an engine has its own limit for strings and an error of its own. */
export function append(text: string | undefined, pass: Pass): boolean {
  if (text === undefined || pass.text.length + text.length > MAX_LENGTH) return false;
  pass.text += text;
  return true;
}
