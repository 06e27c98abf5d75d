import { EffectMatchError, invariant, unreachable } from '../errors.ts';
import { sameValue, sortedColumns } from './bag.ts';
import type { ChangeRecord } from './effect.ts';
import type { Target } from './registration.ts';
import type { Row, Value } from './value.ts';

/** A record that agrees with the registration, with the key columns removed from its images. */
export type ReadChange = { readonly target: string; readonly key: Row | undefined } & (
  | { readonly op: 'insert'; readonly after: Row }
  | { readonly op: 'delete'; readonly before: Row }
  /**
   * Both images have the same columns, including unchanged ones. `newKey` is set only if the update
   * changed the key.
   */
  | {
      readonly op: 'update';
      readonly before: Row;
      readonly after: Row;
      readonly newKey: Row | undefined;
    }
);

type MutableRow = { [column: string]: Value };

/**
 * Reads the records of one registered target and refuses those that contradict the registration.
 */
export class RelationReader {
  readonly #name: string;
  readonly #key: readonly string[];
  /**
   * Compared and volatile columns without the key. Sorted, so that rows built here have sorted
   * columns.
   */
  readonly #columns: readonly string[];
  readonly #volatile: ReadonlySet<string>;
  /** Whether a column has the name of an inherited property, such as `constructor`. */
  readonly #inherits: boolean;

  constructor(target: Target) {
    const known = new Set([...target.columns, ...target.volatile, ...target.key]);
    invariant(
      !known.has('__proto__'),
      'no column is named __proto__, which plain rows cannot carry',
    );
    this.#name = target.name;
    this.#key = [...target.key].sort();
    this.#columns = [...known].filter((column) => !target.key.includes(column)).sort();
    this.#volatile = new Set(target.volatile);
    this.#inherits = [...known].some((column) => column in {});
  }

  /** Checks a record completely. Inserted and deleted rows must be whole. */
  read(record: ChangeRecord): ReadChange {
    const { target, op } = record;
    switch (op) {
      case 'insert': {
        if (record.before !== null) throw this.fault(op, 'it has an image from before');
        const after = this.#readImage(op, record.after);
        this.demandWhole(op, after);
        return { target, op, key: this.#readKey(record, record.after), after };
      }
      case 'delete': {
        if (record.after !== null) throw this.fault(op, 'it has an image from after');
        const before = this.#readImage(op, record.before);
        this.demandWhole(op, before);
        return { target, op, key: this.#readKey(record, record.before), before };
      }
      case 'update': {
        const before = this.#readImage(op, record.before);
        const after = this.#readImage(op, record.after);
        this.#demandPairs(before, after);
        const key = this.#readKey(record, record.before);
        return {
          target,
          op,
          key,
          before,
          after,
          newKey: key && this.#readNewKey(key, record.after),
        };
      }
      default:
        return unreachable(op);
    }
  }

  /** Rows that appear or disappear are compared whole: only volatile columns may be missing. */
  demandWhole(op: string, row: Row): void {
    for (const column of this.#columns) {
      if (Object.hasOwn(row, column) || this.#volatile.has(column)) continue;
      throw this.fault(op, `column ${JSON.stringify(column)} is not reported`);
    }
  }

  /**
   * Whether a change has whole rows, so that it can be folded in any order. Rows without a key must
   * be whole, because nothing else identifies them; volatile columns may then be missing.
   */
  isWhole(change: ReadChange): boolean {
    const { op, key } = change;
    if (key !== undefined) {
      return (
        (op === 'insert' || this.#hasAll(change.before)) &&
        (op === 'delete' || this.#hasAll(change.after))
      );
    }
    if (op !== 'insert') this.demandWhole(op, change.before);
    if (op !== 'delete') this.demandWhole(op, change.after);
    return true;
  }

  #hasAll(row: Row): boolean {
    for (const column of this.#columns) if (!Object.hasOwn(row, column)) return false;
    return true;
  }

  /** An impossible report is the adapter's bug, not an outcome. */
  fault(op: string, why: string): EffectMatchError {
    const what = `${op} on ${JSON.stringify(this.#name)}`;
    return new EffectMatchError(
      'ERR_EM_INVARIANT',
      `the adapter reported an impossible ${what}: ${why}`,
    );
  }

  #readImage(op: string, image: Row | null): Row {
    const row: MutableRow = {};
    if (image === null) return row;
    let known = 0;
    for (const column of this.#columns) {
      const value = this.#readColumn(image, column);
      if (value === undefined) continue;
      row[column] = value;
      known += 1;
    }
    for (const column of this.#key) if (this.#readColumn(image, column) !== undefined) known += 1;
    if (known !== Object.keys(image).length) throw this.fault(op, this.#describeStranger(image));
    return row;
  }

  #demandPairs(before: Row, after: Row): void {
    for (const column of this.#columns) {
      const paired =
        (this.#readColumn(before, column) === undefined) ===
        (this.#readColumn(after, column) === undefined);
      if (!paired)
        throw this.fault('update', `column ${JSON.stringify(column)} is in one of its images only`);
    }
  }

  /** Own columns only: a column may have the name of an inherited property. */
  #readColumn(row: Row | null, column: string): Value | undefined {
    if (row === null || (this.#inherits && !Object.hasOwn(row, column))) return undefined;
    return row[column];
  }

  #describeStranger(image: Row): string {
    const column = Object.keys(image).find(
      (name) => !this.#columns.includes(name) && !this.#key.includes(name),
    );
    return column === undefined
      ? 'a column is undefined'
      : `column ${JSON.stringify(column)} is not registered`;
  }

  /**
   * The key that the record names, or else the one in its image. If both exist, they must agree.
   */
  #readKey(record: ChangeRecord, image: Row | null): Row | undefined {
    const named = record.key === null ? 0 : Object.keys(record.key).length;
    if (named !== 0 && named !== this.#key.length)
      throw this.fault(record.op, 'its key is not the registered one');
    if (this.#key.length === 0) return undefined;
    const key: MutableRow = {};
    for (const column of this.#key) {
      const inKey = this.#readColumn(record.key, column);
      const inImage = this.#readColumn(image, column);
      const value = inKey === undefined ? inImage : inKey;
      if (value === undefined)
        throw this.fault(record.op, `key column ${JSON.stringify(column)} is not reported`);
      if (inImage !== undefined && !sameValue(value, inImage)) {
        throw this.fault(
          record.op,
          `its key and its image disagree on column ${JSON.stringify(column)}`,
        );
      }
      key[column] = value;
    }
    return key;
  }

  /** Key columns missing from the image are unchanged. */
  #readNewKey(key: Row, after: Row | null): Row | undefined {
    let newKey: MutableRow | undefined;
    for (const column of this.#key) {
      const value = this.#readColumn(after, column);
      if (value === undefined || sameValue(value, key[column])) continue;
      newKey ??= { ...key };
      newKey[column] = value;
    }
    return newKey;
  }
}

export interface Changes {
  readonly before: Row;
  readonly after: Row;
}

/**
 * The columns in which two rows with the same columns differ, on both sides, or undefined if there
 * are none.
 */
export function findChanges(before: Row, after: Row): Changes | undefined {
  let was: MutableRow | undefined;
  let is: MutableRow | undefined;
  for (const column of sortedColumns(before)) {
    const old = before[column];
    const now = after[column];
    if (old === undefined || now === undefined || sameValue(old, now)) continue;
    was ??= {};
    is ??= {};
    was[column] = old;
    is[column] = now;
  }
  return was === undefined || is === undefined ? undefined : { before: was, after: is };
}
