import { comparisonKey } from './bag.ts';
import type { ApprovedEffect, Effect } from './effect.ts';
import type { Prepared } from './match-prepare.ts';
import { splitTouches } from './volatile.ts';

/** Equal observed effects that no exact effect of A accounts for. */
export interface Remainder {
  /** Required effects come first. The others may be left over. */
  readonly effects: Effect[];
  required: number;
}

/** The result of counting observed effects against the exact effects of A. */
export class ExactCount {
  readonly remainders = new Map<string, Remainder>();
  /** Observed effects that an exact effect accounts for, on targets with volatile columns. */
  readonly taken: Effect[] = [];
  readonly #prepared: Prepared;
  readonly #left: number[];

  constructor(prepared: Prepared, observed: readonly Effect[]) {
    this.#prepared = prepared;
    this.#left = prepared.counts.slice();
    const { required, optional } = splitTouches(observed, prepared.volatile);
    for (const effect of required) this.#take(effect, 1);
    for (const effect of optional) this.#take(effect, 0);
  }

  /** The exact effects of A that were not observed, with their counts. */
  missing(): readonly ApprovedEffect[] {
    const missing: ApprovedEffect[] = [];
    this.#left.forEach((count, position) => {
      if (count > 0) missing.push({ ...(this.#prepared.exact[position] as ApprovedEffect), count });
    });
    return missing;
  }

  #take(effect: Effect, required: 0 | 1): void {
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
      this.remainders.set(key, { effects: [effect], required });
    } else {
      remainder.effects.push(effect);
      remainder.required += required;
    }
  }
}
