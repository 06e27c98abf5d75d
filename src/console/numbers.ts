import { type ApprovedEffect, type Cell, columnOf } from '../protocol/effect.ts';
import { readTag, type Value } from '../protocol/value.ts';

/** A cell's value as a number, precise enough for sorting; undefined if it is not a number. */
export function numberIn(cell: Cell | undefined): number | undefined {
  if (cell === undefined || !('is' in cell)) return undefined;
  return numberOf(cell.is);
}

function numberOf(value: Value): number | undefined {
  if (typeof value === 'number') return value;
  const text = typeof value === 'string' ? value : readTag(value)?.text;
  if (text === undefined || !/^-?\d+(?:\.\d+)?$/.test(text)) return undefined;
  return Number(text);
}

/** The size of a change: the largest amount that it writes, removes, or changes a value by. */
export function extentOf({ op, before = {}, after = {} }: ApprovedEffect): number {
  const row = op === 'delete' ? before : after;
  let extent = 0;
  for (const column of Object.keys(row)) {
    const written = numberIn(row[column]) ?? 0;
    const earlier = op === 'update' ? (numberIn(columnOf(before, column)) ?? 0) : 0;
    extent = Math.max(extent, Math.abs(written - earlier));
  }
  return extent;
}

/** The largest number that the changes write to each `relation.column`. */
export function largestWritten(effects: readonly ApprovedEffect[]): ReadonlyMap<string, number> {
  const largest = new Map<string, number>();
  for (const { op, target, key = {}, after = {} } of effects) {
    if (op === 'delete') continue;
    const written = op === 'insert' ? { ...key, ...after } : after;
    for (const [column, cell] of Object.entries(written)) {
      const place = `${target}.${column}`;
      const found = numberIn(cell);
      if (found !== undefined) largest.set(place, Math.max(largest.get(place) ?? found, found));
    }
  }
  return largest;
}
