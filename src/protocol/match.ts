import { invariant, unreachable } from '../errors.ts';
import { EffectBag } from './bag.ts';
import { Budget } from './budget.ts';
import { type Diff, diffOf } from './diff.ts';
import type { ApprovedEffect, Effect } from './effect.ts';
import type { MatchEvidence } from './match-candidates.ts';
import { matchConstrained } from './match-constrained.ts';
import { ExactCount, type Remainder } from './match-count.ts';
import type { Prepared } from './match-prepare.ts';
import { type Found, isVolatileOnly, layOutFound, rowIdentity, shapeText } from './match-shape.ts';

export { type Prepared, prepareApproved } from './match-prepare.ts';

/**
 * What comparison may rely on beside the two bags. `budget` bounds the steps that constraints may
 * cost.
 */
export interface MatchContext extends MatchEvidence {
  readonly budget?: number;
}

/**
 * Whether two bags are equal. Reason `labels`: every effect is there, but generated identifiers
 * contradict.
 */
export type MatchResult =
  | { readonly kind: 'equal' }
  | { readonly kind: 'different'; readonly reason: 'effects' | 'labels'; readonly diff: Diff }
  | { readonly kind: 'budget'; readonly steps: number };

const BUDGET_BASE = 500_000;
/** Large bags get an allowance per effect: the bound is on difficulty, not on size. */
const BUDGET_PER_EFFECT = 32;

/**
 * Compares A with E as multisets. Exact effects are counted first, which takes nothing away from
 * the others: an exact effect can only be matched by observed effects with its key, and these are
 * all alike, so whichever of them it takes, equally many are left. Only what remains is matched
 * with the effects that have constraints.
 */
export function matchBags(
  prepared: Prepared,
  observed: readonly Effect[],
  context: MatchContext,
): MatchResult {
  const count = new ExactCount(prepared, observed);
  const missing = count.missing();
  const sorted = sortRemainders(prepared, count);
  const differs = missing.length > 0 || sorted.strange.some(({ required }) => required > 0);
  const strange = sorted.strange.flatMap(({ effects }) => effects);
  if (prepared.constrained.length === 0) {
    if (!differs) return { kind: 'equal' };
    return different({ prepared, taken: count.taken, unmatched: strange }, missing, 'effects');
  }
  const { comparable, found } = sorted;
  const allowance = BUDGET_PER_EFFECT * (prepared.constrained.length + found.length);
  const budget = new Budget(context.budget ?? BUDGET_BASE + allowance);
  const match = matchConstrained({
    wanted: prepared.constrained,
    found,
    evidence: context,
    budget,
    differs,
  });
  switch (match.kind) {
    case 'perfect':
      return { kind: 'equal' };
    case 'budget':
      return { kind: 'budget', steps: budget.spent };
    case 'partial': {
      const matched = comparable.flatMap(({ effects }, position) =>
        effects.slice(0, match.matched[position]),
      );
      const unmatched = comparable.flatMap(({ effects }, position) =>
        effects.slice(match.matched[position]),
      );
      return different(
        { prepared, taken: count.taken.concat(matched), unmatched: strange.concat(unmatched) },
        [...missing, ...match.missing],
        match.reason,
      );
    }
    default:
      return unreachable(match);
  }
}

interface SortedRemainders {
  /**
   * Observed effects of a shape that an effect with constraints has, and the same laid out for
   * matching.
   */
  readonly comparable: readonly Remainder[];
  readonly found: readonly Found[];
  readonly strange: readonly Remainder[];
}

function sortRemainders(prepared: Prepared, count: ExactCount): SortedRemainders {
  const comparable: Remainder[] = [];
  const found: Found[] = [];
  const strange: Remainder[] = [];
  for (const remainder of count.remainders.values()) {
    const { effects, required } = remainder;
    const effect = effects[0] as Effect;
    const shape = prepared.shapes.get(shapeText(effect, prepared.volatile.get(effect.target)));
    if (shape === undefined) {
      strange.push(remainder);
    } else {
      comparable.push(remainder);
      found.push(layOutFound(effect, shape, { required, optional: effects.length - required }));
    }
  }
  return { comparable, found, strange };
}

interface Compared {
  readonly prepared: Prepared;
  /** Observed effects that A accounts for, where their target has volatile columns. */
  readonly taken: readonly Effect[];
  readonly unmatched: readonly Effect[];
}

function different(
  { prepared, taken, unmatched }: Compared,
  missing: readonly ApprovedEffect[],
  reason: 'effects' | 'labels',
): MatchResult {
  const named = new Set(taken.map(rowIdentity));
  const extra = new EffectBag();
  for (const effect of unmatched) {
    const skip = prepared.volatile.get(effect.target);
    const row = rowIdentity(effect);
    const negligible =
      skip !== undefined && row !== undefined && isVolatileOnly(effect, skip) && named.has(row);
    if (!negligible) extra.add(effect);
  }
  invariant(missing.length > 0 || extra.size > 0, 'bags that differ have a difference');
  return {
    kind: 'different',
    reason,
    diff: diffOf(
      missing,
      [...extra.entries()].map(([, effect]) => effect),
    ),
  };
}
