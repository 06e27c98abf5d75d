import { invariant } from '../errors.ts';
import { imagesKey, valueText } from './bag.ts';
import { isExact } from './constraint.ts';
import type { ApprovedEffect, Cell, CellRow } from './effect.ts';
import { layOutWanted, type Shape, shapeOf, type Wanted } from './match-shape.ts';
import type { Registration } from './registration.ts';

type Skip = ReadonlySet<string> | undefined;

/** A, made ready to be compared: once per A, as often as needed. */
export interface Prepared {
  /** Per target the columns that are not compared. */
  readonly volatile: ReadonlyMap<string, ReadonlySet<string>>;
  /** Exact effects by comparison key: position in `exact` and `counts`. */
  readonly positions: ReadonlyMap<string, number>;
  readonly exact: readonly ApprovedEffect[];
  readonly counts: Float64Array;
  /** The shapes of effects with constraints, by their text. */
  readonly shapes: ReadonlyMap<string, Shape>;
  readonly constrained: readonly Wanted[];
}

/** The part of A that is compared. */
export interface ApprovedEffects {
  readonly registration: Registration;
  readonly effects: readonly ApprovedEffect[];
}

/** Strips volatile columns from A and sorts its effects by how they can be compared. */
export function prepareApproved(approved: ApprovedEffects): Prepared {
  const volatile = volatileColumns(approved.registration);
  const positions = new Map<string, number>();
  const shapes = new Map<string, Shape>();
  const exact: ApprovedEffect[] = [];
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
    const key = imagesKey(effect, skip, exactText);
    const position = positions.get(key);
    if (position === undefined) {
      positions.set(key, exact.length);
      exact.push(effect);
      counts.push(effect.count);
    } else {
      counts[position] = (counts[position] ?? 0) + effect.count;
    }
  }
  return { volatile, positions, exact, counts: Float64Array.from(counts), shapes, constrained };
}

/** Key columns identify the row that A names, so they are compared even where they are declared volatile. */
function volatileColumns(registration: Registration): ReadonlyMap<string, ReadonlySet<string>> {
  const volatile = new Map<string, ReadonlySet<string>>();
  for (const target of registration.targets) {
    const columns = target.volatile.filter((column) => !target.key.includes(column));
    if (columns.length > 0) volatile.set(target.name, new Set(columns));
  }
  return volatile;
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

function exactText(cell: Cell | undefined): string {
  invariant(cell !== undefined && isExact(cell), 'only exact effects are counted');
  return valueText(cell.is);
}
