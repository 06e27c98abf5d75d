import type { LabelledCell, ObservedGroup, Wanted } from './match-shape.ts';

/** The text of a label that can have no value. No value has this text. */
const IMPOSSIBLE = '';

/**
 * The known values of generated labels. Equal labels have equal values, and no two labels of one
 * place have the same value.
 */
export class LabelValues {
  readonly #places = new Map<string, Set<string>>();
  readonly #values = new Map<string, string>();
  /** The label that has a value in a place. */
  readonly #owners = new Map<string, string>();
  /** Labels with a value, in the order in which they were bound. */
  readonly #bound: string[] = [];

  constructor(wanted: readonly Wanted[]) {
    for (const { label, place } of wanted.flatMap(({ labels }) => labels)) {
      const places = this.#places.get(label) ?? new Set();
      this.#places.set(label, places.add(place));
    }
  }

  valueOf(label: string): string | undefined {
    return this.#values.get(label);
  }

  isOpen(label: string): boolean {
    return !this.#values.has(label);
  }

  /** Whether every label has a value. */
  get areAllKnown(): boolean {
    return this.#bound.length === this.#places.size;
  }

  /** Whether an observed effect gives equal labels equal values, and open labels a free value. */
  permit({ labels }: Wanted, { texts }: ObservedGroup): boolean {
    return labels.every(({ label, slot, place }) => {
      const text = texts[slot] as string;
      const first = labels.find((other) => other.label === label);
      if (texts[first?.slot ?? slot] !== text) return false;
      return !this.isOpen(label) || this.#isFree(label, place, text);
    });
  }

  /**
   * Binds an open label to a value. Returns false if another label of the same place has that
   * value.
   */
  bind(label: string, text: string): boolean {
    const places = [...(this.#places.get(label) ?? [])];
    const isFree = places.every((place) => this.#isFree(label, place, text));
    this.#bound.push(label);
    this.#values.set(label, isFree ? text : IMPOSSIBLE);
    if (isFree) for (const place of places) this.#owners.set(tokenText(place, text), label);
    return isFree;
  }

  /** How many labels have a value. Pass it to {@link takeBack} to return to this state. */
  get mark(): number {
    return this.#bound.length;
  }

  /** The labels bound since the mark. */
  boundSince(mark: number): readonly string[] {
    return this.#bound.slice(mark);
  }

  /** Unbinds all labels bound since the mark. */
  takeBack(mark: number): void {
    for (const label of this.#bound.splice(mark)) {
      const text = this.#values.get(label) as string;
      this.#values.delete(label);
      if (text === IMPOSSIBLE) continue;
      for (const place of this.#places.get(label) ?? [])
        this.#owners.delete(tokenText(place, text));
    }
  }

  #isFree(label: string, place: string, text: string): boolean {
    return (this.#owners.get(tokenText(place, text)) ?? label) === label;
  }
}

/** A unique text for a value of a place. */
function tokenText(place: string, text: string): string {
  return `${place.length}:${place}${text}`;
}

/** The same approved effects, whose generated cells are independent of each other. */
export function withoutLabels(wanted: readonly Wanted[]): readonly Wanted[] {
  return wanted.map((one) => ({ ...one, labels: [] }));
}

/**
 * The same approved effects with only the labels whose value relates several cells. A label that
 * occurs once is left out if all values observed in its place differ, because any choice then
 * differs from every other label's. This is the usual new row whose identifier nothing refers to.
 */
export function withRelatedLabels(
  wanted: readonly Wanted[],
  observed: readonly ObservedGroup[],
): readonly Wanted[] {
  const uses = new Map<string, number>();
  const places = new Set<string>();
  for (const { labels, effect } of wanted)
    for (const { label, place } of labels) {
      uses.set(label, (uses.get(label) ?? 0) + effect.count);
      places.add(place);
    }
  const repeated = findRepeated(places, observed);
  const isRelated = ({ label, place }: LabelledCell) =>
    uses.get(label) !== 1 || repeated.has(place);
  return wanted.map((one) => ({ ...one, labels: one.labels.filter(isRelated) }));
}

/** The places in which the same value was observed more than once. */
function findRepeated(
  places: ReadonlySet<string>,
  observed: readonly ObservedGroup[],
): ReadonlySet<string> {
  const repeated = new Set<string>();
  const seen = new Set<string>();
  for (const { shape, texts, effects } of observed) {
    shape.slots.forEach(({ place }, slot) => {
      if (!places.has(place)) return;
      const token = tokenText(place, texts[slot] as string);
      if (seen.has(token) || effects.length > 1) repeated.add(place);
      seen.add(token);
    });
  }
  return repeated;
}
