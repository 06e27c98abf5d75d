import { canonical, MAX_DEPTH, MAX_LENGTH, sortKeys, writeKey } from './canon.ts';
import { compactObject, type OpenObject } from './compact.ts';
import type { Value } from './value.ts';

/**
 * Captured before any tool runs, because a tool may overwrite them and would then receive values
 * before they are frozen.
 */
const {
  freeze,
  getOwnPropertyDescriptor,
  getOwnPropertySymbols,
  getPrototypeOf,
  isFrozen,
  keys: keysOf,
  values: valuesOf,
} = Object;
const { isArray } = Array;
const { stringify } = JSON;

/** The state of reading one value: the limits that are left, and why and where it was refused. */
interface Pass {
  objectsLeft: number;
  charactersLeft: number;
  /** The value is ours alone, so parts of it that are in canonical order need no copy. */
  readonly isOwned: boolean;
  /** The part being read belongs to a long list, so copies have to be small. */
  isLong: boolean;
  /** Whether all keys of the copy are in canonical order. */
  inOrder: boolean;
  refusal: string;
  /** The path from the value to the refused part, innermost last. */
  readonly path: (string | number)[];
}

/**
 * Checks a value and returns a frozen copy that shares nothing with it, or undefined if it does not
 * fit. Every property is read once, from its descriptor, so the check and the copy see the same
 * data even behind a proxy, and no accessor runs.
 */
export type Schema<T> = (value: unknown, pass: Pass, depth: number) => T | undefined;

/** What a schema accepts, as JSON Schema. Checks that JSON Schema cannot express are left out. */
export type SchemaDocument = { readonly [keyword: string]: unknown };
type Describe = (inner: (schema: Schema<unknown>) => SchemaDocument) => SchemaDocument;
const descriptions = new WeakMap<Schema<unknown>, Describe>();

function describe<T>(schema: Schema<T>, description: Describe): Schema<T> {
  descriptions.set(schema, description);
  return schema;
}

/** Describes a schema. Parts that have a name are referred to by it. */
export function jsonSchemaOf(
  schema: Schema<unknown>,
  refOf: (schema: Schema<unknown>) => string | undefined = () => undefined,
): SchemaDocument {
  const inner = (part: Schema<unknown>): SchemaDocument => {
    const ref = refOf(part);
    return ref === undefined ? jsonSchemaOf(part, refOf) : { $ref: ref };
  };
  return descriptions.get(schema)?.(inner) ?? {};
}

/** The type that a schema reads. */
export type Infer<S> = S extends Schema<infer T> ? T : never;

/** Why a value does not fit its schema, and where. */
export interface SchemaRefusal {
  readonly path: readonly (string | number)[];
  readonly why: string;
}

/** A checked value: a frozen copy, and whether all its keys are in canonical order. */
export interface Copied<T> {
  readonly copy: T;
  readonly inOrder: boolean;
}

/**
 * Reads and copies a value in one pass. Refuses more than `maxObjects` objects, because an object
 * that occurs in many places is copied for each of them. A list that a field of the value holds may
 * have a few objects more for each of its items. A value that is owned is frozen and not copied.
 */
export function copyOnce<T>(
  schema: Schema<T>,
  input: unknown,
  maxObjects: number,
  isOwned = false,
): Copied<T> | SchemaRefusal {
  const pass: Pass = {
    objectsLeft: maxObjects,
    charactersLeft: MAX_LENGTH,
    isOwned,
    isLong: false,
    inOrder: true,
    refusal: '',
    path: [],
  };
  const copy = schema(input, pass, 0);
  if (copy === undefined) return { path: pass.path, why: pass.refusal };
  return { copy, inOrder: pass.inOrder };
}

/** Lists with more items are written in pieces of this many, and their copies are kept small. */
const PIECE = 1000;

/**
 * The canonical text of a copy in pieces, because that of a long list may need more memory than
 * there is. A piece that is too long for a string is undefined.
 */
export function writePieces(copied: Copied<object>): Iterable<string | undefined> {
  const { copy, inOrder } = copied;
  return valuesOf(copy).some(isLongList) ? writeLong(copied) : [writeCopy(copy, inOrder)];
}

