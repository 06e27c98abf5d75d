import { rowText, sameValue } from './bag.ts';
import type { Effect } from './effect.ts';
import { type Change, changedColumns, type Relation } from './relation.ts';
import type { Row } from './value.ts';

/** One key's row as it was at first and as it is now; null where there was or is no such row. */
interface KeyedRow {
  readonly relation: Relation;
  readonly target: string;
  readonly key: Row;
  was: Row | null;
  is: Row | null;
}

/** How many more (or, below zero, fewer) of this row there are than at first. */
interface LooseRow {
  readonly target: string;
  readonly row: Row;
  surplus: number;
}

/**
 * Folds writes, in the order in which they happened, into the difference between the first and the last state.
 * A row is followed by its key; rows of relations without a key are counted.
 */
export class NetState {
  readonly #keyed = new Map<string, KeyedRow>();
  readonly #loose = new Map<string, LooseRow>();

  apply(relation: Relation, change: Change): void {
    if (change.key === undefined) this.#count(relation, change);
    else if (change.op === 'insert') this.#insert(relation, change.target, change.key, change.after);
    else if (change.op === 'delete') this.#delete(relation, change.target, change.key, change.before);
    else if (change.newKey === undefined) this.#update(relation, change.target, change.key, change);
    else this.#move(relation, change.target, { ...change, key: change.key, newKey: change.newKey });
  }

  /** The net effects so far. */
  effects(): readonly Effect[] {
    const effects: Effect[] = [];
    for (const row of this.#keyed.values()) {
      const effect = netEffect(row);
      if (effect !== undefined) effects.push(effect);
    }
    for (const { target, row, surplus } of this.#loose.values()) {
      const effect: Effect = surplus > 0 ? { op: 'insert', target, after: row } : { op: 'delete', target, before: row };
      for (let copies = Math.abs(surplus); copies > 0; copies -= 1) effects.push(effect);
    }
    return effects;
  }

  #insert(relation: Relation, target: string, key: Row, after: Row): void {
    const row = this.#find(target, key);
    if (row === undefined) this.#keep({ relation, target, key, was: null, is: after });
    else if (row.is !== null) throw relation.fault('insert', 'a row with its key already exists');
    else row.is = after;
  }

  #delete(relation: Relation, target: string, key: Row, before: Row): void {
    const row = this.#find(target, key);
    if (row === undefined) {
      this.#keep({ relation, target, key, was: before, is: null });
    } else {
      continueFrom(row, 'delete', before);
      row.is = null;
    }
  }

  #update(relation: Relation, target: string, key: Row, { before, after }: { before: Row; after: Row }): void {
    const row = this.#find(target, key);
    if (row === undefined) this.#keep({ relation, target, key, was: before, is: after });
    else row.is = { ...continueFrom(row, 'update', before), ...after };
  }

  /** A row that changes its key disappears under one key and appears under another, whole. */
  #move(relation: Relation, target: string, move: { key: Row; newKey: Row; before: Row; after: Row }): void {
    const whole = { ...this.#find(target, move.key)?.is, ...move.before };
    relation.demandWhole('update of a key', whole);
    this.#delete(relation, target, move.key, whole);
    this.#insert(relation, target, move.newKey, { ...whole, ...move.after });
  }

  #count(relation: Relation, change: Change): void {
    if (change.op !== 'insert') {
      relation.demandWhole(change.op, change.before);
      this.#tally(change.target, change.before, -1);
    }
    if (change.op !== 'delete') {
      relation.demandWhole(change.op, change.after);
      this.#tally(change.target, change.after, 1);
    }
  }

  #tally(target: string, row: Row, by: number): void {
    const id = rowId(target, row);
    const loose = this.#loose.get(id);
    if (loose === undefined) this.#loose.set(id, { target, row, surplus: by });
    else loose.surplus += by;
  }

  #find(target: string, key: Row): KeyedRow | undefined {
    return this.#keyed.get(rowId(target, key));
  }

  #keep(row: KeyedRow): void {
    this.#keyed.set(rowId(row.target, row.key), row);
  }
}

function rowId(target: string, row: Row): string {
  return `${target.length}:${target}${rowText(row)}`;
}

/**
 * The row as it is, completed by the columns of `before`; they must continue from what is known. A column seen for
 * the first time has not changed so far, so the row also had that value at first.
 */
function continueFrom(row: KeyedRow, op: string, before: Row): Row {
  const { relation, is } = row;
  if (is === null) throw relation.fault(op, 'no row with its key exists any more');
  for (const column of Object.keys(before)) {
    if (!Object.hasOwn(is, column) || sameValue(is[column], before[column])) continue;
    throw relation.fault(op, `column ${JSON.stringify(column)} is not what the record before left`);
  }
  if (row.was !== null) row.was = { ...before, ...row.was };
  return { ...before, ...is };
}

function netEffect({ relation, target, key, was, is }: KeyedRow): Effect | undefined {
  if (was === null) return is === null ? undefined : { op: 'insert', target, key, after: is };
  if (is === null) return { op: 'delete', target, key, before: was };
  for (const column of Object.keys({ ...was, ...is })) {
    if (Object.hasOwn(was, column) && Object.hasOwn(is, column)) continue;
    throw relation.fault('rewrite of a row', `column ${JSON.stringify(column)} is not reported on both sides`);
  }
  const changed = changedColumns(was, is);
  return Object.keys(changed.before).length === 0 ? undefined : { op: 'update', target, key, ...changed };
}
