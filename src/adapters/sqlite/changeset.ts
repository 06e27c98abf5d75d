import { isUtf8 } from 'node:buffer';
import { EffectMatchError } from '../../errors.ts';
import type { Op } from '../../protocol/effect.ts';
import { encodeBytes, encodeInteger, type Value } from '../../protocol/value.ts';
import { encodeReal, encodeText } from './value.ts';

/** The changes of one table, by column position. */
export interface TableChanges {
  readonly table: string;
  /** For each column, its position in the primary key from 1, or 0 if it is not part of the key. */
  readonly keyPlaces: readonly number[];
  readonly changes: readonly SessionChange[];
}

/** One changed row. Columns that the changeset does not mention are undefined. */
export interface SessionChange {
  readonly op: Op;
  readonly before: readonly (Value | undefined)[];
  readonly after: readonly (Value | undefined)[];
}

const TABLE = 0x54;
const OPS: { readonly [byte: number]: Op } = { 9: 'delete', 18: 'insert', 23: 'update' };
const MAX_COLUMNS = 32_767;

/**
 * Decodes a changeset of SQLite's session extension. Throws `ERR_EM_CHANGESET_INVALID` for anything
 * else, such as a patchset, truncated or extra bytes, or a wrong length. A guess here would be a
 * guess about what became durable.
 */
export function decodeChangeset(bytes: Uint8Array): readonly TableChanges[] {
  const reader = new Reader(bytes);
  const tables: TableChanges[] = [];
  while (reader.peek() !== undefined) tables.push(readTable(reader));
  return tables;
}

function readTable(reader: Reader): TableChanges {
  if (reader.byte() !== TABLE) reader.refuse('a table header was expected');
  const columns = reader.varint();
  if (columns === 0 || columns > MAX_COLUMNS) reader.refuse(`a table with ${columns} columns`);
  const keyPlaces: number[] = [];
  for (let column = 0; column < columns; column += 1) keyPlaces.push(reader.byte());
  checkKeyPlaces(reader, keyPlaces);
  const table = reader.name();
  const changes: SessionChange[] = [];
  for (let next = reader.peek(); next !== undefined && next !== TABLE; next = reader.peek())
    changes.push(readChange(reader, keyPlaces));
  return { table, keyPlaces, changes };
}

/** The positions of the key columns must be 1, 2, and so on, each once. */
function checkKeyPlaces(reader: Reader, keyPlaces: readonly number[]): void {
  const size = keyPlaces.reduce((count, place) => (place > 0 ? count + 1 : count), 0);
  for (let place = 1; place <= size; place += 1) {
    if (!keyPlaces.includes(place)) reader.refuse('the key flags are not a primary key');
  }
  if (size === 0) reader.refuse('the key flags are not a primary key');
}

function readChange(reader: Reader, keyPlaces: readonly number[]): SessionChange {
  const op = OPS[reader.byte()];
  if (op === undefined) return reader.refuse('an unknown operation');
  if (reader.byte() > 1) reader.refuse('an unknown flag');
  const before = op === 'insert' ? NO_IMAGE : reader.values(keyPlaces.length);
  const after = op === 'delete' ? NO_IMAGE : reader.values(keyPlaces.length);
  if (op === 'update') checkUpdate(reader, keyPlaces, { before, after });
  else if (before.includes(undefined) || after.includes(undefined))
    reader.refuse(`a column is missing from an ${op}`);
  return { op, before, after };
}

const NO_IMAGE: readonly (Value | undefined)[] = [];

/** An update has its key. Every other column has both images or neither. */
function checkUpdate(
  reader: Reader,
  keyPlaces: readonly number[],
  images: {
    readonly before: readonly (Value | undefined)[];
    readonly after: readonly (Value | undefined)[];
  },
): void {
  for (let column = 0; column < keyPlaces.length; column += 1) {
    const place = keyPlaces[column];
    const before = images.before[column];
    const after = images.after[column];
    if (place !== 0 && before === undefined) reader.refuse('an update without its key');
    if (place === 0 && (before === undefined) !== (after === undefined))
      reader.refuse('an update with half a column');
  }
}

/** A cursor that cannot move past its bytes. */
class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  refuse(what: string): never {
    throw new EffectMatchError(
      'ERR_EM_CHANGESET_INVALID',
      `changeset, before byte ${this.#at}: ${what}`,
    );
  }

  /** The next byte, which stays there; undefined at the end. */
  peek(): number | undefined {
    return this.#bytes[this.#at];
  }

  byte(): number {
    const byte = this.#bytes[this.#at];
    if (byte === undefined) return this.refuse('the end came too early');
    this.#at += 1;
    return byte;
  }

  take(length: number): Buffer {
    const from = this.#skip(length);
    return this.#bytes.subarray(from, this.#at);
  }

  /** Skips bytes that must exist, and returns where they start. */
  #skip(length: number): number {
    const from = this.#at;
    if (length > this.#bytes.length - from)
      this.refuse(`${length} bytes were announced and are not there`);
    this.#at = from + length;
    return from;
  }

  /**
   * Reads seven bits per byte, highest first. SQLite uses the shortest form and at most 31 bits
   * here.
   */
  varint(): number {
    let value = 0;
    for (let length = 1; length <= 5; length += 1) {
      const byte = this.byte();
      if (length === 1 && byte === 0x80) this.refuse('a number with leading zeros');
      value = value * 128 + (byte & 0x7f);
      if (byte < 0x80) return value <= 0x7fffffff ? value : this.refuse('a number beyond 31 bits');
    }
    return this.refuse('a number without end');
  }

  name(): string {
    const end = this.#bytes.indexOf(0, this.#at);
    if (end <= this.#at) return this.refuse('a table name without text or end');
    const bytes = this.take(end - this.#at);
    this.#at += 1;
    return isUtf8(bytes) ? bytes.toString('utf8') : this.refuse('a table name that is not UTF-8');
  }

  values(count: number): readonly (Value | undefined)[] {
    const values: (Value | undefined)[] = [];
    for (let index = 0; index < count; index += 1) values.push(this.value());
    return values;
  }

  value(): Value | undefined {
    const type = this.byte();
    switch (type) {
      case 0:
        return undefined;
      case 1: {
        // Most integers are exact as a number and do not need a bigint.
        const from = this.#skip(8);
        const number = this.#bytes.readInt32BE(from) * 2 ** 32 + this.#bytes.readUInt32BE(from + 4);
        if (Number.isSafeInteger(number)) return number;
        return encodeInteger(this.#bytes.readBigInt64BE(from));
      }
      case 2: {
        const real = this.#bytes.readDoubleBE(this.#skip(8));
        return Number.isNaN(real) ? this.refuse('a REAL that is not a number') : encodeReal(real);
      }
      case 3:
        return encodeText(this.take(this.varint()));
      case 4:
        return encodeBytes(this.take(this.varint()));
      case 5:
        return null;
      default:
        return this.refuse(`an unknown storage class ${type}`);
    }
  }
}
