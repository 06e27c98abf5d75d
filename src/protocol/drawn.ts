import { withinAssigned } from './constraint.ts';
import type { Effect } from './effect.ts';
import type { Assigned } from './observation.ts';
import type { Value } from './value.ts';

/**
 * What this execution drew from a sequence, including in parts that were rolled back. A sequence
 * never takes a number back, so a number that no row has is a lasting change.
 */
export interface Drawn {
  /** The registered target that represents the sequence. */
  readonly sequence: string;
  /** How often the execution called the sequence, and how many numbers each call takes. */
  readonly times: number;
  readonly each: number;
  /**
   * How far the sequence advanced meanwhile, for this execution and for others. Negative if it went
   * back.
   */
  readonly moved: bigint;
  /** The columns that get its numbers. */
  readonly columns: readonly { readonly target: string; readonly column: string }[];
}

/** In an effect on a sequence, the column that counts the numbers drawn but not used by any row. */
export const UNUSED = 'unused';

/**
 * Others can only advance a sequence. If it advanced by less than was drawn from it, it was set
 * back or restarted.
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
 * Drawn numbers that E does not account for, as effects on their sequences. An inserted row
 * accounts for its own number. An updated row accounts for one, because an upsert draws a number
 * before it finds the row.
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
 * If the profile sees no values, or no evidence shows which numbers came from the sequence, every
 * inserted row counts.
 */
function accountsFor(
  { op, key, after }: Effect,
  { column, range }: { readonly column: string; readonly range: Assigned | undefined },
): boolean {
  if (op !== 'insert') return op === 'update';
  const row = [key, after].find((side) => side !== undefined && Object.hasOwn(side, column));
  return range === undefined || row === undefined || withinAssigned(range, row[column] as Value);
}
