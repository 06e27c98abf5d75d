import type { z } from 'zod';
import { MAX_LENGTH } from './canon.ts';
import {
  type Field,
  isText,
  mayBeIndex,
  type Pass,
  type Reader,
  readFields,
  readItems,
  readMembers,
  readPlain,
  writeCopy,
} from './one-pass.ts';
import { PLAIN_PATTERNS } from './patterns.ts';
import { plainSchema } from './value.ts';

/** A value that was checked: a frozen copy of its own and its canonical text. */
export interface Read {
  readonly copy: unknown;
  readonly text: string;
}

/**
 * Does in one pass what `canonical`, the schema and freezing do one after another. It never says
 * why it refuses: whoever gets undefined asks those. Undefined in place of a reader means that the
 * schema has a part that is not known here. More objects than `maxObjects` are refused, because an
 * object that stands in many places is copied for each of them.
 */
export function compileReader(
  schema: z.ZodType,
): ((input: unknown, maxObjects: number) => Read | undefined) | undefined {
  const read = compile(schema);
  if (read === undefined) return undefined;
  return (input, maxObjects) => {
    const pass: Pass = { objectsLeft: maxObjects, charactersLeft: MAX_LENGTH, inOrder: true };
    const copy = read(input, pass, 0);
    const text = copy === undefined ? undefined : writeCopy(copy, pass);
    return text === undefined ? undefined : { copy, text };
  };
}

type DefOf<K extends string> = Extract<z.core.$ZodTypes['_zod']['def'], { type: K }>;

const defOf = (schema: z.core.$ZodType) => (schema as z.core.$ZodTypes)._zod.def;

function compile(schema: z.core.$ZodType): Reader | undefined {
  if (schema === plainSchema) return readPlain;
  const def = defOf(schema);
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
      return 'discriminator' in def
        ? compileVariants(def as z.core.$ZodDiscriminatedUnionDef)
        : compileUnion(def);
    default:
      return undefined;
  }
}

function compileAll(schemas: readonly z.core.$ZodType[]): readonly Reader[] | undefined {
  const readers = schemas.map(compile);
  return readers.every((read) => read !== undefined) ? readers : undefined;
}

/** What the checks of a string, a number or an array demand. */
interface Bounds {
  readonly min: number;
  readonly max: number;
  readonly patterns: readonly RegExp[];
}

/** Undefined where one of the checks is of another kind. */
function readBounds(checks: readonly z.core.$ZodCheck<never>[] = []): Bounds | undefined {
  let min = Number.NEGATIVE_INFINITY;
  let max = Number.POSITIVE_INFINITY;
  const patterns: RegExp[] = [];
  for (const check of checks) {
    const { def } = (check as unknown as z.core.$ZodChecks)._zod;
    if (def.check === 'min_length') min = Math.max(min, def.minimum);
    else if (def.check === 'max_length') max = Math.min(max, def.maximum);
    else if (def.check === 'length_equals')
      [min, max] = [Math.max(min, def.length), Math.min(max, def.length)];
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

/** Whether a text has the length and the form that a schema asks for. */
type Form = (text: string) => boolean;

function compileForm(def: z.core.$ZodStringDef): Form | undefined {
  const bounds = readBounds(def.checks);
  // A format such as `z.email()` is a check of the schema itself, beside its list of checks.
  if (bounds === undefined || def.coerce === true || 'format' in def) return undefined;
  const { min, max, patterns } = bounds;
  const [pattern, ...others] = patterns;
  if (others.length > 0) return undefined;
  return (text) =>
    text.length >= min && text.length <= max && (pattern === undefined || pattern.test(text));
}

function compileString(def: DefOf<'string'>): Reader | undefined {
  const hasForm = compileForm(def);
  if (hasForm === undefined) return undefined;
  const isPlain = readBounds(def.checks)?.patterns.some((pattern) => PLAIN_PATTERNS.has(pattern));
  return isPlain
    ? (value) => (typeof value === 'string' && hasForm(value) ? value : undefined)
    : (value, pass) =>
        typeof value === 'string' && hasForm(value) && isText(value, pass) ? value : undefined;
}

/** Safe integers, the only numbers that records have outside of values. */
function compileInteger(def: DefOf<'number'>): Reader | undefined {
  const bounds = readBounds(def.checks);
  if (bounds === undefined || def.coerce === true || !('format' in def) || def.format !== 'safeint')
    return undefined;
  const { min, max } = bounds;
  return (value, pass, depth) =>
    Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max
      ? readPlain(value, pass, depth)
      : undefined;
}

/**
 * One of some texts, truth values or positive integers; zero has a negative twin that is no plain
 * value.
 */
function compileChoice(values: readonly unknown[]): Reader | undefined {
  const isChoice = (value: unknown) =>
    typeof value === 'string' ||
    typeof value === 'boolean' ||
    (Number.isInteger(value) && Number(value) > 0);
  if (!values.every(isChoice)) return undefined;
  const choices = new Set(values);
  return (value) => (choices.has(value) ? value : undefined);
}

function compileNullable(def: DefOf<'nullable'>): Reader | undefined {
  const read = compile(def.innerType);
  return read && ((value, pass, depth) => (value === null ? readPlain : read)(value, pass, depth));
}

function compileArray(def: DefOf<'array'>): Reader | undefined {
  const bounds = readBounds(def.checks);
  const read = compile(def.element);
  if (bounds === undefined || read === undefined) return undefined;
  const items = { min: bounds.min, max: bounds.max, readers: read };
  return (value, pass, depth) => readItems(value, items, pass, depth);
}

function compileTuple(def: DefOf<'tuple'>): Reader | undefined {
  const readers = compileAll(def.items);
  if (readers === undefined || def.rest !== null) return undefined;
  const items = { min: readers.length, max: readers.length, readers };
  return (value, pass, depth) => readItems(value, items, pass, depth);
}

function compileRecord(def: DefOf<'record'>): Reader | undefined {
  const keyDef = defOf(def.keyType);
  const isKey = keyDef.type === 'string' ? compileForm(keyDef) : undefined;
  const read = compile(def.valueType);
  if (read === undefined || isKey === undefined || def.mode === 'loose') return undefined;
  return (value, pass, depth) => readMembers(value, isKey, read, pass, depth);
}

function compileObject(def: DefOf<'object'>): Reader | undefined {
  const fields: Field[] = [];
  for (const key of Object.keys(def.shape).sort()) {
    const schema = def.shape[key] as z.core.$ZodType;
    const field = defOf(schema);
    const optional = field.type === 'optional';
    const read = compile(optional ? field.innerType : schema);
    if (read === undefined || mayBeIndex(key)) return undefined;
    fields.push({ key, optional, read });
  }
  if (def.catchall?._zod.def.type !== 'never') return undefined;
  return (value, pass, depth) => readFields(value, fields, pass, depth);
}

function compileUnion(def: DefOf<'union'>): Reader | undefined {
  const readers = compileAll(def.options);
  if (readers === undefined || def.inclusive === false) return undefined;
  return (value, pass, depth) => {
    for (const read of readers) {
      const copy = read(value, pass, depth);
      if (copy !== undefined) return copy;
    }
    return undefined;
  };
}

/**
 * A union whose variants are told apart by one field. The variant checks that field once more with
 * all the others.
 */
function compileVariants(def: z.core.$ZodDiscriminatedUnionDef): Reader | undefined {
  const variants = new Map<unknown, Reader>();
  for (const option of def.options) {
    const variant = defOf(option);
    const tag =
      variant.type === 'object'
        ? defOf(variant.shape[def.discriminator] as z.core.$ZodType)
        : undefined;
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
