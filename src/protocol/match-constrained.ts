import { invariant } from '../errors.ts';
import type { ApprovedEffect } from './effect.ts';
import { type Assignment, assign, type Pairing, type Sides } from './match-assignment.ts';
import { LabelValues, relatedLabels, tokenText } from './match-labels.ts';
import { LabelSearch } from './match-search.ts';
import type { ObservedGroup } from './match-shape.ts';

/**
 * The result for approved effects with constraints. `matched` counts how many of each observed
 * effect are used.
 */
type ConstrainedMatch =
  | { readonly kind: 'perfect'; readonly pairings: readonly Pairing[] }
  | { readonly kind: 'budget' }
  | {
      readonly kind: 'partial';
      readonly reason: 'effects' | 'labels';
      readonly missing: readonly ApprovedEffect[];
      readonly matched: ReadonlyMap<ObservedGroup, number>;
    };

/**
 * Matches approved effects that have constraints with the observed effects left over by exact ones.
 * Labels are ignored first: if effects are left over then, the bags differ for any label values.
 * `differs` means that counting exact effects has already found a difference.
 */
export function matchConstrained(sides: Sides, differs: boolean): ConstrainedMatch {
  const { wanted, observed, budget } = sides;
  const plain = assign(sides, new LabelValues([], new Set()));
  if (budget.exhausted) return { kind: 'budget' };
  if (!plain.complete || differs) return partOf(plain, 'effects');
  const related = relatedLabels(wanted, observed);
  return related.size === 0
    ? { kind: 'perfect', pairings: plain.pairings }
    : matchLabelled(sides, related);
}

function matchLabelled(sides: Sides, related: ReadonlySet<string>): ConstrainedMatch {
  const { wanted, budget } = sides;
  const labels = new LabelValues(wanted, related);
  const search = new LabelSearch(sides, labels);
  search.deduce();
  const deduced = assign(sides, labels);
  if (budget.exhausted) return { kind: 'budget' };
  if (!deduced.complete) return partOf(deduced, 'labels');
  const solution = labels.areAllKnown ? deduced : search.guess(deduced.pairings);
  if (budget.exhausted) return { kind: 'budget' };
  if (solution === undefined) return contradictionIn(sides, deduced.pairings);
  invariant(
    splitByLabels(sides, solution.pairings).against.length === 0,
    'a match found respects every label',
  );
  return { kind: 'perfect', pairings: solution.pairings };
}

function partOf({ missing, pairings }: Assignment, reason: 'effects' | 'labels'): ConstrainedMatch {
  return { kind: 'partial', reason, missing, matched: tally(pairings) };
}

/**
 * Every effect has a counterpart, but no assignment respects the labels. Shows the pairs that break
 * one assignment.
 */
function contradictionIn(sides: Sides, pairings: readonly Pairing[]): ConstrainedMatch {
  const { agreed, against } = splitByLabels(sides, pairings);
  const missing = against.map(({ wanted, units }) => ({ ...wanted.effect, count: units }));
  return { kind: 'partial', reason: 'labels', missing, matched: tally(agreed) };
}

function tally(pairings: readonly Pairing[]): ReadonlyMap<ObservedGroup, number> {
  const matched = new Map<ObservedGroup, number>();
  for (const { observed, units } of pairings)
    matched.set(observed, (matched.get(observed) ?? 0) + units);
  return matched;
}

/**
 * Accepts pairs that agree with those accepted before: equal labels have equal values, and
 * different labels of one place have different values. Rows in which values originate come before
 * rows that refer to them, so that the reference is blamed for a contradiction.
 */
function splitByLabels({ candidates }: Sides, pairings: readonly Pairing[]) {
  const values = new Map<string, string>();
  const owners = new Map<string, string>();
  const agreed: Pairing[] = [];
  const against: Pairing[] = [];
  const isOrigin = ({ wanted }: Pairing) =>
    wanted.labels.every((cell) => candidates.hasEvidence(cell));
  const { origins = [], references = [] } = Object.groupBy(pairings, (pairing) =>
    isOrigin(pairing) ? 'origins' : 'references',
  );
  for (const pairing of [...origins, ...references]) {
    const claims = pairing.wanted.labels.map(({ label, slot, place }) => {
      const text = pairing.observed.texts[slot] as string;
      return { label, text, token: tokenText(place, text) };
    });
    const agrees = claims.every(
      ({ label, text, token }) =>
        (values.get(label) ?? text) === text &&
        (owners.get(token) ?? label) === label &&
        claims.every((other) => other.token !== token || other.label === label),
    );
    (agrees ? agreed : against).push(pairing);
    if (!agrees) continue;
    for (const { label, text, token } of claims) {
      values.set(label, text);
      owners.set(token, label);
    }
  }
  return { agreed, against };
}
