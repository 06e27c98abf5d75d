import type { z } from 'zod';
import { MAX_DEPTH, MAX_LENGTH, sortKeys, writeText } from './canon.ts';
import { plainSchema } from './value.ts';

/** What a pass has written so far, and how many objects it has met. */
interface Pass {
  text: string;
  objects: number;
}

/**
 * Checks a value, appends its canonical text and returns a frozen copy that shares nothing with it; undefined as soon as
 * anything does not fit. Every property is read once and from its descriptor: check, text and copy are about the same
 * thing whatever stands behind the value, and no accessor runs.
 */
type Reader = (value: unknown, pass: Pass, depth: number) => unknown;

/** A value that was checked: a frozen copy of its own and its canonical text. */
export interface Read {
  readonly copy: unknown;
  readonly text: string;
}

/** One object can stand in many places, so that a small graph has a large copy. What is larger is left to `canonical`. */
const MAX_OBJECTS = 2 ** 24;

/**
 * Does in one pass what `canonical`, the schema and freezing do one after another. It never says why it refuses: whoever
 * gets undefined asks those. Undefined in place of a reader means that the schema has a part that is not known here.
 */
export function compileReader(schema: z.ZodType): ((input: unknown) => Read | undefined) | undefined {
  const read = compile(schema);
  if (read === undefined) return undefined;
  return (input) => {
    const pass: Pass = { text: '', objects: 0 };
    const copy = read(input, pass, 0);
    return copy === undefined ? undefined : { copy, text: pass.text };
  };
}

type DefOf<K extends string> = Extract<z.core.$ZodTypes['_zod']['def'], { type: K }>;

function compile(schema: z.core.$ZodType): Reader | undefined {
  if (schema === plainSchema) return readPlain;
  const { def } = (schema as z.core.$ZodTypes)._zod;
  if (def.type === 'string') return compileString(def);
  if (def.type === 'number') return compileInteger(def);
  if (def.type === 'array') return compileArray(def);
  if (def.checks !== undefined && def.checks.length > 0) return undefined;
  switch (def.type) {
    case 'boolean':
      return compileChoice([true, false]);
    case 'literal':
      return compileChoice(def.values);
    case 'enum':
      return compileChoice(Object.values(def.entries));
    case 'nullable':
      return compileNullable(def);
    case 'tuple':
      return compileTuple(def);
    case 'record':
      return compileRecord(def);
    case 'object':
      return compileObject(def);
    case 'union':
      return 'discriminator' in def ? compileVariants(def as z.core.$ZodDiscriminatedUnionDef) : compileUnion(def);
    default:
      return undefined;
  }
}

/** Compiles all of them, or nothing where one is not known. */
function compileAll(schemas: readonly z.core.$ZodType[]): Reader[] | undefined {
  const readers = schemas.map(compile);
  return readers.some((read) => read === undefined) ? undefined : (readers as Reader[]);
}

/** What the checks of a string, a number or an array demand; undefined where one is of another kind. */
interface Bounds {
  readonly min: number;
  readonly max: number;
  readonly patterns: readonly RegExp[];
}

function readBounds(checks: readonly z.core.$ZodCheck<never>[] = []): Bounds | undefined {
  let { min, max } = { min: Number.NEGATIVE_INFINITY, max: Number.POSITIVE_INFINITY };
  const patterns: RegExp[] = [];
  for (const check of checks) {
    const { def } = (check as unknown as z.core.$ZodChecks)._zod;
    if (def.check === 'min_length') min = Math.max(min, def.minimum);
    else if (def.check === 'max_length') max = Math.min(max, def.maximum);
    else if (def.check === 'length_equals') [min, max] = [Math.max(min, def.length), Math.min(max, def.length)];
    else if (def.check === 'greater_than' && def.inclusive) min = Math.max(min, Number(def.value));
    else if (def.check === 'less_than' && def.inclusive) max = Math.min(max, Number(def.value));
    else if (def.check === 'string_format' && def.format === 'regex' && isStateless(def.pattern)) {
      patterns.push(def.pattern);
    } else return undefined;
  }
  return { min, max, patterns };
}

function isStateless(pattern: RegExp | undefined): pattern is RegExp {
  return pattern !== undefined && !pattern.global && !pattern.sticky;
}

function compileString(def: DefOf<'string'>): Reader | undefined {
  const bounds = readBounds(def.checks);
  if (bounds === undefined || def.coerce === true) return undefined;
  const { min, max, patterns } = bounds;
  return (value, pass) => {
    if (typeof value !== 'string' || value.length < min || value.length > max) return undefined;
    for (const pattern of patterns) if (!pattern.test(value)) return undefined;
    return append(writeText(value), pass) ? value : undefined;
  };
}

