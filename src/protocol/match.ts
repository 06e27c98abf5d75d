import { invariant, unreachable } from '../errors.ts';
import { countEffects } from './bag.ts';
import { Budget } from './budget.ts';
import { type CountedEffect, type Diff, diffOf } from './diff.ts';
import type { ApprovedEffect, Effect } from './effect.ts';
import type { GeneratedValues } from './generated.ts';
import type { Pairing } from './match-assignment.ts';
import type { MatchEvidence } from './match-candidates.ts';
import { matchConstrained } from './match-constrained.ts';
import { ExactCount, type Remainder } from './match-exact.ts';
import type { Prepared } from './match-prepare.ts';
import { layOutObserved, type ObservedGroup, shapeText } from './match-shape.ts';
import type { Value } from './value.ts';
import { isVolatileOnly, rowIdentity } from './volatile.ts';

export { exactEffects, type Prepared, prepareApproved } from './match-prepare.ts';

/** What comparison may use besides the two bags. `budget` limits the steps spent on constraints. */
export interface MatchContext extends MatchEvidence {
  readonly budget?: number;
}

/**
 * Whether two bags are equal. Reason `labels` means that every effect is present, but generated
 * identifiers contradict each other.
 */
export type MatchResult =
  | { readonly kind: 'equal'; readonly generated?: GeneratedValues }
  | { readonly kind: 'different'; readonly reason: 'effects' | 'labels'; readonly diff: Diff }
  | { readonly kind: 'budget'; readonly steps: number };

const BUDGET_BASE = 500_000;
/** Large bags get an allowance per effect: the budget limits difficulty, not size. */
const BUDGET_PER_EFFECT = 32;

/**
 * Compares A with E as multisets. Exact effects are counted first, at no cost to the others: only
 * observed effects with the same comparison key can match an exact effect, and these are all alike,
 * so it does not matter which are taken. The rest is matched with the effects that have
 * constraints.
 */
export function matchBags(
  prepared: Prepared,
  observed: readonly Effect[],
  context: MatchContext,
): MatchResult {
  const count = new ExactCount(prepared, observed);
  const missing = count.missing();
  const { comparable, strange } = sortRemainders(prepared, count);
  const differs = missing.length > 0 || strange.some(({ required }) => required > 0);
  const { constrained: wanted } = prepared;
  if (wanted.length === 0 && !differs) return { kind: 'equal' };
  const allowance = BUDGET_PER_EFFECT * (wanted.length + comparable.length);
  const budget = new Budget(context.budget ?? BUDGET_BASE + allowance);
  const match = matchConstrained(wanted, comparable, { evidence: context, budget, differs });
  switch (match.kind) {
    case 'perfect':
      return { kind: 'equal', ...generatedBy(match.pairings) };
    case 'budget':
      return { kind: 'budget', steps: budget.spent };
    case 'partial': {
      const matched = countMatched(match.pairings);
      const matchedOf = (one: object) => matched.get(one) ?? 0;
      const unmet = wanted
        .map(({ effect, cells }) => ({ ...effect, count: effect.count - matchedOf(cells) }))
        .filter((effect) => effect.count > 0);
      const taken = comparable.flatMap((one) => one.effects.slice(0, matchedOf(one)));
      const unmatched = comparable.flatMap((one) => one.effects.slice(matchedOf(one)));
      const extra = extraEffects(
        prepared,
        count.taken.concat(taken),
        strange.flatMap(({ effects }) => effects).concat(unmatched),
      );
      return differBy([...missing, ...unmet], extra, match.reason);
    }
    default:
      return unreachable(match);
  }
}

/** How often each observed effect is matched, and each approved one, known by its cells. */
function countMatched(pairings: readonly Pairing[]): ReadonlyMap<object, number> {
  const matched = new Map<object, number>();
  for (const { wanted, observed } of pairings)
    for (const one of [wanted.cells, observed]) matched.set(one, (matched.get(one) ?? 0) + 1);
  return matched;
}

/**
 * Whether A is exact and these writes, one by one, are all of A. If so, E equals A: the effects of
 * A are on different rows, so no two writes are on the same row. If not, nothing is known yet, and
 * the bags must be compared.
 */
export function matchWrites(prepared: Prepared, writes: Iterable<Effect | undefined>): boolean {
  const { isSingle, index, exact } = prepared;
  if (!isSingle) return false;
  const isTaken = new Uint8Array(exact.length);
  let taken = 0;
  for (const effect of writes) {
    const position = effect && index.find(effect, undefined);
    if (position === undefined || isTaken[position] === 1) return false;
    isTaken[position] = 1;
    taken += 1;
  }
  return taken === exact.length;
}

/** The value of every label, if there are labels. */
function generatedBy(pairings: readonly Pairing[]): { readonly generated?: GeneratedValues } {
  const generated = new Map<string, Value>();
  for (const { wanted, observed } of pairings)
    wanted.cells.forEach((cell, slot) => {
      if ('generated' in cell) generated.set(cell.generated, observed.values[slot] as Value);
    });
  return generated.size === 0 ? {} : { generated };
}

interface SortedRemainders {
  /** Observed effects with the shape of an effect that has constraints. */
  readonly comparable: readonly ObservedGroup[];
  readonly strange: readonly Remainder[];
}

function sortRemainders(prepared: Prepared, count: ExactCount): SortedRemainders {
  const comparable: ObservedGroup[] = [];
  const strange: Remainder[] = [];
  for (const remainder of count.remainders.values()) {
    const effect = remainder.effects[0] as Effect;
    const shape = prepared.shapes.get(shapeText(effect, prepared.volatile.get(effect.target)));
    if (shape === undefined) strange.push(remainder);
    else comparable.push(...layOutObserved(remainder, shape));
  }
  return { comparable, strange };
}

/**
 * Effects that nothing in A accounts for, except updates of volatile columns on rows that A names.
 */
function extraEffects(
  { volatile }: Prepared,
  taken: readonly Effect[],
  unmatched: readonly Effect[],
): readonly CountedEffect[] {
  const named = new Set(taken.map(rowIdentity));
  return countEffects(
    unmatched.filter((effect) => {
      const row = rowIdentity(effect);
      return row === undefined || !named.has(row) || !isVolatileOnly(effect, volatile);
    }),
  );
}

function differBy(
  missing: readonly ApprovedEffect[],
  extra: readonly CountedEffect[],
  reason: 'effects' | 'labels',
): MatchResult {
  invariant(missing.length > 0 || extra.length > 0, 'bags that differ have a difference');
  return { kind: 'different', reason, diff: diffOf(missing, extra) };
}
