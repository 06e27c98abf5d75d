import { isUtf8 } from 'node:buffer';
import type { SQLInputValue } from 'node:sqlite';
import { EffectMatchError } from '../../errors.ts';
import { encodeBytes, encodeInteger, readTag, type Value } from '../../protocol/value.ts';

/**
 * Encodes a REAL. The text always shows the type (`1.0`, `1e+21`, `-0.0`), so that a reader of an
 * approval can distinguish it from the INTEGER 1, which SQLite stores as a different value.
 */
export function encodeReal(real: number): Value {
  if (Object.is(real, -0)) return { $real: '-0.0' };
  const text = String(real);
  return { $real: /[.eI]/.test(text) ? text : `${text}.0` };
}

/**
 * Encodes TEXT from its bytes. Invalid UTF-8 keeps its bytes, because decoding would make different
 * texts equal.
 */
export function encodeText(bytes: Uint8Array): Value {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return isUtf8(view) ? view.toString('utf8') : { $text: view.toString('hex') };
}

/**
 * Decodes a cell that was selected with {@link selectExact}: its storage class, and its content
 * with TEXT as bytes. Integers must be bigints.
 */
export function decodeCell(storage: unknown, content: unknown): Value {
  if (storage === 'null') return null;
  if (storage === 'integer' && typeof content === 'bigint') return encodeInteger(content);
  if (storage === 'real' && typeof content === 'number') return encodeReal(content);
  if (content instanceof Uint8Array)
    return storage === 'text' ? encodeText(content) : encodeBytes(content);
  throw new EffectMatchError(
    'ERR_EM_INVARIANT',
    `a cell of storage class ${String(storage)} cannot be read`,
  );
}

/**
 * Selects two result columns that {@link decodeCell} reads without loss. `column` is quoted SQL.
 */
export function selectExact(column: string): string {
  return `typeof(${column}), case typeof(${column}) when 'text' then cast(${column} as blob) else ${column} end`;
}

/**
 * The parameter for a value. `isText` means that it has the bytes of a TEXT that cannot be bound as
 * a string.
 */
export interface BoundValue {
  readonly parameter: SQLInputValue;
  readonly isText: boolean;
}

/**
 * The SQLite value of a manifest value, before a column's affinity applies. An integer is an
 * INTEGER and any other number a REAL. Lists, objects, decimals and digests have no SQLite value
 * and return undefined.
 */
export function bindValue(value: Value): BoundValue | undefined {
  if (value === null || typeof value === 'string') return { parameter: value, isText: false };
  if (typeof value === 'boolean') return { parameter: value ? 1n : 0n, isText: false };
  if (typeof value === 'number') return { parameter: bindNumber(value), isText: false };
  const tagged = readTag(value);
  switch (tagged?.tag) {
    case '$int':
      return isInt64(BigInt(tagged.text))
        ? { parameter: BigInt(tagged.text), isText: false }
        : undefined;
    case '$real':
      return { parameter: Number(tagged.text), isText: false };
    case '$bytes':
      return { parameter: Buffer.from(tagged.text, 'hex'), isText: false };
    case '$text':
      return { parameter: Buffer.from(tagged.text, 'hex'), isText: true };
    default:
      return undefined;
  }
}

/**
 * Binds a JavaScript number as SQL authors expect: 1 is an INTEGER. `node:sqlite` would bind every
 * number as a REAL, and a column without affinity would store 1.0.
 */
export function bindNumber(value: number): number | bigint {
  return Number.isSafeInteger(value) && !Object.is(value, -0) ? BigInt(value) : value;
}

/** Whether SQLite can store this integer. */
export function isInt64(value: bigint): boolean {
  return BigInt.asIntN(64, value) === value;
}
