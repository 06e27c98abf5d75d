import { invariant } from '../errors.ts';
import {
  type Assignment,
  assign,
  findCandidates,
  groupWanted,
  type Sides,
  type WantedGroup,
} from './match-assignment.ts';
import type { LabelValues } from './match-labels.ts';
import type { LabelledCell, ObservedGroup, Wanted } from './match-shape.ts';

/** A label whose value is guessed, and the values left to try, the next one last. */
interface Guess {
  readonly label: string;
  readonly texts: string[];
  readonly mark: number;
  /** Groups with both open and known labels: they have few candidates. */
  readonly frontier: readonly WantedGroup[];
}

const isAnyCell = () => true;

/**
 * Searches for values of generated labels under which everything matches. Only label values are
 * guessed: once all are known, the rest is a plain assignment.
 */
export class LabelSearch {
  readonly #sides: Sides;
  readonly #labels: LabelValues;
  readonly #groups: readonly WantedGroup[];
  readonly #mentions = new Map<string, WantedGroup[]>();

  constructor(sides: Sides, labels: LabelValues) {
    this.#sides = sides;
    this.#labels = labels;
    this.#groups = groupWanted(sides.wanted, labels).filter(({ sample }) => this.#findOpen(sample));
    for (const group of this.#groups) {
      for (const { label } of group.sample.labels) {
        const mentions = this.#mentions.get(label);
        if (mentions === undefined) this.#mentions.set(label, [group]);
        else if (mentions.at(-1) !== group) mentions.push(group);
      }
    }
  }

  /**
   * Deduces the label values that hold in every possible match. This decides typical approvals in
   * linear time. Cells with backend evidence come first: in a contradiction, the origin of a value
   * is right. A contradiction does not stop the deduction; it leaves the affected effects without
   * candidates.
   */
  deduce(): void {
    const isOrigin = (cell: LabelledCell) => this.#sides.candidates.hasEvidence(cell);
    for (const isHeard of [isOrigin, isAnyCell]) {
      const queue = [...this.#groups];
      for (const group of queue) {
        const open = group.sample.labels.filter(({ label }) => this.#labels.isOpen(label));
        if (open.some(isHeard)) this.#examine(group, isHeard, queue);
      }
    }
  }

  /**
   * Guesses the labels that are still open, one at a time, and undoes guesses that lead to a
   * contradiction. Returns undefined if nothing is left to try or the budget is exhausted.
   */
  guess(): Assignment | undefined {
    const guesses: Guess[] = [];
    let isPossible = true;
    while (!this.#sides.budget.exhausted) {
      if (isPossible && this.#labels.areAllKnown) {
        const assignment = assign(this.#sides, this.#labels);
        if (assignment.complete) return assignment;
      } else if (isPossible) {
        guesses.push(this.#nextGuess(guesses.at(-1)));
      }
      const guess = guesses.at(-1);
      if (guess === undefined) return undefined;
      this.#labels.takeBack(guess.mark);
      const text = guess.texts.pop();
      isPossible = text !== undefined && this.#assume(guess.label, text);
      if (text === undefined) guesses.pop();
    }
    return undefined;
  }

  #findOpen({ labels }: Wanted): LabelledCell | undefined {
    return labels.find(({ label }) => this.#labels.isOpen(label));
  }

  #assume(label: string, text: string): boolean {
    if (!this.#labels.bind(label, text)) return false;
    const queue = [...(this.#mentions.get(label) ?? [])];
    for (const group of queue) if (!this.#examine(group, isAnyCell, queue)) return false;
    return true;
  }

  /**
   * Binds the labels for which all candidates of a group have the same value, and queues the groups
   * that mention them. Returns false if the group has too few candidates or a label cannot have
   * that value.
   */
  #examine(
    { sample, count }: WantedGroup,
    isHeard: (cell: LabelledCell) => boolean,
    queue: WantedGroup[],
  ): boolean {
    const { candidates, budget } = this.#sides;
    let agreeing = sample.labels.filter((cell) => this.#labels.isOpen(cell.label) && isHeard(cell));
    let room = 0;
    let first: ObservedGroup | undefined;
    for (const observed of candidates.lookUp(sample, this.#labels)) {
      if (room >= count && agreeing.length === 0) return true;
      if (!budget.spend()) return false;
      if (!candidates.admits(sample, observed, this.#labels)) continue;
      first ??= observed;
      room += observed.effects.length;
      agreeing = agreeing.filter(({ slot }) => observed.texts[slot] === first?.texts[slot]);
    }
    let isPossible = room >= count;
    for (const { label, slot } of agreeing) {
      const text = first?.texts[slot];
      if (text === undefined || !this.#labels.isOpen(label)) continue;
      if (!this.#labels.bind(label, text)) isPossible = false;
      for (const mention of this.#mentions.get(label) ?? []) queue.push(mention);
    }
    return isPossible;
  }

  /** Picks an open label, next to known ones if possible. */
  #nextGuess(last: Guess | undefined): Guess {
    const { mark } = this.#labels;
    const isOpen = ({ sample }: WantedGroup) => this.#findOpen(sample) !== undefined;
    const news = this.#labels.boundSince(last?.mark ?? 0);
    const touched = news.flatMap((label) => this.#mentions.get(label) ?? []);
    const frontier = [...new Set([...(last?.frontier ?? []), ...touched])].filter(isOpen);
    const group = frontier[0] ?? this.#groups.find(isOpen);
    const cell = group && this.#findOpen(group.sample);
    invariant(group !== undefined && cell !== undefined, 'an open label is mentioned somewhere');
    const found = findCandidates(this.#sides, group.sample, this.#labels);
    const texts = new Set(found.map(({ texts }) => texts[cell.slot] as string));
    return { label: cell.label, texts: [...texts], mark, frontier };
  }
}
