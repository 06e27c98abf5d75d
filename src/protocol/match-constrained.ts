import { invariant } from '../errors.ts';
import type { Budget } from './budget.ts';
import { assign, type Pairing, type Sides } from './match-assignment.ts';
import { Candidates, type MatchEvidence } from './match-candidates.ts';
import { LabelValues, withoutLabels, withRelatedLabels } from './match-labels.ts';
import { LabelSearch } from './match-search.ts';
import type { ObservedGroup, Wanted } from './match-shape.ts';

/** The result for approved effects with constraints. */
type ConstrainedMatch =
  | { readonly kind: 'perfect'; readonly pairings: readonly Pairing[] }
  | { readonly kind: 'budget' }
  | {
      readonly kind: 'partial';
      readonly reason: 'effects' | 'labels';
      readonly pairings: readonly Pairing[];
    };

/**
 * Matches approved effects that have constraints with the observed effects left over by exact ones.
 * Labels are ignored first: if effects are left over then, the bags differ for any label values.
 * `differs` means that counting exact effects has already found a difference.
 */
export function matchConstrained(
  wanted: readonly Wanted[],
  observed: readonly ObservedGroup[],
  context: { readonly evidence: MatchEvidence; readonly budget: Budget; readonly differs: boolean },
): ConstrainedMatch {
  const { evidence, budget, differs } = context;
  const candidates = new Candidates(observed, evidence, budget);
  const anchored = anchoredEffects(wanted, candidates);
  const sides = { wanted: withoutLabels(anchored), observed, candidates, budget };
  const { complete, pairings } = assign(sides, new LabelValues([]));
  if (budget.exhausted) return { kind: 'budget' };
  if (!complete || differs || anchored.length < wanted.length)
    return { kind: 'partial', reason: 'effects', pairings };
  const related = withRelatedLabels(wanted, observed);
  const isDecided = related.every(({ labels }) => labels.length === 0);
  return isDecided ? { kind: 'perfect', pairings } : matchLabelled({ ...sides, wanted: related });
}

/** A label that no cell ties to backend evidence could have any value, so nothing matches it. */
function anchoredEffects(wanted: readonly Wanted[], candidates: Candidates): readonly Wanted[] {
  const cells = wanted.flatMap(({ labels }) => labels);
  const anchors = cells.filter((cell) => candidates.hasEvidence(cell));
  const anchored = new Set(anchors.map(({ label }) => label));
  return wanted.filter(({ labels }) => labels.every(({ label }) => anchored.has(label)));
}

function matchLabelled(sides: Sides): ConstrainedMatch {
  const { wanted, budget } = sides;
  const labels = new LabelValues(wanted);
  const search = new LabelSearch(sides, labels);
  search.deduce();
  const deduced = assign(sides, labels);
  if (budget.exhausted) return { kind: 'budget' };
  if (!deduced.complete) return { kind: 'partial', reason: 'labels', pairings: deduced.pairings };
  const solution = labels.areAllKnown ? deduced : search.guess();
  if (budget.exhausted) return { kind: 'budget' };
  // Without a solution, this shows the pairs that break one assignment.
  const { pairings } = solution ?? deduced;
  const agreeing = agreeingPairs(sides, pairings);
  if (solution === undefined) return { kind: 'partial', reason: 'labels', pairings: agreeing };
  invariant(agreeing.length === pairings.length, 'a match found respects every label');
  return { kind: 'perfect', pairings };
}

/**
 * Accepts pairs that agree with those accepted before: equal labels have equal values, and
 * different labels of one place have different values. Rows in which values originate come before
 * rows that refer to them, so that the reference is blamed for a contradiction.
 */
function agreeingPairs(
  { wanted, candidates }: Sides,
  pairings: readonly Pairing[],
): readonly Pairing[] {
  const values = new LabelValues(wanted);
  const { origins = [], references = [] } = Object.groupBy(pairings, ({ wanted: { labels } }) =>
    labels.every((cell) => candidates.hasEvidence(cell)) ? 'origins' : 'references',
  );
  return [...origins, ...references].filter(({ wanted: { labels }, observed }) => {
    const { mark } = values;
    const agrees = labels.every(({ label, slot }) => {
      const text = observed.texts[slot] as string;
      return values.isOpen(label) ? values.bind(label, text) : values.valueOf(label) === text;
    });
    if (!agrees) values.takeBack(mark);
    return agrees;
  });
}
