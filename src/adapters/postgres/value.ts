import { EffectMatchError } from '../../errors.ts';
import { canonical } from '../../protocol/canon.ts';
import {
  encodeInteger,
  encodeReal,
  isObject,
  type Row,
  readTag,
  type Value,
} from '../../protocol/value.ts';
import type { Image } from './image.ts';
import type { ColumnType } from './relation.ts';

/** Decodes the text that an output function wrote under the pinned formats. */
type Decode = (text: string) => Value;

const READERS: Readonly<Record<string, Decode>> = {
  bool: readBoolean,
  int2: readInteger,
  int4: readInteger,
  int8: readInteger,
  oid: readInteger,
  numeric: readDecimal,
  float4: readFloat,
  float8: readFloat,
  bytea: readBytes,
  timestamp: (text) => (TIMESTAMP.test(text) ? text.replace(' ', 'T') : text),
  timestamptz: (text) => (TIMESTAMPTZ.test(text) ? `${text.replace(' ', 'T')}:00` : text),
};

/**
 * How a column's text becomes a value. Types without a special form (intervals, ranges, arrays,
 * JSON, application types) keep the text that the database prints, because it distinguishes stored
 * representations that the engine considers equal. The scale of a plain `numeric` is dropped on
 * purpose. The grouping of equal operators in a `tsquery` is lost, because PostgreSQL does not
 * print it.
 */
export function decoderOf(type: ColumnType): Decode {
  const read =
    type.baseSchema === 'pg_catalog' && Object.hasOwn(READERS, type.base)
      ? READERS[type.base]
      : undefined;
  return read ?? readText;
}

/** Converts images with these columns, in this order, to rows. */
export function rowReader(
  columns: readonly { readonly name: string; readonly type: ColumnType }[],
): (image: Image) => Row {
  const decoders = columns.map(({ name, type }) => ({ name, decode: decoderOf(type) }));
  return (image) => {
    const row: { [column: string]: Value } = {};
    let index = 0;
    for (const { name, decode } of decoders) {
      const text = image[index] ?? null;
      row[name] = text === null ? null : decode(text);
      index += 1;
    }
    return row;
  };
}

function readText(text: string): Value {
  return text;
}

function readBoolean(text: string): Value {
  if (text !== 't' && text !== 'f') throw unreadable('boolean', text);
  return text === 't';
}

const INTEGER = /^-?(?:0|[1-9]\d*)$/;

function readInteger(text: string): Value {
  if (!INTEGER.test(text) || text === '-0') throw unreadable('integer', text);
  const number = Number(text);
  return Number.isSafeInteger(number) ? number : encodeInteger(BigInt(text));
}

function readDecimal(text: string): Value {
  if (text === 'NaN' || text === 'Infinity' || text === '-Infinity') return text;
  if (!/^-?\d+(?:\.\d+)?$/.test(text)) throw unreadable('numeric', text);
  return { $dec: text.includes('.') ? text.replace(/\.?0+$/, '') : text };
}

function readFloat(text: string): Value {
  if (text === 'NaN') return text;
  if (!/^-?(?:\d+(?:\.\d+)?(?:e[+-]\d+)?|Infinity)$/.test(text))
    throw unreadable('floating-point number', text);
  return encodeReal(Number(text));
}

function readBytes(text: string): Value {
  if (!/^\\x(?:[0-9a-f]{2})*$/.test(text)) throw unreadable('bytea', text);
  return { $bytes: text.slice(2) };
}

/** Years AD with four digits. Other years stay as printed: nothing compares them with a clock. */
const TIMESTAMP = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?$/;
/**
 * The zone is written `+00:00` instead of `Z`, because `+` sorts before digits and the decimal
 * point. The texts then sort like the instants, which a `between` constraint relies on.
 */
const TIMESTAMPTZ = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?\+00$/;

function unreadable(what: string, text: string): EffectMatchError<'ERR_EM_INVARIANT'> {
  const shown = JSON.stringify(text.slice(0, 40));
  return new EffectMatchError(
    'ERR_EM_INVARIANT',
    `${shown} is not how PostgreSQL prints a ${what}; are the session's formats pinned?`,
  );
}

