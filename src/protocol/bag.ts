import { EffectMatchError } from '../errors.ts';
import type { CountedEffect } from './diff.ts';
import type { Effect } from './effect.ts';
import type { Row, Value } from './value.ts';

/**
 * Encodes a value as an injective text, with lengths instead of escapes: far cheaper than canonical
 * JSON. For keys in memory and for the text of E; never stored on its own. Passing anything but
 * plain data is a bug in the caller.
 */
export function valueText(value: Value | undefined): string {
  switch (typeof value) {
    case 'string':
      return `s${value.length}:${value}`;
    case 'number':
      return Object.is(value, -0) ? 'd-0;' : `d${value};`;
    case 'boolean':
      return value ? 't' : 'f';
    case 'object':
      if (value === null) return 'n';
      return isList(value) ? `a${value.length}:${value.map(valueText).join('')}` : rowText(value);
    default:
      throw new EffectMatchError('ERR_EM_INVARIANT', `a ${typeof value} is not a value`);
  }
}

/** Whether two values have the same stored representation. */
export function sameValue(a: Value | undefined, b: Value | undefined): boolean {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null)
    return Object.is(a, b);
  return valueText(a) === valueText(b);
}

/** Encodes a row as an injective text that does not depend on the column order. */
export function rowText(row: Row): string {
  return columnsText(row);
}

/** The value of a key that is a single number, else undefined. Faster to look up than a string. */
export function numberOf(key: Row | undefined): number | undefined {
  const found = scalarOf(key);
  return typeof found === 'number' ? found : undefined;
}

/** The value of a key that is a single number or string, else undefined. */
export function scalarOf(key: Row | undefined): number | string | undefined {
  let found: unknown;
  let count = 0;
  for (const column in key) {
    found = key[column];
    count += 1;
  }
  if (count !== 1) return undefined;
  return typeof found === 'string' || (typeof found === 'number' && !Object.is(found, -0))
    ? found
    : undefined;
}

/** Column names sorted by UTF-16 code units. */
export function sortedColumns(row: object): readonly string[] {
  return isSorted(row) ? Object.keys(row) : Object.keys(row).sort();
}

/**
 * The key of an effect in a bag. Different effects have different keys; column order is ignored.
 */
export function effectKey(effect: Effect): string {
  const { op, target, key, before, after } = effect;
  return `${op[0]}${target.length}:${target}${imageText(key)}${imageText(before)}${imageText(after)}`;
}

/**
 * The key for comparing effects. `skip` leaves out volatile columns. An absent image counts as one
 * without columns, because the operation already determines which images exist.
 */
export function comparisonKey(effect: Effect, skip: ReadonlySet<string> | undefined): string {
  const { op, target, key, before, after } = effect;
  return `${op[0]}${target.length}:${target}${columnsText(key, skip)}${columnsText(before, skip)}${columnsText(after, skip)}`;
}

function imageText(row: Row | undefined): string {
  return row === undefined ? '-' : rowText(row);
}

function columnsText(columns: Row | undefined, skip?: ReadonlySet<string>): string {
  if (columns === undefined) return 'r0:';
  let text = '';
  let count = 0;
  for (const column of sortedColumns(columns)) {
    if (skip?.has(column)) continue;
    count += 1;
    text += `${column.length}:${column}${valueText(columns[column])}`;
  }
  return `r${count}:${text}`;
}

/**
 * Whether the columns are sorted by UTF-16 code units. In rows made by this package they usually
 * are.
 */
function isSorted(columns: object): boolean {
  let last = '';
  for (const column in columns) {
    if (column < last) return false;
    last = column;
  }
  return true;
}

function isList(value: object): value is readonly Value[] {
  return Array.isArray(value);
}

/** Each distinct effect with its count: two equal writes count as two. */
export function countEffects(effects: Iterable<Effect>): readonly CountedEffect[] {
  const counted = new Map<string, CountedEffect>();
  for (const effect of effects) {
    const key = effectKey(effect);
    counted.set(key, { ...effect, count: 1 + (counted.get(key)?.count ?? 0) });
  }
  return [...counted.values()];
}
