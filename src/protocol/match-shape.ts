import { sortedColumns, valueText } from './bag.ts';
import { isExact } from './constraint.ts';
import type { ApprovedEffect, Cell, Effect } from './effect.ts';
import type { Remainder } from './match-exact.ts';
import type { Value } from './value.ts';

const SECTIONS = ['key', 'before', 'after'] as const;

/** One column of one image. Labels are compared per place, which is a column of a target. */
interface Slot {
  readonly section: (typeof SECTIONS)[number];
  readonly column: string;
  readonly place: string;
}

/**
 * What two effects must share to be comparable: operation, target and the columns of every image.
 */
export interface Shape {
  readonly text: string;
  readonly slots: readonly Slot[];
}

/**
 * An approved effect with at least one constraint. Its cells are in the order of the shape's slots.
 */
export interface Wanted {
  readonly effect: ApprovedEffect;
  readonly shape: Shape;
  readonly cells: readonly Cell[];
  /** The text of the approved value per slot, or undefined if the cell is a constraint. */
  readonly fixed: readonly (string | undefined)[];
  /** The generated cells whose values are compared with each other. */
  readonly labels: readonly LabelledCell[];
}

/** A cell for a generated value. */
export interface LabelledCell {
  readonly label: string;
  readonly slot: number;
  readonly place: string;
}

/** Equal observed effects that may match an approved effect with constraints. */
export interface ObservedGroup {
  readonly shape: Shape;
  readonly effects: readonly Effect[];
  /** Whether all of them must be matched. The others may be left over. */
  readonly isRequired: boolean;
  /** The values in the order of the shape's slots, and the texts used to compare them. */
  readonly values: readonly Value[];
  readonly texts: readonly string[];
}

type Imaged = Pick<Effect, 'op' | 'target'> & { readonly [section in Slot['section']]?: object };

/** The text of an effect's shape without the columns in `skip`. */
export function shapeText(effect: Imaged, skip: ReadonlySet<string> | undefined): string {
  let text = `${effect.op[0]}${effect.target.length}:${effect.target}`;
  for (const section of SECTIONS) {
    text += '|';
    for (const column of sortedColumns(effect[section] ?? {})) {
      if (!skip?.has(column)) text += `${column.length}:${column}`;
    }
  }
  return text;
}

/** The shape of an approved effect. */
export function shapeOf(effect: ApprovedEffect, skip: ReadonlySet<string> | undefined): Shape {
  const slots = SECTIONS.flatMap((section) =>
    sortedColumns(effect[section] ?? {})
      .filter((column) => !skip?.has(column))
      .map((column) => ({ section, column, place: placeText(effect.target, column) })),
  );
  return { text: shapeText(effect, skip), slots };
}

/** A unique text for a column of a target. */
export function placeText(target: string, column: string): string {
  return `${target.length}:${target}${column}`;
}

/** Arranges an approved effect in the order of its shape. */
export function layOutWanted(effect: ApprovedEffect, shape: Shape): Wanted {
  const cells = shape.slots.map(({ section, column }) => effect[section]?.[column] as Cell);
  const fixed = cells.map((cell) => (isExact(cell) ? valueText(cell.is) : undefined));
  const labels = cells.flatMap((cell, slot) =>
    'generated' in cell
      ? [{ label: cell.generated, slot, place: shape.slots[slot]?.place as string }]
      : [],
  );
  return { effect, shape, cells, fixed, labels };
}

/** Arranges equal observed effects in the order of their shape. */
export function layOutObserved(
  { effects, required }: Remainder,
  shape: Shape,
): readonly ObservedGroup[] {
  const [effect] = effects;
  const values = shape.slots.map(({ section, column }) => effect?.[section]?.[column] as Value);
  const group = { shape, values, texts: values.map(valueText) };
  return [
    { ...group, effects: effects.slice(0, required), isRequired: true },
    { ...group, effects: effects.slice(required), isRequired: false },
  ].filter((part) => part.effects.length > 0);
}