/** Safe integers, the only numbers that records have outside of values. */
function compileInteger(def: DefOf<'number'>): Reader | undefined {
  const bounds = readBounds(def.checks);
  if (bounds === undefined || def.coerce === true || !('format' in def) || def.format !== 'safeint') return undefined;
  const { min, max } = bounds;
  return (value, pass) => {
    if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < min || value > max) return undefined;
    return readPlain(value, pass, 0);
  };
}

function compileChoice(values: readonly unknown[]): Reader | undefined {
  const texts = new Map<unknown, string>();
  for (const value of values) {
    if (typeof value !== 'string' && typeof value !== 'boolean' && value !== 1) return undefined;
    texts.set(value, JSON.stringify(value));
  }
  return (value, pass) => (append(texts.get(value), pass) ? value : undefined);
}

function compileNullable(def: DefOf<'nullable'>): Reader | undefined {
  const read = compile(def.innerType);
  return read && ((value, pass, depth) => (value === null ? readPlain(value, pass, depth) : read(value, pass, depth)));
}

function compileArray(def: DefOf<'array'>): Reader | undefined {
  const bounds = readBounds(def.checks);
  const read = compile(def.element);
  if (bounds === undefined || read === undefined) return undefined;
  const { min, max } = bounds;
  return (value, pass, depth) =>
    isArray(value, pass, depth) && value.length >= min && value.length <= max
      ? readItems(value, () => read, pass, depth)
      : undefined;
}

function compileTuple(def: DefOf<'tuple'>): Reader | undefined {
  const readers = compileAll(def.items);
  if (readers === undefined || def.rest !== null) return undefined;
  return (value, pass, depth) =>
    isArray(value, pass, depth) && value.length === readers.length
      ? readItems(value, (index) => readers[index] as Reader, pass, depth)
      : undefined;
}

function compileRecord(def: DefOf<'record'>): Reader | undefined {
  const read = compile(def.valueType);
  const key = (def.keyType as z.core.$ZodTypes)._zod.def;
  const bounds = key.type === 'string' ? readBounds(key.checks) : undefined;
  if (read === undefined || bounds === undefined || def.mode === 'loose') return undefined;
  const { min, max, patterns } = bounds;
  const isKey = (name: string) =>
    name.length >= min && name.length <= max && patterns.every((pattern) => pattern.test(name));
  return (value, pass, depth) =>
    isPlainObject(value, pass, depth) ? readMembers(value, isKey, read, pass, depth) : undefined;
}

/** One field of an object: its place in the schema, and its key as it is written before the value. */
interface Field {
  readonly key: string;
  readonly place: number;
  readonly optional: boolean;
  readonly keyText: string;
  readonly read: Reader;
}

function compileObject(def: DefOf<'object'>): Reader | undefined {
  const keys = Object.keys(def.shape);
  const fields: Field[] = [];
  for (const [place, key] of keys.entries()) {
    const field = (def.shape[key] as z.core.$ZodTypes)._zod.def;
    const optional = field.type === 'optional' && field.checks === undefined;
    const read = compile(optional ? field.innerType : (def.shape[key] as z.core.$ZodType));
    if (read === undefined) return undefined;
    fields.push({ key, place, optional, keyText: `${JSON.stringify(key)}:`, read });
  }
  if (def.catchall?._zod.def.type !== 'never') return undefined;
  fields.sort((a, b) => (a.key < b.key ? -1 : 1));
  return (value, pass, depth) =>
    isPlainObject(value, pass, depth) ? readFields(value, keys, fields, pass, depth) : undefined;
}

function compileUnion(def: DefOf<'union'>): Reader | undefined {
  const readers = compileAll(def.options);
  if (readers === undefined || def.inclusive === false) return undefined;
  return (value, pass, depth) => {
    const { text } = pass;
    for (const read of readers) {
      const copy = read(value, pass, depth);
      if (copy !== undefined) return copy;
      pass.text = text;
    }
    return undefined;
  };
}

