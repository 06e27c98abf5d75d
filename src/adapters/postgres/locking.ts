import type { StateRead, StateReading } from '../../protocol/effect.ts';
import { buildRead, decodeRead, keyedRelation, type Relations } from './reading.ts';

/** Reads that lock what they read, and how to understand their answers. */
export interface LockedReads {
  readonly queries: readonly string[];
  decode(images: readonly (string | null)[]): readonly StateReading[];
}

export const NO_READS: LockedReads = { queries: [], decode: () => [] };

/**
 * One query per declared row, for a trusted function: it takes a row share lock and returns the row
 * as it locked it.
 */
export function lockReads(relations: Relations, reads: readonly StateRead[]): LockedReads {
  const known = reads.map((read) => ({
    read,
    relation: keyedRelation(relations, read.target, 'read'),
  }));
  return {
    queries: known.map(({ read, relation }) => buildRead(relation, read.key, 'share')),
    decode: (images) =>
      known.map(({ read, relation }, index) => decodeRead(relation, read, images[index] ?? null)),
  };
}
