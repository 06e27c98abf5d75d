import { comparisonKey } from './bag.ts';
import type { ApprovedEffect, Effect } from './effect.ts';
import type { Prepared } from './match-prepare.ts';
import { isVolatileOnly, rowIdentity } from './match-shape.ts';

/** Equal observed effects that no exact effect of A accounts for. */
export interface Remainder {
  /** Those that must be accounted for come first. */
  readonly effects: Effect[];
  required: number;
}

/** The result of counting observed effects against the exact effects of A. */
export class ExactCount {
  readonly remainders = new Map<string, Remainder>();
  /** Observed effects on targets with volatile columns that an exact effect accounts for. */
  readonly taken: Effect[] = [];
  readonly #prepared: Prepared;
  readonly #left: number[];

  constructor(prepared: Prepared, observed: readonly Effect[]) {
    this.#prepared = prepared;
    this.#left = prepared.counts.slice();
    const touches: Effect[] = [];
    for (const effect of observed) {
      const skip = prepared.volatile.get(effect.target);
      if (skip !== undefined && isVolatileOnly(effect, skip)) touches.push(effect);
      else this.#take(effect, true);
    }
    if (touches.length > 0) this.#takeTouches(touches, observed);
  }

  /** The exact effects of A that were not observed, with how many of each. */
  missing(): readonly ApprovedEffect[] {
    const missing: ApprovedEffect[] = [];
    this.#left.forEach((count, position) => {
      if (count > 0) missing.push({ ...(this.#prepared.exact[position] as ApprovedEffect), count });
    });
    return missing;
  }

  /**
   * An update that touched volatile columns only may be left over if another effect of E names its
   * row, which has to be matched for E to equal A. Without such an effect one touch of the row must
   * be accounted for itself, and the others may be left over.
   */
  #takeTouches(touches: readonly Effect[], observed: readonly Effect[]): void {
    const touching = new Set(touches);
    const named = new Set<string | undefined>();
    for (const effect of observed) if (!touching.has(effect)) named.add(rowIdentity(effect));
    for (const effect of touches) {
      const row = rowIdentity(effect);
      this.#take(effect, row === undefined || !named.has(row));
      named.add(row);
    }
  }

  #take(effect: Effect, required: boolean): void {
    const skip = this.#prepared.volatile.get(effect.target);
    const position = this.#prepared.index.find(effect, skip);
    const left = position === undefined ? 0 : (this.#left[position] ?? 0);
    if (position !== undefined && left > 0) {
      this.#left[position] = left - 1;
      if (skip !== undefined) this.taken.push(effect);
      return;
    }
    const key = comparisonKey(effect, skip);
    const remainder = this.remainders.get(key);
    if (remainder === undefined) {
      this.remainders.set(key, { effects: [effect], required: required ? 1 : 0 });
    } else {
      remainder.effects.push(effect);
      if (required) remainder.required += 1;
    }
  }
}
