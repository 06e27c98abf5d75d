import { valueText } from './bag.ts';
import type { Budget } from './budget.ts';
import { type ConstraintContext, satisfies, withinAssigned } from './constraint.ts';
import { type Found, placeText, type Shape, type Wanted } from './match-shape.ts';
import type { Assigned } from './observation.ts';
import type { Value } from './value.ts';

/** Backend evidence that matching may rely on. */
export interface MatchEvidence extends Pick<ConstraintContext, 'window'> {
  readonly assigned: readonly Assigned[];
}

type Check = (value: Value, text: string) => boolean;

/**
 * Decides, one pair at a time, whether an observed effect can be what was approved, other effects
 * aside.
 */
export class Admission {
  readonly #context: ConstraintContext;
  readonly #assigned = new Map<string, Check[]>();
  readonly #anchored = new Set<string>();

  constructor(evidence: MatchEvidence, wanted: readonly Wanted[], budget: Budget) {
    this.#context = { window: evidence.window, budget };
    for (const assigned of evidence.assigned) {
      const place = placeText(assigned.target, assigned.column);
      this.#assigned.set(place, [...(this.#assigned.get(place) ?? []), checkOf(assigned)]);
    }
    for (const { labels, shape } of wanted) {
      for (const { label, slot } of labels)
        if (this.hasEvidence(shape, slot)) this.#anchored.add(label);
    }
  }

  hasEvidence(shape: Shape, slot: number): boolean {
    return this.#assigned.has(shape.slots[slot]?.place ?? '');
  }

  /**
   * A label that no cell ties to backend evidence could be anybody's choice, so nothing matches it.
   */
  isAnchored(wanted: Wanted): boolean {
    return wanted.labels.every(({ label }) => this.#anchored.has(label));
  }

  /**
   * Checks everything but the exact cells, which the index of {@link Candidates} has already
   * compared.
   */
  admits(wanted: Wanted, found: Found): boolean {
    for (let slot = 0; slot < wanted.cells.length; slot += 1) {
      if (wanted.fixed[slot] !== undefined) continue;
      const cell = wanted.cells[slot] as Wanted['cells'][number];
      const value = found.values[slot] as Value;
      if (!('generated' in cell)) {
        if (!satisfies(cell, value, this.#context)) return false;
        continue;
      }
      const checks = this.#assigned.get(wanted.shape.slots[slot]?.place ?? '') ?? [];
      if (!checks.every((check) => check(value, found.texts[slot] as string))) return false;
    }
    return labelsAgree(wanted, found);
  }
}

/** Fresh values are looked up, not searched: there may be as many as there are rows. */
function checkOf(assigned: Assigned): Check {
  if (!('fresh' in assigned)) return (value) => withinAssigned(assigned, value);
  const fresh = new Set(assigned.fresh.map(valueText));
  return (_value, text) => fresh.has(text);
}

/**
 * Within one effect equal labels have equal values. That different labels differ is decided for all
 * effects at once.
 */
function labelsAgree({ labels }: Wanted, { texts }: Found): boolean {
  if (labels.length < 2) return true;
  return labels.every(({ label, slot }) => {
    const first = labels.find((other) => other.label === label);
    return first === undefined || texts[first.slot] === texts[slot];
  });
}

const NONE: readonly number[] = [];

/**
 * Finds observed effects by the exact part of an approved one. Each combination of exact columns
 * that occurs gets an index of its own, built once, so that usual approvals look at few candidates
 * each.
 */
export class Candidates {
  readonly #byShape = new Map<Shape, number[]>();
  readonly #indexes = new Map<Shape, Map<string, Map<string, number[]>>>();
  readonly #found: readonly Found[];
  readonly #budget: Budget;

  constructor(found: readonly Found[], budget: Budget) {
    this.#found = found;
    this.#budget = budget;
    found.forEach(({ shape }, index) => {
      const members = this.#byShape.get(shape);
      if (members === undefined) this.#byShape.set(shape, [index]);
      else members.push(index);
    });
  }

  /**
   * Positions of the observed effects of this shape that have the given texts in the given slots.
   */
  of(shape: Shape, fixed: readonly (string | undefined)[]): readonly number[] {
    const members = this.#byShape.get(shape);
    if (members === undefined) return NONE;
    let indexes = this.#indexes.get(shape);
    if (indexes === undefined) {
      indexes = new Map();
      this.#indexes.set(shape, indexes);
    }
    const slots: number[] = [];
    let projection = '';
    fixed.forEach((text, slot) => {
      if (text === undefined) return;
      slots.push(slot);
      projection += text;
    });
    const mask = slots.join();
    let index = indexes.get(mask);
    if (index === undefined) {
      index = this.#build(members, slots);
      indexes.set(mask, index);
    }
    return index.get(projection) ?? NONE;
  }

  #build(members: readonly number[], slots: readonly number[]): Map<string, number[]> {
    const index = new Map<string, number[]>();
    for (const member of members) {
      if (!this.#budget.spend()) break;
      const { texts } = this.#found[member] as Found;
      let projection = '';
      for (const slot of slots) projection += texts[slot];
      const bucket = index.get(projection);
      if (bucket === undefined) index.set(projection, [member]);
      else bucket.push(member);
    }
    return index;
  }
}
