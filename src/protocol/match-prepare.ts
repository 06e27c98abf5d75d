import { comparisonKey } from './bag.ts';
import { isExact } from './constraint.ts';
import type { ApprovedEffect, Cell, CellRow, Effect } from './effect.ts';
import { layOutWanted, type Shape, shapeOf, type Wanted } from './match-shape.ts';
import type { Registration } from './registration.ts';
import type { Row } from './value.ts';

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
    const plain = exactEffect(effect, skip);
    if (plain === undefined) {
      const own = shapeOf(effect, skip);
      const shape = shapes.get(own.text) ?? own;
      shapes.set(shape.text, shape);
      constrained.push(layOutWanted(effect, shape));
      continue;
    }
    const key = comparisonKey(plain, skip);
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

/** The one effect that is approved; undefined where a compared cell is a constraint. */
function exactEffect({ op, target, key, before, after }: ApprovedEffect, skip: Skip): Effect | undefined {
  const rows = { key: exactRow(key, skip), before: exactRow(before, skip), after: exactRow(after, skip) };
  if (rows.key === undefined || rows.before === undefined || rows.after === undefined) return undefined;
  return { op, target, key: rows.key, before: rows.before, after: rows.after };
}

function exactRow(cells: CellRow | undefined, skip: Skip): Row | undefined {
  const compared = Object.entries(cells ?? {}).filter(([column]) => !skip?.has(column));
  const exact = compared.filter((entry): entry is [string, Extract<Cell, { is: unknown }>] => isExact(entry[1]));
  if (exact.length < compared.length) return undefined;
  return Object.fromEntries(exact.map(([column, cell]) => [column, cell.is]));
}
