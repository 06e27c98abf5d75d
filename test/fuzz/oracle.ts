import type { TableChanges } from '../../src/adapters/sqlite/changeset.ts';
import type { Value } from '../../src/protocol/value.ts';

/**
 * The canonical text of plain JSON, written a second time and without our canoniser, so that the
 * two can disagree. Throws for everything that is not plain JSON.
 */
export function plainText(value: unknown): string {
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'string' || (typeof value === 'number' && Number.isFinite(value)))
    return JSON.stringify(value);
  if (Array.isArray(value)) return `[${Array.from(value, plainText).join(',')}]`;
  if (typeof value !== 'object') throw new TypeError(`a ${typeof value} is not JSON`);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype)
    throw new TypeError('an instance of a class is not JSON');
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, inner]) => `${JSON.stringify(key)}:${plainText(inner)}`).join(',')}}`;
}

const OPS = { delete: 9, insert: 18, update: 23 } as const;

/**
 * Writes a decoded changeset again. The flag of each change is lost in decoding; the caller says
 * what it was.
 */
export function encodeChangeset(
  tables: readonly TableChanges[],
  flagAt: (offset: number) => number,
): Buffer {
  const bytes: number[] = [];
  const push = (part: Iterable<number>) => {
    for (const byte of part) bytes.push(byte);
  };
  for (const { table, keyPlaces, changes } of tables) {
    push([0x54, ...varint(keyPlaces.length), ...keyPlaces, ...Buffer.from(table), 0]);
    for (const { op, before, after } of changes) {
      push([OPS[op], flagAt(bytes.length + 1)]);
      for (const value of [...before, ...after]) push(encodeCell(value));
    }
  }
  return Buffer.from(bytes);
}

function varint(value: number): number[] {
  const rest = Math.floor(value / 128);
  return rest === 0 ? [value] : [...varint(rest).map((byte) => byte | 0x80), value % 128];
}

function encodeCell(value: Value | undefined): Iterable<number> {
  if (value === undefined) return [0];
  if (value === null) return [5];
  const eight = Buffer.alloc(9);
  if (typeof value === 'number') {
    eight.writeBigInt64BE(BigInt(value), 1);
    eight[0] = 1;
    return eight;
  }
  if (typeof value === 'string') return sized(3, Buffer.from(value));
  const [tag, text] = Object.entries(value)[0] as [string, string];
  switch (tag) {
    case '$int':
      eight.writeBigInt64BE(BigInt(text), 1);
      eight[0] = 1;
      return eight;
    case '$real':
      eight.writeDoubleBE(Number(text), 1);
      eight[0] = 2;
      return eight;
    default:
      return sized(tag === '$bytes' ? 4 : 3, Buffer.from(text, 'hex'));
  }
}

function sized(type: number, content: Buffer): Buffer {
  return Buffer.concat([Buffer.from([type, ...varint(content.length)]), content]);
}
