import type { ApprovedEffect, Effect } from './effect.ts';

/** An observed effect with its multiplicity. */
export interface CountedEffect extends Effect {
  readonly count: number;
}

/** How E differs from A. `altered` pairs what was approved with what was observed for the same target and key. */
export interface Diff {
  readonly extra: readonly CountedEffect[];
  readonly missing: readonly ApprovedEffect[];
  readonly altered: readonly { readonly approved: ApprovedEffect; readonly observed: CountedEffect }[];
  /** Entries left out of a stored diff because it was too large. */
  readonly omitted: number;
}
