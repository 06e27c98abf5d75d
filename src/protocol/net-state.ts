import { rowText, sameValue } from './bag.ts';
import type { Effect } from './effect.ts';
import { type Change, findChanges, type Relation } from './relation.ts';
import type { Row } from './value.ts';

interface Place {
  readonly relation: Relation;
  readonly target: string;
  readonly key: Row;
}

/** One key's row as it was at first and as it is now; null where there was or is no such row. */
interface KeyedRow extends Place {
  was: Row | null;
  is: Row | null;
  /**
   * Whether several records were folded into it; a single one has the same columns on both sides.
   */
  folded: boolean;
}

/** How many more (or, below zero, fewer) of this row there are than at first. */
interface LooseRow {
  readonly target: string;
  readonly row: Row;
  surplus: number;
}

/**
 * Folds writes, in the order in which they happened, into the difference between the first and the
 * last state. A row is followed by its key; rows of relations without a key are counted.
 */
export class NetState {
  readonly #keyed = new Map<string, KeyedRow>();
  readonly #loose = new Map<string, LooseRow>();

  apply(relation: Relation, change: Change): void {
    const { target, key } = change;
    if (key === undefined) {
      this.#count(relation, change);
    } else if (change.op === 'update' && change.newKey !== undefined) {
      this.#move({ relation, target, key }, change.newKey, change);
    } else {
      const before = change.op === 'insert' ? null : change.before;
      const after = change.op === 'delete' ? null : change.after;
      this.#rewrite({ relation, target, key }, before, after);
    }
  }

  /** The net effects so far. */
  effects(): readonly Effect[] {
    const effects: Effect[] = [];
    for (const row of this.#keyed.values()) {
      const effect = netEffect(row);
      if (effect !== undefined) effects.push(effect);
    }
    for (const { target, row, surplus } of this.#loose.values()) {
      const effect: Effect =
        surplus > 0 ? { op: 'insert', target, after: row } : { op: 'delete', target, before: row };
      for (let copies = Math.abs(surplus); copies > 0; copies -= 1) effects.push(effect);
    }
    return effects;
  }

  /** The row with this key becomes another one; null where there is none before or after. */
  #rewrite(place: Place, before: Row | null, after: Row | null): void {
    const id = rowId(place.target, place.key);
    const row = this.#keyed.get(id);
    if (row === undefined) {
      const { relation, target, key } = place;
      this.#keyed.set(id, { relation, target, key, was: before, is: after, folded: false });
    } else {
      row.folded = true;
      const rest = continueFrom(row, before);
      row.is = after === null ? null : { ...rest, ...after };
    }
  }

  /** A row that changes its key disappears under one key and appears under another, whole. */
  #move(
    place: Place,
    newKey: Row,
    { before, after }: { readonly before: Row; readonly after: Row },
  ): void {
    const known = this.#keyed.get(rowId(place.target, place.key));
    const whole = { ...known?.is, ...before };
    place.relation.demandWhole('update of a key', whole);
    this.#rewrite(place, whole, null);
    this.#rewrite({ ...place, key: newKey }, null, { ...whole, ...after });
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
}

function rowId(target: string, row: Row): string {
  return `${target.length}:${target}${rowText(row)}`;
}

/**
 * The row as it is, completed by the columns of `before`; they must continue from what is known. A
 * column seen for the first time has not changed so far, so the row also had that value at first.
 */
function continueFrom(row: KeyedRow, before: Row | null): Row | null {
  const { relation, is } = row;
  if (before === null) {
    if (is !== null) throw relation.fault('insert', 'a row with its key already exists');
    return null;
  }
  if (is === null) throw relation.fault('write', 'no row with its key exists any more');
  for (const column of Object.keys(before)) {
    if (!Object.hasOwn(is, column) || sameValue(is[column], before[column])) continue;
    throw relation.fault(
      'write',
      `column ${JSON.stringify(column)} is not what the record before left`,
    );
  }
  if (row.was !== null) row.was = { ...before, ...row.was };
  return { ...before, ...is };
}

function netEffect({ relation, target, key, was, is, folded }: KeyedRow): Effect | undefined {
  if (was === null) return is === null ? undefined : { op: 'insert', target, key, after: is };
  if (is === null) return { op: 'delete', target, key, before: was };
  for (const column of folded ? Object.keys({ ...was, ...is }) : []) {
    if (Object.hasOwn(was, column) && Object.hasOwn(is, column)) continue;
    throw relation.fault(
      'rewrite of a row',
      `column ${JSON.stringify(column)} is not reported on both sides`,
    );
  }
  const changes = findChanges(was, is);
  return changes && { op: 'update', target, key, before: changes.before, after: changes.after };
}
