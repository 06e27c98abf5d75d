import { sortedColumns } from './bag.ts';
import { isExact } from './constraint.ts';
import type { ApprovedEffect, CellRow, Effect } from './effect.ts';
import { ExactIndex } from './match-exact.ts';
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
