import { nameTarget } from '../../../src/postgres/identifier.ts';
import { insert, remove, update } from '../../../src/protocol/draft.ts';
import type { ApprovedEffect } from '../../../src/protocol/effect.ts';
import { rowsOf, type Tables, type TextRow } from '../../approvals/rows.ts';

/** Key columns by relation; empty for a relation whose rows compare as a multiset. */
export type Keys = { readonly [relation: string]: readonly string[] };

/** A row whose key is among its values. */
type KeyedRow = Readonly<Record<string, number | string | null>>;

/** What must change so that the expected rows come out of the initial ones. */
export function approvedRowEffects(
  keys: Keys,
  initial: Tables,
  expected: Tables,
): readonly ApprovedEffect[] {
  return Object.entries(keys).flatMap(([relation, key]) => {
    const target = nameTarget({ schema: 'public', name: relation });
    const from = rowsOf(initial, relation);
    const to = rowsOf(expected, relation);
    return key.length === 0 ? newRows(target, from, to) : keyedEffects(target, key, from, to);
  });
}

/** Relations without a key are filled by the tasks and start empty. */
function newRows(
  target: string,
  from: readonly TextRow[],
  to: readonly TextRow[],
): readonly ApprovedEffect[] {
  if (from.length > 0) throw new Error(`${target} was expected to be empty at first`);
  return to.map((row) => insert(target, row));
}

/** The same for one table whose rows have a key. */
export function keyedEffects(
  target: string,
  key: readonly string[],
  from: readonly KeyedRow[],
  to: readonly KeyedRow[],
): readonly ApprovedEffect[] {
  const nameOf = (row: KeyedRow) => JSON.stringify(key.map((column) => row[column]));
  const keyOf = (row: KeyedRow) =>
    Object.fromEntries(key.map((column) => [column, row[column] ?? null]));
  const old = new Map(from.map((row) => [nameOf(row), row]));
  const kept = new Set(to.map(nameOf));
  const removed = from
    .filter((row) => !kept.has(nameOf(row)))
    .map((row) => remove(target, keyOf(row), withoutKey(row)));
  const others = to.flatMap((row) => {
    const before = old.get(nameOf(row));
    if (before === undefined) return [insert(target, row)];
    const changed = Object.keys(row).filter((column) => row[column] !== before[column]);
    if (changed.length === 0) return [];
    const sides = changed.map(
      (column) => [column, [before[column] ?? null, row[column] ?? null]] as const,
    );
    return [update(target, keyOf(row), Object.fromEntries(sides))];
  });
  return [...removed, ...others];

  function withoutKey(row: KeyedRow): KeyedRow {
    return Object.fromEntries(Object.entries(row).filter(([column]) => !key.includes(column)));
  }
}
