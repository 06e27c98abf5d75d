import type { Row, Value } from './value.ts';

/** What happened to a row. */
export type Op = 'insert' | 'update' | 'delete';

/** The unit of change, fixed before execution (design: effects, profiles, comparison). */
export type Profile = 'relation-write' | 'row-event' | 'net-state' | 'registered-fields';

/**
 * One observed change. `key` holds the key columns; it is absent if the target has no key, and
 * under `relation-write`. `after` of an insert and `before` of a delete hold every other column. An
 * update holds the changed columns on both sides.
 */
export interface Effect {
  readonly op: Op;
  readonly target: string;
  readonly key?: Row;
  readonly before?: Row;
  readonly after?: Row;
}

/**
 * One change as an adapter reports it, before the profile is applied. Images may be whole rows,
 * with or without the key columns. For an update they may hold only the changed columns. `key` is
 * the key before the change.
 */
export interface ChangeRecord {
  readonly op: Op;
  readonly target: string;
  readonly key: Row | null;
  readonly before: Row | null;
  readonly after: Row | null;
}

/**
 * Records in the order in which they were written. They can be read any number of times and need
 * not all be in memory at once.
 */
export interface ChangeRecords extends Iterable<ChangeRecord> {
  readonly length: number;
  /** How many records there are of each kind, if known without reading them. */
  readonly counts?: readonly TargetCount[];
}

/** How many rows of one target were inserted, updated or deleted. */
export interface TargetCount {
  readonly target: string;
  readonly op: Op;
  readonly count: number;
}

/** What the approver states about one column: an exact value or a constraint. */
export type Cell =
  | { readonly is: Value }
  | { readonly generated: string }
  | { readonly oneOf: readonly Value[] }
  | { readonly between: readonly [Value, Value] }
  | { readonly matches: string }
  | { readonly any: true }
  | { readonly now: { readonly withinMs: number; readonly unit: 'iso' | 's' | 'ms' } };

export type CellRow = { readonly [column: string]: Cell };

/** One approved change with its count. Has the same columns as the {@link Effect} it must match. */
export interface ApprovedEffect {
  readonly op: Op;
  readonly target: string;
  readonly key?: CellRow;
  readonly before?: CellRow;
  readonly after?: CellRow;
  readonly count: number;
}

/** The key and the images of an effect, whatever their cells are. */
interface Images<R> {
  readonly key?: R;
  readonly before?: R;
  readonly after?: R;
}

/** The key and the images that an effect has, each mapped. */
export function mapImages<R, S>({ key, before, after }: Images<R>, map: (row: R) => S): Images<S> {
  return {
    ...(key !== undefined && { key: map(key) }),
    ...(before !== undefined && { before: map(before) }),
    ...(after !== undefined && { after: map(after) }),
  };
}

/** A row with each of its columns mapped. */
export function mapColumns<T, U>(
  row: { readonly [column: string]: T },
  map: (value: T, column: string) => U,
): { readonly [column: string]: U } {
  return Object.fromEntries(
    Object.entries(row).map(([column, value]) => [column, map(value, column)]),
  );
}

/** What a row has in a column, never what its prototype has under that name. */
export function columnOf<T>(row: { readonly [column: string]: T }, column: string): T | undefined {
  return Object.hasOwn(row, column) ? row[column] : undefined;
}

/** The key of an approved effect, if every column of it is exact. Only then it identifies a row. */
export function exactKey({ key = {} }: ApprovedEffect): Row | undefined {
  const values: [string, Value][] = [];
  for (const [column, cell] of Object.entries(key)) {
    if (!('is' in cell)) return undefined;
    values.push([column, cell.is]);
  }
  return values.length === 0 ? undefined : Object.fromEntries(values);
}

/** A row that must exist, or must not exist (`row: null`), when the operation runs. */
export interface Requirement {
  readonly target: string;
  readonly key: Row;
  readonly row: Row | null;
}

/** A row (or some of its columns) on which the approval depends. */
export interface StateRead {
  readonly target: string;
  readonly key: Row;
  /** All columns when absent. */
  readonly columns?: readonly string[];
}

/** What a state read found: the requested columns, or null if the row does not exist. */
export interface StateReading {
  readonly target: string;
  readonly key: Row;
  readonly row: Row | null;
}
