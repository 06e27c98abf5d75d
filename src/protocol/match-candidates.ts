import { valueText } from './bag.ts';
import type { Budget } from './budget.ts';
import { type ConstraintContext, satisfies, withinAssigned } from './constraint.ts';
import type { Cell } from './effect.ts';
import type { LabelValues } from './match-labels.ts';
import {
  type LabelledCell,
  type ObservedGroup,
  placeText,
  type Shape,
  type Wanted,
} from './match-shape.ts';
import type { Assigned } from './observation.ts';
import type { Value } from './value.ts';

/** Backend evidence that matching may rely on. */
export interface MatchEvidence extends Pick<ConstraintContext, 'window'> {
  readonly assigned: readonly Assigned[];
}

type Check = (value: Value, text: string) => boolean;

/** A lookup builds texts, which takes as long as examining several pairs. */
const STEPS_PER_LOOK_UP = 4;

const NONE: readonly ObservedGroup[] = [];

/**
 * Finds the observed effects that can match an approved one, ignoring other effects. Each
 * combination of exact columns that occurs has an index, built once, through which candidates are
 * looked up. Typical approvals therefore examine few candidates each.
 */
export class Candidates {
  readonly #context: ConstraintContext & { readonly budget: Budget };
  readonly #assigned = new Map<string, Check[]>();
  readonly #byShape: ReadonlyMap<Shape, readonly ObservedGroup[]>;
  readonly #indexes = new Map<Shape, Map<string, Map<string, ObservedGroup[]>>>();

  constructor(observed: readonly ObservedGroup[], evidence: MatchEvidence, budget: Budget) {
    this.#context = { window: evidence.window, budget };
    for (const assigned of evidence.assigned) {
      const place = placeText(assigned.target, assigned.column);
      this.#assigned.set(place, [...(this.#assigned.get(place) ?? []), checkOf(assigned)]);
    }
    this.#byShape = Map.groupBy(observed, ({ shape }) => shape);
  }

  hasEvidence({ place }: LabelledCell): boolean {
    return this.#assigned.has(place);
  }

  /** Observed effects with the exact values of an approved one, including its known labels. */
  lookUp(wanted: Wanted, labels: LabelValues): readonly ObservedGroup[] {
    const members = this.#byShape.get(wanted.shape);
    if (members === undefined) return NONE;
    this.#context.budget.spend(STEPS_PER_LOOK_UP);
    let columns = '';
    let projection = '';
    for (let slot = 0; slot < wanted.cells.length; slot += 1) {
      const cell = wanted.cells[slot] as Cell;
      const text = 'generated' in cell ? labels.valueOf(cell.generated) : wanted.fixed[slot];
      if (text === undefined) continue;
      columns += `${slot} `;
      projection += text;
    }
    return this.#indexOf(wanted.shape, members, columns).get(projection) ?? NONE;
  }

  #indexOf(
    shape: Shape,
    members: readonly ObservedGroup[],
    columns: string,
  ): Map<string, ObservedGroup[]> {
    const indexes = this.#indexes.get(shape) ?? new Map<string, Map<string, ObservedGroup[]>>();
    this.#indexes.set(shape, indexes);
    let index = indexes.get(columns);
    if (index !== undefined) return index;
    this.#context.budget.spend(members.length);
    const slots = (columns.match(/\d+/g) ?? []).map(Number);
    index = Map.groupBy(members, ({ texts }) => slots.map((slot) => texts[slot]).join(''));
    indexes.set(columns, index);
    return index;
  }

  /** Checks everything except the exact values, which the lookup already compared. */
  admits(wanted: Wanted, observed: ObservedGroup, labels: LabelValues): boolean {
    return (
      wanted.cells.every((cell, slot) => {
        if (wanted.fixed[slot] !== undefined) return true;
        const value = observed.values[slot] as Value;
        if (!('generated' in cell)) return satisfies(cell, value, this.#context);
        return this.#isAssigned(wanted, slot, observed);
      }) && labels.permit(wanted, observed)
    );
  }

  #isAssigned({ shape }: Wanted, slot: number, { values, texts }: ObservedGroup): boolean {
    const checks = this.#assigned.get(shape.slots[slot]?.place as string) ?? [];
    return checks.every((check) => check(values[slot] as Value, texts[slot] as string));
  }
}

/** Uses a set, because there may be as many fresh values as rows. */
function checkOf(assigned: Assigned): Check {
  if (!('fresh' in assigned)) return (value) => withinAssigned(assigned, value);
  const fresh = new Set(assigned.fresh.map(valueText));
  return (_value, text) => fresh.has(text);
}
