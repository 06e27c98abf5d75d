import { EffectMatchError } from '../errors.ts';

const MAX_DEPTH = 64;

/** Printable ASCII without quote and backslash: its JSON form is itself, and most names and many values are this. */
const PLAIN = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;

type Path = (string | number)[];

/**
 * The one text of a plain value (RFC 8785: keys by UTF-16 code units, ECMAScript numbers and strings). Two different
 * plain values never share a text, and whatever JSON cannot carry without loss is refused with its path, because
 * these texts are digested, sealed and used as keys of multisets. Accessors are never called.
 */
export function canonical(value: unknown): string {
  if (typeof value === 'string') return writeString(value, [], 0);
  return write(value, [], 0);
}

function write(value: unknown, path: Path, depth: number): string {
  switch (typeof value) {
    case 'string':
      return writeString(value, path, depth);
    case 'number':
      return writeNumber(value, path, depth);
    case 'boolean':
      return value ? 'true' : 'false';
    case 'object':
      if (value === null) return 'null';
      if (depth >= MAX_DEPTH) return refuse(path, depth, `nested deeper than ${MAX_DEPTH} levels, or a cycle`);
      return Array.isArray(value) ? writeArray(value, path, depth) : writeObject(value, path, depth);
    case 'bigint':
      return refuse(path, depth, 'a bigint; write { $int: text } for integers beyond the safe range');
    case 'undefined':
      return refuse(path, depth, 'undefined; leave the field out or use null');
    default:
      return refuse(path, depth, `a ${typeof value}`);
  }
}

function writeString(value: string, path: Path, depth: number): string {
  if (PLAIN.test(value)) return `"${value}"`;
  if (!value.isWellFormed()) return refuse(path, depth, 'a string with a lone surrogate');
  return JSON.stringify(value);
}

function writeNumber(value: number, path: Path, depth: number): string {
  if (!Number.isFinite(value)) return refuse(path, depth, String(value));
  if (value === 0 && Object.is(value, -0)) return refuse(path, depth, "-0; write { $real: '-0.0' }");
  return String(value);
}

function writeArray(value: readonly unknown[], path: Path, depth: number): string {
  if (Object.getPrototypeOf(value) !== Array.prototype) return refuse(path, depth, 'an array of a class of its own');
  // Holes and named properties both make these differ, or leave an index without a descriptor.
  const length = value.length;
  if (Object.keys(value).length !== length) return refuse(path, depth, 'a sparse array, or one with named properties');
  refuseSymbols(value, path, depth);
  let text = '[';
  for (let index = 0; index < length; index += 1) {
    path[depth] = index;
    if (index > 0) text += ',';
    text += write(readProperty(value, index, path, depth + 1), path, depth + 1);
  }
  return `${text}]`;
}

function writeObject(value: object, path: Path, depth: number): string {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    return refuse(path, depth, `an instance of ${className(prototype)}; only plain objects have a canonical text`);
  }
  refuseSymbols(value, path, depth);
  const keys = sortKeys(Object.keys(value));
  let text = '{';
  for (let index = 0; index < keys.length; index += 1) {
    const key = keys[index] as string;
    path[depth] = key;
    if (key === '__proto__') return refuse(path, depth + 1, 'a key named __proto__');
    if (index > 0) text += ',';
    text += `${writeString(key, path, depth + 1)}:`;
    text += write(readProperty(value, key, path, depth + 1), path, depth + 1);
  }
  return `${text}}`;
}

/** Reads a property once and without running code: a getter could answer differently the next time. */
function readProperty(owner: object, key: string | number, path: Path, depth: number): unknown {
  const property = Object.getOwnPropertyDescriptor(owner, key);
  if (property === undefined) return refuse(path, depth, 'a hole');
  if (property.get !== undefined || property.set !== undefined) return refuse(path, depth, 'an accessor property');
  return property.value;
}

/** Insertion sort up to the usual width of a row, in place; `<` on strings compares UTF-16 code units. */
function sortKeys(keys: string[]): string[] {
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

function refuseSymbols(value: object, path: Path, depth: number): void {
  if (Object.getOwnPropertySymbols(value).length > 0) refuse(path, depth, 'a symbol key');
}

function className(prototype: unknown): string {
  const maker: unknown = Object.getOwnPropertyDescriptor(prototype, 'constructor')?.value;
  return typeof maker === 'function' && maker.name !== '' ? maker.name : 'a class';
}

function refuse(path: Path, depth: number, what: string): never {
  throw new EffectMatchError(
    'ERR_EM_CANON_UNSUPPORTED',
    `no canonical text: ${renderPath(path.slice(0, depth))} is ${what}`,
  );
}

function renderPath(path: Path): string {
  let text = '$';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else text += /^[A-Za-z_]\w*$/.test(step) ? `.${step}` : `[${JSON.stringify(step)}]`;
  }
  return text;
}