/** Why a value cannot be stored in a column, and what to write instead. */
interface Unstorable {
  readonly kind: 'unstorable';
  readonly why: string;
}

/**
 * The text from which the column's input function reads a manifest value; null for NULL. For values
 * that came from the column it is the exact inverse of {@link decoderOf}. A value that would need a
 * guess is `unstorable`.
 */
export function encodeValue(type: ColumnType, value: Value): string | null | Unstorable {
  if (value === null) return null;
  if (typeof value === 'boolean') return String(value);
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') return encodeText(type, value);
  const tagged = readTag(value);
  if (tagged !== undefined) {
    switch (tagged.tag) {
      case '$int':
      case '$dec':
      case '$real':
        return tagged.text;
      case '$bytes':
        return isBuiltIn(type, 'bytea')
          ? `\\x${tagged.text}`
          : unstorable('bytes belong in a bytea column; write text');
      default:
        return unstorable(`a ${tagged.tag} value cannot be stored here`);
    }
  }
  if (isBuiltIn(type, 'json') || isBuiltIn(type, 'jsonb')) return encodeJson(value);
  if (isObject(value))
    return unstorable('an object belongs in a json or jsonb column; write the text of this type');
  return isArrayType(type)
    ? encodeArray(type, value as readonly Value[])
    : unstorable('a list belongs in an array, json or jsonb column');
}

function isBuiltIn(type: ColumnType, base: string): boolean {
  return type.baseSchema === 'pg_catalog' && type.base === base;
}

/**
 * Types whose input function reads words such as `now` and `today` as the current time, alone, in
 * arrays and in ranges.
 */
const TIMES = /^_?(?:date|time|timetz|timestamp|timestamptz|(?:date|ts|tstz)(?:multi)?range)$/;

function encodeText(type: ColumnType, text: string): string | Unstorable {
  if (text.includes('\0')) return unstorable('PostgreSQL cannot store a NUL character in text');
  if (!text.isWellFormed()) return unstorable('the text has a lone surrogate');
  const clock =
    type.baseSchema === 'pg_catalog' &&
    TIMES.test(type.base) &&
    /now|today|tomorrow|yesterday/i.test(text);
  return clock
    ? unstorable('the time of approval would be meant; write now() for the time of execution')
    : text;
}

/**
 * JSON text of application data. Tagged numbers become numbers, and doubled dollar signs single
 * ones.
 */
function encodeJson(value: Value): string | Unstorable {
  const tagged = readTag(value);
  if (tagged !== undefined) {
    const isNumber =
      ['$int', '$dec', '$real'].includes(tagged.tag) && !tagged.text.endsWith('Infinity');
    return isNumber ? tagged.text : unstorable(`JSON has no form for a ${tagged.tag} value`);
  }
  if (typeof value !== 'object' || value === null) return canonical(value);
  const entries: (readonly [string, Value])[] = Object.entries(value);
  const parts = entries.map(([key, inner]) => {
    const text = encodeJson(inner);
    if (typeof text !== 'string' || Array.isArray(value)) return text;
    return `${JSON.stringify(key.replace(/^\$\$/, '$'))}:${text}`;
  });
  const fault = parts.find((part) => typeof part !== 'string');
  if (fault !== undefined) return fault;
  return Array.isArray(value) ? `[${parts.join(',')}]` : `{${parts.join(',')}}`;
}

/** `box` is the only built-in type whose array elements are not separated by commas. */
function isArrayType(type: ColumnType): boolean {
  return type.kind === 'b' && type.base.startsWith('_') && type.base !== '_box';
}

function encodeArray(type: ColumnType, items: readonly Value[]): string | Unstorable {
  const element = { ...type, base: type.base.slice(1) };
  const parts = items.map((item) => {
    if (item === null) return 'NULL';
    if (Array.isArray(item)) return encodeArray(type, item);
    const text = encodeValue(element, item);
    return typeof text === 'string' ? `"${text.replace(/["\\]/g, '\\$&')}"` : text;
  });
  const fault = parts.find((part) => typeof part === 'object' && part !== null);
  return typeof fault === 'object' && fault !== null ? fault : `{${parts.join(',')}}`;
}

function unstorable(why: string): Unstorable {
  return { kind: 'unstorable', why };
}
