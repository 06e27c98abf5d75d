import { canonical } from '../../protocol/canon.ts';
import type { Row } from '../../protocol/value.ts';
import type { TracedRelation } from './observation.ts';
import { readImage } from './value.ts';

/** A row as a recorder or a SELECT writes it. Its bytes are compared before its values are. */
export interface RowImage {
  readonly bytes: Buffer;
  readonly row: Row;
  /** The key as the image writes it, with the name of the relation. */
  readonly id: string;
}

/** Reads an image completely. Throws if it is unreadable. */
export function openImage(relation: TracedRelation, bytes: Buffer): RowImage {
  return { bytes, row: readImage(relation.columns, bytes), id: idOf(relation, bytes) };
}

/** Whether both are the same row, or both are no row. */
export function isSameImage(one: RowImage | null, other: RowImage | null): boolean {
  if (one === null || other === null) return one === other;
  return one.bytes.equals(other.bytes) || canonical(one.row) === canonical(other.row);
}

const [MINUS, COLON] = [...Buffer.from('-:')] as [number, number];

/**
 * The key columns of an image, each with its length, so that different keys have different ids. An
 * unreadable image has some other id.
 */
export function idOf({ target, columns, key }: TracedRelation, image: Buffer): string {
  let id = `${target}\n`;
  let at = 0;
  for (const { name } of columns) {
    const from = at;
    if (image[at] === MINUS) at += 1;
    else {
      const colon = image.indexOf(COLON, at);
      at = colon + 1 + Number(image.toString('latin1', at, colon));
    }
    if (key.includes(name)) id += image.toString('latin1', from, at);
  }
  return id;
}
