import { withinAssigned } from './constraint.ts';
import type { Effect } from './effect.ts';
import type { Assigned } from './observation.ts';
import type { Value } from './value.ts';

/**
 * What this execution itself took from a sequence, rolled-back parts of it included. A sequence
 * hands out numbers once and takes none back, so a number that no row has is a lasting change.
 */
export interface Drawn {
  /** The registered target that stands for the sequence. */
  readonly sequence: string;
  /** How often the execution turned to the sequence, and how many numbers that takes each time. */
  readonly times: number;
  readonly each: number;
  /**
   * How many numbers the sequence went on meanwhile, for this execution and for others; below zero
   * where it went back.
   */
  readonly moved: bigint;
  /** The columns that its numbers are for. */
  readonly columns: readonly { readonly target: string; readonly column: string }[];
}

/** The column in which an effect on a sequence says how many numbers no row has. */
export const UNUSED = 'unused';

/**
 * Others can only move a sequence on: one that went on by less than was drawn from it was set back,
 * or started over.
 */
export function findSetBack(drawn: readonly Drawn[]): string[] {
  return drawn
    .filter(
      ({ times, each, moved }) => times < 0 || (times > 0 && BigInt(times) * BigInt(each) > moved),
    )
    .map(
      ({ sequence, times, each, moved }) =>
        `Sequence ${JSON.stringify(sequence)} was used for ${times * each} numbers and went on by ${moved}: ` +
        'it was set, started over, reached its end or was read as a table, so its numbers may repeat.',
    );
}

/**
 * Numbers that were drawn and that E does not account for, as effects on their sequences. An
 * inserted row accounts for the number it has, an updated row for one, because an upsert draws a
 * number before it finds the row.
 */
export function findUnused(
  drawn: readonly Drawn[],
  assigned: readonly Assigned[],
  effects: readonly Effect[],
): readonly Effect[] {
  return drawn.flatMap(({ sequence, times, each, columns }): readonly Effect[] => {
    const places = columns.map(({ target, column }) => {
      const range = assigned.find(
        (one) => one.target === target && one.column === column && 'above' in one,
      );
      return { target, column, range };
    });
    let accounted = 0;
    for (const effect of effects) {
      for (const place of places)
        if (place.target === effect.target && accountsFor(effect, place)) accounted += 1;
    }
    const unused = (times - Math.ceil(accounted / each)) * each;
    if (unused <= 0) return [];
    return [
      { op: 'update', target: sequence, before: { [UNUSED]: 0 }, after: { [UNUSED]: unused } },
    ];
  });
}

/**
 * Where the profile sees no values, or no evidence says which numbers are the sequence's, a row is
 * a row.
 */
function accountsFor(
  { op, key, after }: Effect,
  { column, range }: { readonly column: string; readonly range: Assigned | undefined },
): boolean {
  if (op !== 'insert') return op === 'update';
  const row = [key, after].find((side) => side !== undefined && Object.hasOwn(side, column));
  return range === undefined || row === undefined || withinAssigned(range, row[column] as Value);
}
