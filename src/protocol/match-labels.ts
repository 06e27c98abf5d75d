import type { Budget } from './budget.ts';
import type { Admission, Candidates } from './match-candidates.ts';
import type { Found, Wanted } from './match-shape.ts';

/**
 * How the labels of `generated` are read: bound ones like exact values, open ones by name, others
 * each for itself.
 */
export interface LabelReading {
  readonly bound: ReadonlyMap<string, string>;
  readonly open: ReadonlySet<string>;
  /** Labels for which no value is left. */
  readonly void: ReadonlySet<string>;
  /** Whether a value of a place is still to be had for an open label. */
  permits(label: string, place: string, text: string): boolean;
}

/** Reads every label as an anonymous constraint: what must hold at least. */
export const WITHOUT_LABELS: LabelReading = {
  bound: new Map(),
  open: new Set(),
  void: new Set(),
  permits: () => true,
};

/** One text per value of a place: at most one label may take it. */
export function tokenText(place: string, text: string): string {
  return `${place.length}:${place}${text}`;
}

/** Per slot the text that is demanded once bound labels are read as values. */
export function fixedUnder(
  wanted: Wanted,
  bound: ReadonlyMap<string, string>,
): readonly (string | undefined)[] {
  if (wanted.labels.every(({ label }) => !bound.has(label))) return wanted.fixed;
  const fixed = [...wanted.fixed];
  for (const { label, slot } of wanted.labels) fixed[slot] = bound.get(label);
  return fixed;
}

/**
 * The labels whose value relates several cells. A label that occurs once is left out where the
 * observed values that could be meant all differ: then any choice for it differs from every other
 * label's by itself. That is the usual new row whose identifier nobody refers to.
 */
export function relatedLabels(
  wanted: readonly Wanted[],
  found: readonly Found[],
): ReadonlySet<string> {
  const cells = new Map<string, number>();
  const placed = new Map<string, Set<string>>();
  for (const { labels, shape, effect } of wanted) {
    for (const { label, slot } of labels) {
      const place = shape.slots[slot]?.place as string;
      cells.set(label, (cells.get(label) ?? 0) + effect.count);
      const slots = placed.get(place) ?? new Set();
      placed.set(place, slots.add(`${slot} ${shape.text}`));
    }
  }
  const ambiguous = findAmbiguousPlaces(placed, found);
  const related = new Set<string>();
  for (const { labels, shape } of wanted) {
    for (const { label, slot } of labels) {
      if (cells.get(label) !== 1 || ambiguous.has(shape.slots[slot]?.place as string))
        related.add(label);
    }
  }
  return related;
}

/** The places of labelled cells in which a value was observed more than once. */
function findAmbiguousPlaces(
  placed: ReadonlyMap<string, ReadonlySet<string>>,
  found: readonly Found[],
): Set<string> {
  const ambiguous = new Set<string>();
  const seen = new Set<string>();
  for (const { shape, texts, required, optional } of found) {
    shape.slots.forEach(({ place }, slot) => {
      if (!placed.get(place)?.has(`${slot} ${shape.text}`)) return;
      const token = tokenText(place, texts[slot] as string);
      if (seen.has(token) || required + optional > 1) ambiguous.add(place);
      seen.add(token);
    });
  }
  return ambiguous;
}

const FILTERED_MAX = 8;

/**
 * Works out label values that hold in every match there can be: where all candidates of an approved
 * effect agree on a label's value, the label has that value, which leaves fewer candidates for the
 * effects that refer to it. Usual approvals are decided by this alone, in time linear in their
 * size. Two values for one label, or one value for two labels of a place, are not an error here:
 * the effects concerned are left without candidates.
 */
export class Deduction implements LabelReading {
  readonly bound = new Map<string, string>();
  readonly open: Set<string>;
  readonly void = new Set<string>();
  /** Which label has taken a value of a place. */
  readonly #taken = new Map<string, string>();
  readonly #wanted: readonly Wanted[];
  readonly #found: readonly Found[];
  readonly #mentions = new Map<string, Wanted[]>();
  readonly #places = new Map<string, Set<string>>();

  constructor(wanted: readonly Wanted[], found: readonly Found[], related: ReadonlySet<string>) {
    this.#wanted = wanted.filter(({ labels }) => labels.some(({ label }) => related.has(label)));
    this.#found = found;
    this.open = new Set(related);
    for (const one of this.#wanted) {
      for (const { label, slot } of one.labels) {
        const mentions = this.#mentions.get(label);
        if (mentions === undefined) this.#mentions.set(label, [one]);
        else if (mentions.at(-1) !== one) mentions.push(one);
        const places = this.#places.get(label) ?? new Set();
        this.#places.set(label, places.add(one.shape.slots[slot]?.place as string));
      }
    }
  }

  permits(label: string, place: string, text: string): boolean {
    const taker = this.#taken.get(tokenText(place, text));
    return taker === undefined || taker === label;
  }

  /**
   * Cells with backend evidence speak first: where things contradict each other, the origin of a
   * value is right.
   */
  run(candidates: Candidates, admission: Admission, budget: Budget): void {
    for (const needsEvidence of [true, false]) {
      const queue = [...this.#wanted];
      for (const wanted of queue) {
        for (const label of this.#bindFrom(wanted, {
          candidates,
          admission,
          budget,
          needsEvidence,
        })) {
          for (const mention of this.#mentions.get(label) ?? []) queue.push(mention);
        }
        if (budget.exhausted) return;
      }
    }
  }

  #bindFrom(
    wanted: Wanted,
    by: { candidates: Candidates; admission: Admission; budget: Budget; needsEvidence: boolean },
  ): string[] {
    const news: string[] = [];
    const pending = wanted.labels.filter(
      ({ label, slot }) =>
        this.open.has(label) && (!by.needsEvidence || by.admission.hasEvidence(wanted.shape, slot)),
    );
    if (pending.length === 0 || !by.budget.spend()) return news;
    const all = by.candidates.of(wanted.shape, fixedUnder(wanted, this.bound));
    const few = all.length <= FILTERED_MAX;
    const pool = few
      ? all.filter((one) => by.admission.admits(wanted, this.#found[one] as Found))
      : all;
    if (few) by.budget.spend(all.length);
    for (const { label, slot } of pending) {
      const text = this.#commonText(pool, slot, by.budget);
      if (text === undefined || !this.open.has(label)) continue;
      this.#bind(label, text);
      news.push(label);
    }
    return news;
  }

  #commonText(pool: readonly number[], slot: number, budget: Budget): string | undefined {
    const first = pool[0];
    if (first === undefined) return undefined;
    const text = this.#found[first]?.texts[slot];
    for (const one of pool) {
      if (!budget.spend() || this.#found[one]?.texts[slot] !== text) return undefined;
    }
    return text;
  }

  #bind(label: string, text: string): void {
    this.open.delete(label);
    const places = [...(this.#places.get(label) ?? [])];
    if (places.every((place) => this.permits(label, place, text))) {
      this.bound.set(label, text);
      for (const place of places) this.#taken.set(tokenText(place, text), label);
    } else {
      this.void.add(label);
    }
  }
}