function* writeLong({ copy, inOrder }: Copied<object>): Generator<string | undefined> {
  let text = '{';
  for (const [index, key] of sortKeys(keysOf(copy)).entries()) {
    const value = (copy as { readonly [key: string]: unknown })[key];
    text += `${index === 0 ? '' : ','}${writeKey(key)}`;
    const isLong = isLongList(value);
    const items = isLong ? value : [value];
    for (let at = 0; at < items.length; at += PIECE) {
      const part = writeCopy(items.slice(at, at + PIECE), inOrder)?.slice(1, -1);
      if (part === undefined) return yield undefined;
      text += `${isLong ? (at === 0 ? '[' : ',') : ''}${part}`;
      if (!isLong) continue;
      yield text;
      text = '';
    }
    if (isLong) text = ']';
  }
  yield `${text}}`;
}

function isLongList(value: unknown): value is readonly unknown[] {
  return isArray(value) && value.length > PIECE;
}

/** More than an effect on a wide row has. */
const OBJECTS_PER_ITEM = 256;

const NOTHING = freeze([]);

/**
 * The canonical text of a copy, or undefined if it is too long. If keys are in canonical order and
 * no prototype has a `toJSON`, the engine's own writer gives the same text as `canonical` in a
 * fraction of the time.
 */
function writeCopy(copy: unknown, inOrder: boolean): string | undefined {
  if (!inOrder || 'toJSON' in NOTHING) return canonical(copy);
  try {
    const text = stringify(copy);
    return text.length > MAX_LENGTH ? undefined : text;
  } catch {
    // Engines have their own limit for strings; `canonical` says what is too long.
    return undefined;
  }
}

function refuse(pass: Pass, why: string): undefined {
  pass.refusal = why;
  pass.path.length = 0;
  return undefined;
}

function refuseAt(pass: Pass, key: string | number): undefined {
  pass.path.unshift(key);
  return undefined;
}

/** Whether a value fits a schema. For values without nested objects. */
export function accepts(schema: Schema<unknown>, value: unknown): boolean {
  return 'copy' in copyOnce(schema, value, 1);
}

/** Any plain data, by the rules of `canonical`. */
export const plain: Schema<Value> = (value, pass, depth) => {
  switch (typeof value) {
    case 'string':
      return isText(value, pass) ? value : undefined;
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0) ? value : refuse(pass, NOT_PLAIN);
    case 'boolean':
      return value;
    case 'object':
      if (value === null) return null;
      return isArray(value) ? anyList(value, pass, depth) : anyObject(value, pass, depth);
    default:
      return refuse(pass, NOT_PLAIN);
  }
};
const NOT_PLAIN = 'must be plain data';

/** Whether a string has a canonical text and there is room for it. */
function isText(value: string, pass: Pass): boolean {
  pass.charactersLeft -= value.length;
  if (pass.charactersLeft >= 0 && value.isWellFormed()) return true;
  refuse(pass, 'must be text that is not too long and has no lone surrogate');
  return false;
}

/** Text whose length is within these bounds. */
export function text(min = 0, max = Number.POSITIVE_INFINITY): Schema<string> {
  const what = `must be text of ${range(min, max)} characters`;
  const schema: Schema<string> = (value, pass) => {
    if (typeof value !== 'string' || value.length < min || value.length > max)
      return refuse(pass, what);
    return isText(value, pass) ? value : undefined;
  };
  // JSON Schema counts code points, of which there are never more than UTF-16 code units.
  return describe(schema, () => ({ type: 'string', ...bounds('Length', Math.min(min, 1), max) }));
}

/** Text that matches a pattern. `what` describes it in messages. */
export function form<T extends string = string>(pattern: RegExp, what: string): Schema<T> {
  const schema: Schema<T> = (value, pass) => {
    if (typeof value !== 'string' || !pattern.test(value)) return refuse(pass, `must be ${what}`);
    return isText(value, pass) ? (value as T) : undefined;
  };
  return describe(schema, () => ({ type: 'string', pattern: pattern.source, description: what }));
}

