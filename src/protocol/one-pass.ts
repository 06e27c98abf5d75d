import { canonical, MAX_DEPTH, MAX_LENGTH, sortKeys } from './canon.ts';

/**
 * What a pass may still meet, and whether the copy that it makes lists all its keys in canonical
 * order.
 */
export interface Pass {
  objectsLeft: number;
  charactersLeft: number;
  inOrder: boolean;
}

/**
 * Checks a value and returns a frozen copy that shares nothing with it; undefined as soon as
 * anything does not fit. Every property is read once and from its descriptor: check and copy are
 * about the same thing whatever stands behind the value, and no accessor runs.
 */
export type Reader = (value: unknown, pass: Pass, depth: number) => unknown;

/** Any plain data, by the rules of `canonical`. */
export const readPlain: Reader = (value, pass, depth) => {
  switch (typeof value) {
    case 'string':
      return isText(value, pass) ? value : undefined;
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0) ? value : undefined;
    case 'boolean':
      return value;
    case 'object':
      if (value === null) return null;
      return Array.isArray(value)
        ? readItems(value, ANY_ITEMS, pass, depth)
        : readMembers(value, isAnyKey, readPlain, pass, depth);
    default:
      return undefined;
  }
};

/** Whether a string has a canonical text, and room for it. */
export function isText(value: string, pass: Pass): boolean {
  pass.charactersLeft -= value.length;
  return pass.charactersLeft >= 0 && value.isWellFormed();
}

const isAnyKey = () => true;

/** How many items an array may have, and their reader, or one for each where several are given. */
export interface Items {
  readonly min: number;
  readonly max: number;
  readonly readers: Reader | readonly Reader[];
}

const ANY_ITEMS: Items = { min: 0, max: Number.POSITIVE_INFINITY, readers: readPlain };

/**
 * An array. Its length is read once, like everything else: a proxy could give another answer the
 * next time.
 */
export function readItems(
  value: unknown,
  { min, max, readers }: Items,
  pass: Pass,
  depth: number,
): unknown {
  if (!Array.isArray(value) || Object.getPrototypeOf(value) !== Array.prototype) return undefined;
  const { length } = value;
  if (length < min || length > max) return undefined;
  // Holes and named properties both make these differ, or leave an index without a descriptor.
  if (!isWithin(value, pass, depth) || Object.keys(value).length !== length) return undefined;
  const copy: unknown[] = [];
  for (let index = 0; index < length; index += 1) {
    const property = Object.getOwnPropertyDescriptor(value, index);
    if (!isData(property)) return undefined;
    const read = typeof readers === 'function' ? readers : (readers[index] as Reader);
    const item = read(property.value, pass, depth + 1);
    if (item === undefined) return undefined;
    copy[index] = item;
  }
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
    if (key === '__proto__' || !isKey(key) || !isText(key, pass)) return undefined;
    if (mayBeIndex(key)) pass.inOrder = false;
    const property = Object.getOwnPropertyDescriptor(value, key);
    if (!isData(property)) return undefined;
    const inner = read(property.value, pass, depth + 1);
    if (inner === undefined) return undefined;
    copy[key] = inner;
  }
  return Object.freeze(copy);
}

const ZERO = 48;
const NINE = 57;

/**
 * Objects list what reads as an index by its number and before everything else, wherever it was
 * added.
 */
export function mayBeIndex(key: string): boolean {
  const first = key.charCodeAt(0);
  return first >= ZERO && first <= NINE;
}

/** A field of an object whose keys are known. */
export interface Field {
  readonly key: string;
  readonly optional: boolean;
  readonly read: Reader;
}

/** An object with exactly these fields, which are in the order of their text. */
export function readFields(
  value: unknown,
  fields: readonly Field[],
  pass: Pass,
  depth: number,
): unknown {
  if (!isPlainObject(value, pass, depth)) return undefined;
  const copy: Record<string, unknown> = {};
  let present = 0;
  for (let index = 0; index < fields.length; index += 1) {
    const { key, optional, read } = fields[index] as Field;
    const property = Object.getOwnPropertyDescriptor(value, key);
    if (optional && property?.enumerable !== true) continue;
    if (!isData(property)) return undefined;
    const inner = read(property.value, pass, depth + 1);
    if (inner === undefined) return undefined;
    copy[key] = inner;
    present += 1;
  }
  return Object.keys(value).length === present ? Object.freeze(copy) : undefined;
}

/** Found, listed, and no accessor. */
function isData(property: PropertyDescriptor | undefined): property is PropertyDescriptor {
  return property?.enumerable === true && property.get === undefined && property.set === undefined;
}

function isPlainObject(value: unknown, pass: Pass, depth: number): value is object {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return (prototype === Object.prototype || prototype === null) && isWithin(value, pass, depth);
}

function isWithin(value: object, pass: Pass, depth: number): boolean {
  pass.objectsLeft -= 1;
  return (
    depth < MAX_DEPTH && pass.objectsLeft >= 0 && Object.getOwnPropertySymbols(value).length === 0
  );
}

const NOTHING = Object.freeze([]);

/**
 * The canonical text of a copy that a pass has made; undefined where it is too long. The engine's
 * own writer gives the same as `canonical`, in a fraction of the time, where keys are listed in
 * canonical order and nobody has given all objects a say in how they are written.
 */
export function writeCopy(copy: unknown, { inOrder }: Pass): string | undefined {
  if (!inOrder || 'toJSON' in NOTHING) return canonical(copy);
  try {
    const text = JSON.stringify(copy);
    return text.length > MAX_LENGTH ? undefined : text;
  } catch {
    // An engine has its own limit for strings. Whoever gets no text asks `canonical`, which says
    // what is too long.
    return undefined;
  }
}
