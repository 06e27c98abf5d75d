import { isUtf8 } from 'node:buffer';
import { errorsOf } from '../../errors.ts';
import {
  encodeBytes,
  encodeInteger,
  encodeReal,
  readTag,
  type Value,
} from '../../protocol/value.ts';
import { quoteName, quoteText } from './sql.ts';

/** How values of a column are written and read. */
export type ColumnKind =
  | 'integer'
  | 'bit'
  | 'decimal'
  | 'real'
  | 'text'
  | 'bytes'
  | 'datetime'
  | 'timestamp'
  | 'name';

/** Kinds by type name in the catalogue. Columns of other types cannot be registered. */
const KINDS: Readonly<Record<string, ColumnKind>> = {
  tinyint: 'integer',
  smallint: 'integer',
  mediumint: 'integer',
  int: 'integer',
  bigint: 'integer',
  year: 'integer',
  bit: 'bit',
  decimal: 'decimal',
  float: 'real',
  double: 'real',
  char: 'text',
  varchar: 'text',
  enum: 'text',
  set: 'text',
  tinytext: 'text',
  text: 'text',
  mediumtext: 'text',
  longtext: 'text',
  binary: 'bytes',
  varbinary: 'bytes',
  tinyblob: 'bytes',
  blob: 'bytes',
  mediumblob: 'bytes',
  longblob: 'bytes',
  date: 'name',
  time: 'name',
  datetime: 'datetime',
  timestamp: 'timestamp',
  uuid: 'name',
  inet4: 'name',
  inet6: 'name',
};

/** Character sets whose text converts to UTF-8 and back without loss. */
const CHARACTER_SETS = ['utf8mb4', 'utf8mb3', 'utf8', 'ascii', 'latin1'];

/** How values of a type are written and read, or why they cannot be. */
export function kindOf(type: string, characterSet: string | null): ColumnKind | { why: string } {
  const kind = Object.hasOwn(KINDS, type) ? KINDS[type] : undefined;
  if (kind === undefined) return { why: `its type ${type} has no exact form here` };
  if (kind === 'text' && !CHARACTER_SETS.some((known) => known === characterSet))
    return { why: `its character set ${characterSet} may lose characters; convert it to utf8mb4` };
  return kind;
}

/**
 * The bytes of a value in a form that does not depend on session settings. FLOAT would print only
 * six digits, so it is printed as DOUBLE. A TIMESTAMP is printed as the instant that it stores; of a
 * zero date, a trigger would print NULL.
 */
function exactForm(kind: ColumnKind, column: string): string {
  switch (kind) {
    case 'bit':
      return `cast(${column} + 0 as char)`;
    case 'real':
      return `cast(cast(${column} as double) as char)`;
    case 'text':
      return `cast(convert(${column} using utf8mb4) as binary)`;
    case 'bytes':
      return column;
    case 'timestamp':
      return `if(${column} = 0, '0', cast(unix_timestamp(${column}) as char))`;
    default:
      return `cast(${column} as char)`;
  }
}

interface ImageColumn {
  readonly name: string;
  readonly kind: ColumnKind;
}

/**
 * SQL that writes a row as one image: the length and bytes of each column, or `-` for NULL. The
 * function concat() is NULL for a result above max_allowed_packet. In a recorder that is an error;
 * in a query (`r`) the whole image becomes NULL, so that a value is not taken for NULL.
 */
export function imageOf(columns: readonly ImageColumn[], row: 'old' | 'new' | 'r'): string {
  const parts = columns.map(({ name, kind }) => {
    const column = `${row}.${quoteName(name)}`;
    const form = exactForm(kind, column);
    const cell = `concat(octet_length(${form}), ':', ${form})`;
    return row === 'r' ? `if(${column} is null, '-', ${cell})` : `ifnull(${cell}, '-')`;
  });
  return `concat(${parts.join(', ')})`;
}

/** Reads an image written by {@link imageOf}. */
export function readImage(
  columns: readonly ImageColumn[],
  image: Buffer,
): { readonly [name: string]: Value } {
  const row: { [name: string]: Value } = {};
  let at = 0;
  for (const { name, kind } of columns) {
    if (image[at] === MINUS) {
      row[name] = null;
      at += 1;
      continue;
    }
    const colon = image.indexOf(':', at);
    const length = Number(image.toString('latin1', at, colon));
    const end = colon + 1 + length;
    if (colon < 0) throw unreadable(name);
    row[name] = decode(kind, image.subarray(colon + 1, end), name);
    at = end;
  }
  // An invalid or too large length does not end exactly at the end of the image.
  if (at !== image.length) throw unreadable('the end');
  return row;
}

const MINUS = '-'.charCodeAt(0);

function decode(kind: ColumnKind, bytes: Buffer, name: string): Value {
  const text = bytes.toString('utf8');
  switch (kind) {
    case 'integer':
    case 'bit':
      if (!/^-?\d+$/.test(text)) throw unreadable(name);
      return encodeInteger(BigInt(text));
    case 'decimal':
      return { $dec: trimDecimal(text) };
    case 'real':
      return encodeReal(Number(text));
    case 'text':
      return isUtf8(bytes) ? text : { $text: bytes.toString('hex') };
    case 'bytes':
      return encodeBytes(bytes);
    case 'datetime':
      return text.replace(' ', 'T');
    case 'timestamp':
      return printInstant(text);
    default:
      return text;
  }
}

/** Scale is the only difference between stored representations that is not compared. */
function trimDecimal(text: string): string {
  const unpadded = text.replace(/^(-?)0+(?=\d)/, '$1');
  return unpadded.includes('.') ? unpadded.replace(/\.?0+$/, '') : unpadded;
}

/** Prints seconds since the epoch, with the stored fraction; 0 is the zero date. */
function printInstant(seconds: string): string {
  const [whole = '', fraction = ''] = seconds.split('.');
  if (Number(whole) === 0 && !/[1-9]/.test(fraction)) return '0000-00-00T00:00:00+00:00';
  const instant = new Date(Number(whole) * 1000).toISOString().slice(0, 19);
  return `${instant}${fraction === '' ? '' : `.${fraction}`}+00:00`;
}

const unreadable = errorsOf('ERR_EM_INVARIANT', 'the image of a row cannot be read at ');

/** A value as SQL text for a column of this kind; undefined if that would be a guess. */
export function literalOf(kind: ColumnKind, value: Value): string | undefined {
  if (value === null) return 'null';
  if (typeof value === 'boolean') return kind === 'text' ? undefined : String(Number(value));
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') return quoteText(plainTime(kind, value));
  const tagged = readTag(value);
  switch (tagged?.tag) {
    case '$int':
    case '$dec':
      return tagged.text;
    case '$real':
      return /Infinity/.test(tagged.text) ? undefined : `${Number(tagged.text).toExponential()}`;
    case '$bytes':
      return kind === 'bytes' || kind === 'text' ? `x'${tagged.text}'` : undefined;
    default:
      return undefined;
  }
}

/** MariaDB does not accept a zone here. Sessions that read and write values are in UTC. */
function plainTime(kind: ColumnKind, text: string): string {
  if (kind !== 'timestamp' && kind !== 'datetime') return text;
  return text.replace(/(?<=:\d\d(?:\.\d+)?)(?:Z|\+00:00)$/, '');
}