/** A safe integer within these bounds. Outside of values, records have no other numbers. */
export function integer(min: number, max = Number.MAX_SAFE_INTEGER): Schema<number> {
  const schema: Schema<number> = (value, pass) => {
    const fits = Number.isSafeInteger(value) && !Object.is(value, -0);
    return fits && (value as number) >= min && (value as number) <= max
      ? (value as number)
      : refuse(pass, `must be a whole number of ${range(min, max)}`);
  };
  return describe(schema, () => ({ type: 'integer', minimum: min, maximum: max }));
}

/** One of several texts, booleans or positive integers. */
export function choice<const T extends string | number | boolean>(
  ...choices: readonly T[]
): Schema<T> {
  const all = new Set<unknown>(choices);
  const schema: Schema<T> = (value, pass) =>
    all.has(value) ? (value as T) : refuse(pass, `must be ${choices.join(' or ')}`);
  return describe(schema, () => ({ enum: choices }));
}

/** What the schema reads, or null. */
export function nullable<T>(schema: Schema<T>): Schema<T | null> {
  const orNull: Schema<T | null> = (value, pass, depth) =>
    value === null ? null : schema(value, pass, depth);
  return describe(orNull, (inner) => ({ anyOf: [inner(schema), { type: 'null' }] }));
}

/** A list whose length is within these bounds. */
export function list<T>(item: Schema<T>, min = 0, max = Number.POSITIVE_INFINITY): Schema<T[]> {
  const schema: Schema<T[]> = (value, pass, depth) => {
    if (!isArray(value) || getPrototypeOf(value) !== Array.prototype)
      return refuse(pass, 'must be a list');
    // Read once: a proxy could answer differently next time.
    const { length } = value;
    if (length < min || length > max) return refuse(pass, `must have ${range(min, max)} items`);
    // A hole or a named property changes the count. One of each leaves an index without a
    // descriptor.
    const isWhole = pass.isOwned || keysOf(value).length === length;
    if (!isWithin(value, pass, depth) || !isWhole) return refuse(pass, NOT_PLAIN);
    const copy: unknown[] = pass.isOwned && !isFrozen(value) ? value : [];
    const isField = depth === 1;
    if (isField) pass.isLong = length > PIECE;
    if (isField) pass.objectsLeft += length * OBJECTS_PER_ITEM;
    for (let index = 0; index < length; index += 1) {
      const property = getOwnPropertyDescriptor(value, index);
      if (!isData(property)) return refuse(pass, NOT_PLAIN);
      const inner = item(property.value, pass, depth + 1);
      if (inner === undefined) return refuseAt(pass, index);
      copy[index] = inner;
    }
    if (isField) pass.isLong = false;
    return freeze(copy) as T[];
  };
  return describe(schema, (inner) => ({
    type: 'array',
    items: inner(item),
    ...bounds('Items', min, max),
  }));
}
const anyList: Schema<Value[]> = list(plain);

/** An object whose keys are data. */
export function dictionary<T>(key: Schema<string>, item: Schema<T>): Schema<{ [key: string]: T }> {
  const schema: Schema<{ [key: string]: T }> = (value, pass, depth) => {
    if (!isPlainObject(value, pass, depth)) return refuse(pass, NOT_OBJECT);
    const keys = sortKeys(keysOf(value));
    let copy = copyOf(value, pass);
    for (let index = 0; index < keys.length; index += 1) {
      const name = keys[index] as string;
      if (name === '__proto__' || key(name, pass, depth) === undefined) return refuseAt(pass, name);
      if (mayBeIndex(name)) pass.inOrder = false;
      const property = getOwnPropertyDescriptor(value, name);
      if (!isData(property)) return refuse(pass, NOT_PLAIN);
      const inner = item(property.value, pass, depth + 1);
      if (inner === undefined) return refuseAt(pass, name);
      copy = withValue(copy, value, name, inner);
    }
    return freeze(copy) as { [key: string]: T };
  };
  return describe(schema, (inner) => ({ type: 'object', additionalProperties: inner(item) }));
}
const NOT_OBJECT = 'must be an object';
const anyObject: Schema<{ [key: string]: Value }> = dictionary(text(), plain);

/** A field that may be absent. */
export interface Optional<T> {
  readonly optional: Schema<T>;
}
export function optional<T>(schema: Schema<T>): Optional<T> {
  return { optional: schema };
}

/** The fields of an object with known keys. */
type SchemaFields = { readonly [key: string]: Schema<unknown> | Optional<unknown> };

