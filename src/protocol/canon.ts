import { EffectMatchError } from '../errors.ts';
import { utf8Length } from './utf8.ts';

/** How deep a plain value may be nested. */
export const MAX_DEPTH = 64;

/**
 * Printable ASCII without quote and backslash, which JSON leaves unchanged. Most names and many
 * values match.
 */
const PLAIN = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;

/** The longest canonical text in characters: as many as the largest record may have bytes. */
export const MAX_LENGTH = 2 ** 28;

/**
 * One object can occur in many places, so the text of a small object graph can double with every
 * level. After this many objects, their texts are cached: each object is written once per level,
 * and the total length is known before the text exists. Few values are that large, and caching
 * costs time.
 */
export const KEPT_AFTER = 2 ** 20;

/** Longer arrays have the text of each item flattened; see {@link settleItem}. */
const LONG_ARRAY = 1000;

type Step = string | number;

/** The path to the value being written, and what this call has seen so far. */
interface Walk {
  readonly path: Step[];
  objects: number;
  kept: Map<object, string>[] | undefined;
}

/**
 * The canonical text of a plain value (RFC 8785: keys sorted by UTF-16 code units, ECMAScript
 * numbers and strings). Two different plain values never share a text. Data that JSON cannot carry
 * without loss is refused with its path, because these texts are digested, sealed and used as
 * multiset keys. Accessors are never called.
 */
export function canonical(value: unknown): string {
  return write(value, { path: [], objects: 0, kept: undefined }, 0);
}

function write(value: unknown, walk: Walk, depth: number): string {
  switch (typeof value) {
    case 'string':
      return writeString(value, walk, depth);
    case 'number':
      return writeNumber(value, walk, depth);
    case 'boolean':
      return value ? 'true' : 'false';
    case 'object':
      if (value === null) return 'null';
      if (depth >= MAX_DEPTH)
        return refuse(walk, depth, `nested deeper than ${MAX_DEPTH} levels, or a cycle`);
      walk.objects += 1;
      return walk.objects > KEPT_AFTER
        ? writeOnce(value, walk, depth)
        : writeNested(value, walk, depth);
    case 'bigint':
      return refuse(
        walk,
        depth,
        'a bigint; write { $int: text } for integers beyond the safe range',
      );
    case 'undefined':
      return refuse(walk, depth, 'undefined; leave the field out or use null');
    default:
      return refuse(walk, depth, `a ${typeof value}`);
  }
}

function writeNested(value: object, walk: Walk, depth: number): string {
  return Array.isArray(value) ? writeArray(value, walk, depth) : writeObject(value, walk, depth);
}

/** Caches by level, because the depth limit depends on where the object occurs. */
function writeOnce(value: object, walk: Walk, depth: number): string {
  walk.kept ??= Array.from({ length: MAX_DEPTH }, () => new Map());
  const kept = walk.kept[depth] as Map<object, string>;
  const known = kept.get(value);
  if (known !== undefined) return known;
  const text = writeNested(value, walk, depth);
  kept.set(value, text);
  return text;
}

/** Checks the length first: engines have their own limit and error for long strings. */
function join(text: string, more: string, walk: Walk, depth: number): string {
  if (text.length + more.length > MAX_LENGTH)
    return refuse(walk, depth, `more than ${MAX_LENGTH} characters`);
  return text + more;
}

function writeString(value: string, walk: Walk, depth: number): string {
  return writeText(value) ?? refuse(walk, depth, 'a string with a lone surrogate');
}

/** The canonical text of a string, or undefined if it contains a lone surrogate. */
export function writeText(value: string): string | undefined {
  if (PLAIN.test(value)) return `"${value}"`;
  return value.isWellFormed() ? JSON.stringify(value) : undefined;
}

const KEYS_KEPT = 1000;
const KEPT_KEY_MAX = 64;
const keyTexts = new Map<string, string>();

/**
 * The canonical text of a key, with the colon. Short keys are cached, because the same columns and
 * fields recur.
 */
export function writeKey(key: string): string | undefined {
  const known = keyTexts.get(key);
  if (known !== undefined) return known;
  const text = writeText(key);
  if (text === undefined || key.length > KEPT_KEY_MAX) return text && `${text}:`;
  if (keyTexts.size >= KEYS_KEPT) keyTexts.clear();
  keyTexts.set(key, `${text}:`);
  return `${text}:`;
}

