import { comparisonKey, rowText, sameValue, scalarOf, sortedColumns } from './bag.ts';
import { isExact } from './constraint.ts';
import type { ApprovedEffect, CellRow, Effect, Op } from './effect.ts';
import { layOutWanted, type Shape, shapeOf, type Wanted } from './match-shape.ts';
import type { Registration } from './registration.ts';
import type { Row, Value } from './value.ts';
import { type VolatileColumns, volatileColumns } from './volatile.ts';

type Skip = ReadonlySet<string> | undefined;

/** A, prepared once for any number of comparisons. */
export interface Prepared {
  readonly volatile: VolatileColumns;
  /** Finds the position of an exact effect in `exact` and `counts`. */
  readonly index: Pick<ExactIndex, 'find'>;
  readonly exact: readonly ApprovedEffect[];
  readonly counts: readonly number[];
  /** The shapes of effects with constraints, by text. */
  readonly shapes: ReadonlyMap<string, Shape>;
  readonly constrained: readonly Wanted[];
  /** Whether A consists of one exact change each of different rows that have keys. */
  readonly isSingle: boolean;
}

/** The part of A that is compared. */
interface ApprovedEffects {
  readonly registration: Registration;
  readonly effects: readonly ApprovedEffect[];
}

/** Strips volatile columns from A and separates exact effects from those with constraints. */
export function prepareApproved(approved: ApprovedEffects): Prepared {
  const volatile = volatileColumns(approved.registration);
  const exact: ApprovedEffect[] = [];
  const index = new ExactIndex(exact);
  const shapes = new Map<string, Shape>();
  const counts: number[] = [];
  const constrained: Wanted[] = [];
  for (const effect of approved.effects) {
    const skip = volatile.get(effect.target);
    if (!isExactEffect(effect, skip)) {
      const own = shapeOf(effect, skip);
      const shape = shapes.get(own.text) ?? own;
      shapes.set(shape.text, shape);
      constrained.push(layOutWanted(effect, shape));
      continue;
    }
    const only = exactEffect(effect);
    const position = index.find(only, skip);
    if (position === undefined) {
      index.add(only, skip, exact.length);
      exact.push(effect);
      counts.push(effect.count);
    } else {
      counts[position] = (counts[position] ?? 0) + effect.count;
    }
  }
  const isSingle =
    volatile.size === 0 &&
    constrained.length === 0 &&
    counts.every((count) => count === 1) &&
    exact.every(isRegular) &&
    index.hasOneOfEachRow();
  return { volatile, index, exact, counts, shapes, constrained, isSingle };
}

/** Whether an effect has the images with which its operation is observed. */
function isRegular({ op, key, before, after }: ApprovedEffect): boolean {
  const [hasBefore, hasAfter] = [before !== undefined, after !== undefined];
  return key !== undefined && hasBefore === (op !== 'insert') && hasAfter === (op !== 'delete');
}

/** The distinct exact effects of A as they would be observed. */
export function* exactEffects({ exact }: Prepared): Generator<Effect> {
  for (const effect of exact) yield exactEffect(effect);
}

function isExactEffect({ key, before, after }: ApprovedEffect, skip: Skip): boolean {
  return isExactRow(key, skip) && isExactRow(before, skip) && isExactRow(after, skip);
}

function isExactRow(cells: CellRow | undefined, skip: Skip): boolean {
  for (const column in cells) {
    const cell = cells[column];
    if (cell !== undefined && !isExact(cell) && !skip?.has(column)) return false;
  }
  return true;
}

/** An effect whose compared columns are all exact, as it would be observed. */
function exactEffect({ op, target, key, before, after }: ApprovedEffect): Effect {
  return {
    op,
    target,
    ...(key && { key: exactRow(key) }),
    ...(before && { before: exactRow(before) }),
    ...(after && { after: exactRow(after) }),
  };
}

/** Columns that are not exact are volatile here, and are not compared. */
function exactRow(cells: CellRow): Row {
  const row: { [column: string]: Value } = {};
  for (const column of sortedColumns(cells)) {
    const cell = cells[column];
    if (cell !== undefined && isExact(cell)) row[column] = cell.is;
  }
  return row;
}

/**
 * Finds the exact effect of A that an observed effect equals. Most rows have a key and one effect:
 * these are found by key and compared column by column, which is several times faster than encoding
 * the whole effect. All others are found by comparison key.
 */
class ExactIndex {
  readonly #exact: readonly ApprovedEffect[];
  readonly #rows = new Map<string, { [op in Op]?: Map<number | string, number> }>();
  readonly #texts = new Map<string, number>();

  /** `exact` holds the effects by position. */
  constructor(exact: readonly ApprovedEffect[]) {
    this.#exact = exact;
  }

  /** Adds an effect that is not in the index yet, as it would be observed. */
  add(effect: Effect, skip: Skip, position: number): void {
    const id = rowId(effect.key);
    if (id !== undefined) {
      let rows = this.#rows.get(effect.target);
      if (rows === undefined) {
        rows = {};
        this.#rows.set(effect.target, rows);
      }
      rows[effect.op] ??= new Map();
      if (!rows[effect.op]?.has(id)) {
        rows[effect.op]?.set(id, position);
        return;
      }
    }
    this.#texts.set(comparisonKey(effect, skip), position);
  }

  /** Whether no two effects have the same row key. */
  hasOneOfEachRow(): boolean {
    if (this.#texts.size > 0) return false;
    for (const byOp of this.#rows.values()) {
      const [first, ...others] = Object.values(byOp);
      if (others.length === 0) continue;
      const seen = new Set(first?.keys());
      for (const ids of others)
        for (const id of ids.keys()) {
          if (seen.has(id)) return false;
          seen.add(id);
        }
    }
    return true;
  }

  /** The position of the exact effect that equals this one, ignoring volatile columns. */
  find(effect: Effect, skip: Skip): number | undefined {
    const id = rowId(effect.key);
    const position =
      id === undefined ? undefined : this.#rows.get(effect.target)?.[effect.op]?.get(id);
    const wanted = position === undefined ? undefined : this.#exact[position];
    if (wanted !== undefined && isMet(wanted, effect, skip)) return position;
    return this.#texts.size === 0 ? undefined : this.#texts.get(comparisonKey(effect, skip));
  }
}

/** The id for finding a row. Two keys may share an id, so the caller must compare the key. */
function rowId(key: Row | undefined): number | string | undefined {
  return scalarOf(key) ?? (key && rowText(key));
}

function isMet(wanted: ApprovedEffect, effect: Effect, skip: Skip): boolean {
  return (
    areCells(wanted.key, effect.key, skip) &&
    areCells(wanted.before, effect.before, skip) &&
    areCells(wanted.after, effect.after, skip)
  );
}

/** Cells that are not exact are in volatile columns here, which are not compared. */
function areCells(cells: CellRow | undefined, row: Row | undefined, skip: Skip): boolean {
  let surplus = 0;
  for (const column in cells) {
    if (skip?.has(column)) continue;
    const cell = cells[column];
    if (cell === undefined || !isExact(cell)) return false;
    if (row === undefined || !Object.hasOwn(row, column) || !sameValue(cell.is, row[column]))
      return false;
    surplus += 1;
  }
  for (const column in row) if (!skip?.has(column)) surplus -= 1;
  return surplus === 0;
}