/** A union whose variants are told apart by one field. The variant checks that field once more with all the others. */
function compileVariants(def: z.core.$ZodDiscriminatedUnionDef): Reader | undefined {
  const variants = new Map<unknown, Reader>();
  for (const option of def.options) {
    const { def: variant } = (option as z.core.$ZodTypes)._zod;
    const tag = variant.type === 'object' ? (variant.shape[def.discriminator] as z.core.$ZodTypes)._zod.def : undefined;
    const read = compile(option);
    if (tag?.type !== 'literal' || read === undefined) return undefined;
    for (const value of tag.values) variants.set(value, read);
  }
  return (value, pass, depth) => {
    if (typeof value !== 'object' || value === null) return undefined;
    const tag: unknown = Object.getOwnPropertyDescriptor(value, def.discriminator)?.value;
    return variants.get(tag)?.(value, pass, depth);
  };
}

/** Any plain data, by the rules of `canonical`. */
function readPlain(value: unknown, pass: Pass, depth: number): unknown {
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
      if (isArray(value, pass, depth)) return readItems(value, () => readPlain, pass, depth);
      return isPlainObject(value, pass, depth) ? readMembers(value, isAnyKey, readPlain, pass, depth) : undefined;
    default:
      return undefined;
  }
}

const isAnyKey = () => true;

function readItems(value: readonly unknown[], readerAt: (index: number) => Reader, pass: Pass, depth: number): unknown {
  const { length } = value;
  // Holes and named properties both make these differ, or leave an index without a descriptor.
  if (Object.keys(value).length !== length) return undefined;
  const copy: unknown[] = [];
  for (let index = 0; index < length; index += 1) {
    if (!append(index === 0 ? '[' : ',', pass)) return undefined;
    const item = readProperty(value, index, readerAt(index), pass, depth);
    if (item === undefined) return undefined;
    copy.push(item);
  }
  pass.text += length === 0 ? '[]' : ']';
  return Object.freeze(copy);
}

function readMembers(
  value: object,
  isKey: (name: string) => boolean,
  read: Reader,
  pass: Pass,
  depth: number,
): unknown {
  const copy: Record<string, unknown> = {};
  let mark = '{';
  for (const key of sortKeys(Object.keys(value))) {
    if (key === '__proto__' || !isKey(key)) return undefined;
    const keyText = writeText(key);
    if (keyText === undefined || !append(`${mark}${keyText}:`, pass)) return undefined;
    const inner = readProperty(value, key, read, pass, depth);
    if (inner === undefined) return undefined;
    copy[key] = inner;
    mark = ',';
  }
  pass.text += mark === '{' ? '{}' : '}';
  return Object.freeze(copy);
}

/** Read and written in the order of the text; the copy has them in the order of the schema. */
function readFields(value: object, keys: readonly string[], fields: readonly Field[], pass: Pass, depth: number) {
  const found: unknown[] = new Array(keys.length);
  let present = 0;
  for (const { key, place, optional, keyText, read } of fields) {
    if (optional && !Object.hasOwn(value, key)) continue;
    pass.text += present === 0 ? '{' : ',';
    pass.text += keyText;
    const inner = readProperty(value, key, read, pass, depth);
    if (inner === undefined) return undefined;
    found[place] = inner;
    present += 1;
  }
  if (Object.keys(value).length !== present) return undefined;
  pass.text += present === 0 ? '{}' : '}';
  const copy: Record<string, unknown> = {};
  for (let place = 0; place < keys.length; place += 1) {
    if (found[place] !== undefined) copy[keys[place] as string] = found[place];
  }
  return Object.freeze(copy);
}

function readProperty(owner: object, key: string | number, read: Reader, pass: Pass, depth: number): unknown {
  const property = Object.getOwnPropertyDescriptor(owner, key);
  if (property === undefined || property.enumerable !== true) return undefined;
  return property.get === undefined && property.set === undefined ? read(property.value, pass, depth + 1) : undefined;
}

function isArray(value: unknown, pass: Pass, depth: number): value is readonly unknown[] {
  return Array.isArray(value) && Object.getPrototypeOf(value) === Array.prototype && isWithin(value, pass, depth);
}

function isPlainObject(value: unknown, pass: Pass, depth: number): value is object {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return (prototype === Object.prototype || prototype === null) && isWithin(value, pass, depth);
}

function isWithin(value: object, pass: Pass, depth: number): boolean {
  pass.objects += 1;
  return depth < MAX_DEPTH && pass.objects <= MAX_OBJECTS && Object.getOwnPropertySymbols(value).length === 0;
}

/** Refuses text before it is made: an engine has its own limit for strings and an error of its own. */
function append(text: string | undefined, pass: Pass): text is string {
  if (text === undefined || pass.text.length + text.length > MAX_LENGTH) return false;
  pass.text += text;
  return true;
}
