import type { Assigned } from '../../contract/adapter.ts';
import type { ChangeRecord } from '../../protocol/effect.ts';
import type { Row, Value } from '../../protocol/value.ts';
import { type CheckedCall, chosenBy } from './action.ts';
import type { DocumentLayout } from './layout.ts';
import type { DocumentView } from './view.ts';

/** Values of one column that tools assigned. */
export type FreshValues = Extract<Assigned, { readonly fresh: readonly Value[] }>;

/**
 * Finds values that are new in their field of their collection. A new value that the agent wrote in
 * its calls does not count, unless it is a counter's next number, because small numbers also occur
 * as arguments. The earlier state is searched only if a changed record may have a new value.
 */
export function assignedValues(
  { relations }: DocumentLayout,
  calls: readonly CheckedCall[],
  before: readonly DocumentView[],
  changes: readonly ChangeRecord[],
): readonly FreshValues[] {
  let isChosen: ((text: string) => boolean) | undefined;
  const assigned: FreshValues[] = [];
  for (const { target, columns } of relations) {
    for (const { name: column, generated } of columns) {
      const written = generated ? writtenValues(changes, target, column) : [];
      if (written.length === 0) continue;
      const used = columnValues(before, target, column);
      const added = written.filter((value) => !used.has(value));
      if (added.length === 0) continue;
      isChosen ??= chosenBy(calls);
      const wasChosen = isChosen;
      const isNext = counterAfter(used, added.length);
      const fresh = added.filter((value) => isNext(value) || !wasChosen(String(value)));
      if (fresh.length > 0) assigned.push({ target, column, fresh });
    }
  }
  return assigned;
}

/** The strings and numbers that the changes wrote. Tools do not generate other kinds of value. */
function writtenValues(
  changes: readonly ChangeRecord[],
  target: string,
  column: string,
): readonly (string | number)[] {
  const values = changes
    .filter((change) => change.target === target)
    // An update has no new key.
    .map(
      ({ op, key, after }) =>
        ownValue(op === 'insert' ? key : null, column) ?? ownValue(after, column),
    );
  return values.filter((value) => typeof value === 'string' || typeof value === 'number');
}

function counterAfter(used: ReadonlySet<Value | undefined>, steps: number) {
  let highest = 0;
  for (const value of used) if (typeof value === 'number' && value > highest) highest = value;
  return (value: Value) => typeof value === 'number' && value > highest && value <= highest + steps;
}

function columnValues(
  views: readonly DocumentView[],
  target: string,
  column: string,
): ReadonlySet<Value | undefined> {
  const values = new Set<Value | undefined>();
  for (const view of views) {
    for (const { key, fields } of view.collections.get(target)?.records.values() ?? [])
      values.add(ownValue(key, column) ?? ownValue(fields, column));
    for (const row of view.elements.get(target) ?? []) values.add(ownValue(row, column));
  }
  return values;
}

/** Merges the values that several calls assigned, with one entry for each column. */
export function joinAssigned(calls: readonly (readonly FreshValues[])[]): readonly FreshValues[] {
  const columns = Map.groupBy(calls.flat(), ({ target, column }) => `${target} ${column}`);
  return [...columns.values()].flatMap((entries) => {
    const [first] = entries;
    return first ? [{ ...first, fresh: entries.flatMap(({ fresh }) => fresh) }] : [];
  });
}

function ownValue(row: Row | null, column: string): Value | undefined {
  return row !== null && Object.hasOwn(row, column) ? row[column] : undefined;
}