type Flat<T> = { [K in keyof T]: T[K] };
/** The type of an object with these fields. */
export type Closed<F extends SchemaFields> = Flat<
  { [K in keyof F as F[K] extends Schema<unknown> ? K : never]: Infer<F[K]> } & {
    [K in keyof F as F[K] extends Schema<unknown> ? never : K]?: F[K] extends Optional<infer T>
      ? T
      : never;
  }
>;

/** An object with exactly these fields. */
export function closed<const F extends SchemaFields>(fields: F): Schema<Closed<F>> {
  const entries = Object.keys(fields)
    .sort()
    .map((key) => {
      const field = fields[key] as SchemaFields[string];
      return 'optional' in field
        ? { key, isOptional: true, read: field.optional }
        : { key, isOptional: false, read: field };
    });
  const schema: Schema<Closed<F>> = (value, pass, depth) => {
    if (!isPlainObject(value, pass, depth)) return refuse(pass, NOT_OBJECT);
    let copy = copyOf(value, pass);
    let present = 0;
    for (let index = 0; index < entries.length; index += 1) {
      const { key, isOptional, read } = entries[index] as (typeof entries)[number];
      const property = getOwnPropertyDescriptor(value, key);
      if (property?.enumerable !== true && isOptional) continue;
      if (!isData(property)) return refuse(pass, `must have the field "${key}"`);
      const inner = read(property.value, pass, depth + 1);
      if (inner === undefined) return refuseAt(pass, key);
      copy = withValue(copy, value, key, inner);
      present += 1;
    }
    const keys = keysOf(value);
    if (keys.length !== present) return refuse(pass, describeUnknown(keys, fields));
    return freeze(copy) as Closed<F>;
  };
  return describe(schema, (inner) => ({
    type: 'object',
    properties: Object.fromEntries(entries.map(({ key, read }) => [key, inner(read)])),
    required: entries.flatMap(({ key, isOptional }) => (isOptional ? [] : [key])),
    additionalProperties: false,
  }));
}

function describeUnknown(keys: readonly string[], fields: SchemaFields): string {
  const unknown = keys.find((key) => !Object.hasOwn(fields, key)) ?? '';
  return `must not have the field ${stringify(unknown.slice(0, 100))}`;
}

/** The type of a union whose variants differ in the value of one field. */
type Variants<K extends string, V extends { readonly [tag: string]: SchemaFields }> = {
  [T in keyof V & string]: Flat<{ [key in K]: T } & Closed<V[T]>>;
}[keyof V & string];

/** An object whose fields depend on the value of one of them. */
export function variants<
  const K extends string,
  const V extends { readonly [tag: string]: SchemaFields },
>(key: K, fieldsOf: V): Schema<Variants<K, V>> {
  const tags = Object.keys(fieldsOf);
  const schemas = new Map<unknown, Schema<unknown>>(
    tags.map((tag) => [tag, closed({ ...fieldsOf[tag], [key]: choice(tag) })]),
  );
  const union: Schema<Variants<K, V>> = (value, pass, depth) => {
    if (typeof value !== 'object' || value === null) return refuse(pass, NOT_OBJECT);
    const schema = schemas.get(getOwnPropertyDescriptor(value, key)?.value);
    if (schema === undefined) return refuse(pass, `must have "${key}": ${tags.join(' or ')}`);
    return schema(value, pass, depth) as Variants<K, V> | undefined;
  };
  return describe(union, (inner) => ({ oneOf: [...schemas.values()].map(inner) }));
}