function writeNumber(value: number, walk: Walk, depth: number): string {
  if (!Number.isFinite(value)) return refuse(walk, depth, String(value));
  if (value === 0 && Object.is(value, -0))
    return refuse(walk, depth, "-0; write { $real: '-0.0' }");
  return String(value);
}

function writeArray(value: readonly unknown[], walk: Walk, depth: number): string {
  if (Object.getPrototypeOf(value) !== Array.prototype)
    return refuse(walk, depth, 'an array of another class');
  // A hole or a named property changes the count. One of each leaves an index without a descriptor.
  const length = value.length;
  if (Object.keys(value).length !== length)
    return refuse(walk, depth, 'a sparse array, or one with named properties');
  refuseSymbols(value, walk, depth);
  let text = '[';
  for (let index = 0; index < length; index += 1) {
    walk.path[depth] = index;
    if (index > 0) text += ',';
    const item = write(readProperty(value, index, walk, depth + 1), walk, depth + 1);
    text = join(text, settleItem(item, length), walk, depth);
  }
  return `${text}]`;
}

/**
 * A concatenated string holds on to its parts until it is flattened. The items of a long array
 * would leave millions of parts to the garbage collector, which copies them repeatedly. Measuring
 * an item flattens it.
 */
function settleItem(item: string, items: number): string {
  if (items > LONG_ARRAY) utf8Length(item);
  return item;
}

function writeObject(value: object, walk: Walk, depth: number): string {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    return refuse(
      walk,
      depth,
      `an instance of ${className(prototype)}; only plain objects have a canonical text`,
    );
  }
  refuseSymbols(value, walk, depth);
  const keys = sortKeys(Object.keys(value));
  let text = '{';
  for (let index = 0; index < keys.length; index += 1) {
    const key = keys[index] as string;
    walk.path[depth] = key;
    if (key === '__proto__') return refuse(walk, depth + 1, 'a key named __proto__');
    if (index > 0) text += ',';
    text += writeKey(key) ?? refuse(walk, depth + 1, 'a string with a lone surrogate');
    text = join(
      text,
      write(readProperty(value, key, walk, depth + 1), walk, depth + 1),
      walk,
      depth,
    );
  }
  return `${text}}`;
}

/** Reads a property once, without running code: a getter could return something else next time. */
function readProperty(owner: object, key: string | number, walk: Walk, depth: number): unknown {
  const property = Object.getOwnPropertyDescriptor(owner, key);
  if (property?.enumerable !== true) return refuse(walk, depth, 'a hole');
  if (property.get !== undefined || property.set !== undefined)
    return refuse(walk, depth, 'an accessor property');
  return property.value;
}

/** Sorts in place by UTF-16 code units, with an insertion sort up to the usual width of a row. */
export function sortKeys(keys: string[]): string[] {
  if (keys.length > 24) return keys.sort();
  for (let end = 1; end < keys.length; end += 1) {
    const key = keys[end] as string;
    let at = end - 1;
    while (at >= 0 && (keys[at] as string) > key) {
      keys[at + 1] = keys[at] as string;
      at -= 1;
    }
    keys[at + 1] = key;
  }
  return keys;
}

function refuseSymbols(value: object, walk: Walk, depth: number): void {
  if (Object.getOwnPropertySymbols(value).length > 0) refuse(walk, depth, 'a symbol key');
}

function className(prototype: unknown): string {
  const maker: unknown = Object.getOwnPropertyDescriptor(prototype, 'constructor')?.value;
  return typeof maker === 'function' && maker.name !== '' ? maker.name : 'a class';
}

function refuse(walk: Walk, depth: number, what: string): never {
  throw new EffectMatchError(
    'ERR_EM_CANON_UNSUPPORTED',
    `no canonical text: ${renderPath(walk.path.slice(0, depth))} is ${what}`,
  );
}

function renderPath(path: readonly Step[]): string {
  let text = '$';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else text += /^[A-Za-z_]\w*$/.test(step) ? `.${step}` : `[${JSON.stringify(step)}]`;
  }
  return text;
}