/** An object with exactly one of these fields. */
export function oneField<const F extends { readonly [key: string]: Schema<unknown> }>(
  fields: F,
): Schema<{ [K in keyof F]: { [key in K]: Infer<F[K]> } }[keyof F]> {
  const schemas = new Map(
    Object.entries(fields).map(([key, schema]) => [key, closed({ [key]: schema })]),
  );
  const what = `must have one of the fields ${[...schemas.keys()].join(', ')}`;
  type OneField = { [K in keyof F]: { [key in K]: Infer<F[K]> } }[keyof F];
  const union: Schema<OneField> = (value, pass, depth) => {
    if (typeof value !== 'object' || value === null) return refuse(pass, NOT_OBJECT);
    const [key] = keysOf(value);
    const schema = key === undefined ? undefined : schemas.get(key);
    if (key === undefined || schema === undefined) return refuse(pass, what);
    const copy = schema(value, pass, depth) as OneField | undefined;
    return copy && pass.isLong ? share(key, copy) : copy;
  };
  /** In a long list, the same value in the same field is one object where it recurs. */
  const shared = new Map<unknown, OneField>();
  const share = (key: string, copy: OneField): OneField => {
    const content = (copy as OpenObject)[key];
    if (typeof content === 'object') return copy;
    const known = shared.get(content);
    if (known !== undefined && key in known) return known;
    if (shared.size >= SHARED_MAX) shared.clear();
    shared.set(content, copy);
    return copy;
  };
  return describe(union, (inner) => ({ oneOf: [...schemas.values()].map(inner) }));
}

const SHARED_MAX = 1000;

/** What the first schema reads, or else the second. */
export function either<A, B>(first: Schema<A>, second: Schema<B>): Schema<A | B> {
  const schema: Schema<A | B> = (value, pass, depth) =>
    first(value, pass, depth) ?? second(value, pass, depth);
  return describe(schema, (inner) => ({ anyOf: [inner(first), inner(second)] }));
}

/** A list of two. */
export function pair<T>(item: Schema<T>): Schema<[T, T]> {
  return list(item, 2, 2) as Schema<unknown> as Schema<[T, T]>;
}

/** What the schema reads, if it also passes a check. */
export function checked<T>(
  schema: Schema<T>,
  passes: (value: T) => boolean,
  why: string,
): Schema<T> {
  const stricter: Schema<T> = (value, pass, depth) => {
    const copy = schema(value, pass, depth);
    return copy === undefined || passes(copy) ? copy : refuse(pass, why);
  };
  return describe(stricter, (inner) => inner(schema));
}

function bounds(what: 'Items' | 'Length', min: number, max: number): SchemaDocument {
  return { [`min${what}`]: min, ...(Number.isFinite(max) && { [`max${what}`]: max }) };
}

function range(min: number, max: number): string {
  if (min === max) return String(min);
  return max < Number.MAX_SAFE_INTEGER ? `${min} to ${max}` : `at least ${min}`;
}

const ZERO = 48;
const NINE = 57;

/** Objects list keys that look like an index first, in numeric order. */
function mayBeIndex(key: string): boolean {
  const first = key.charCodeAt(0);
  return first >= ZERO && first <= NINE;
}

/** Present, enumerable and not an accessor. */
function isData(property: PropertyDescriptor | undefined): property is PropertyDescriptor {
  return property?.enumerable === true && property.get === undefined && property.set === undefined;
}

function isPlainObject(value: unknown, pass: Pass, depth: number): value is object {
  if (typeof value !== 'object' || value === null || isArray(value)) return false;
  const prototype: unknown = getPrototypeOf(value);
  return (prototype === Object.prototype || prototype === null) && isWithin(value, pass, depth);
}

function isWithin(value: object, pass: Pass, depth: number): boolean {
  pass.objectsLeft -= 1;
  return depth < MAX_DEPTH && pass.objectsLeft >= 0 && getOwnPropertySymbols(value).length === 0;
}

/** The object to read a value into: itself if it is owned and in canonical order, else a new one. */
function copyOf(value: object, { isOwned, isLong }: Pass): OpenObject {
  if (!isOwned && !isLong) return {};
  const keys = keysOf(value);
  const isOrdinary = getPrototypeOf(value) === Object.prototype;
  return isOwned && isOrdinary && isSorted(keys) ? (value as OpenObject) : compactObject(keys);
}

function isSorted(keys: readonly string[]): boolean {
  for (let index = 1; index < keys.length; index += 1)
    if ((keys[index - 1] as string) > (keys[index] as string)) return false;
  return true;
}

/** What is owned may be frozen already, because it also belongs to another record. */
function withValue(copy: OpenObject, source: object, key: string, value: unknown): OpenObject {
  if (copy === source && copy[key] === value) return copy;
  const open = copy === source && isFrozen(copy) ? { ...copy } : copy;
  open[key] = value;
  return open;
}
