import { invariant } from '../errors.ts';
import type { Budget } from './budget.ts';
import type { ApprovedEffect } from './effect.ts';
import { Admission, Candidates, type MatchEvidence } from './match-candidates.ts';
import { type Field, Graph, type Pairing } from './match-graph.ts';
import { Deduction, relatedLabels, tokenText, WITHOUT_LABELS } from './match-labels.ts';
import { LabelSearch } from './match-search.ts';
import type { Found, Wanted } from './match-shape.ts';

/**
 * What became of the approved effects with constraints. `matched` says how many of each observed
 * effect are used.
 */
export type ConstrainedMatch =
  | { readonly kind: 'perfect' | 'budget' }
  | {
      readonly kind: 'partial';
      readonly reason: 'effects' | 'labels';
      readonly missing: readonly ApprovedEffect[];
      readonly matched: readonly number[];
    };

/**
 * What is left to compare once exact effects are counted. `differs` when that has already found a
 * difference.
 */
export interface Constrained {
  readonly wanted: readonly Wanted[];
  readonly found: readonly Found[];
  readonly evidence: MatchEvidence;
  readonly budget: Budget;
  readonly differs: boolean;
}

/**
 * Matches approved effects that have constraints with the observed effects that exact ones left
 * over. First without labels: if that leaves something over, the bags differ whatever the labels
 * say. Then with them.
 */
export function matchConstrained({
  wanted,
  found,
  evidence,
  budget,
  differs,
}: Constrained): ConstrainedMatch {
  const admission = new Admission(evidence, wanted, budget);
  const field: Field = {
    wanted,
    found,
    admission,
    budget,
    candidates: new Candidates(found, budget),
  };
  const plain = new Graph(field, WITHOUT_LABELS);
  const covered = plain.flow.fill(budget);
  if (budget.exhausted) return { kind: 'budget' };
  if (!covered || differs) return partOf(field, plain, 'effects');
  const related = relatedLabels(wanted, found);
  return related.size === 0 ? { kind: 'perfect' } : matchLabelled(field, related);
}

function matchLabelled(field: Field, related: ReadonlySet<string>): ConstrainedMatch {
  const { wanted, found, candidates, admission, budget } = field;
  const deduction = new Deduction(wanted, found, related);
  deduction.run(candidates, admission, budget);
  const graph = new Graph(field, deduction);
  const covered = graph.flow.fill(budget);
  if (budget.exhausted) return { kind: 'budget' };
  if (!covered) return partOf(field, graph, 'labels');
  const pairings = graph.pairings();
  const search = new LabelSearch(graph, found, deduction.open, budget);
  const solved = search.run();
  if (budget.exhausted) return { kind: 'budget' };
  if (!solved) return contradictionIn(field, pairings);
  invariant(
    splitByLabels(field, graph.pairings()).against.length === 0,
    'a match found respects every label',
  );
  return { kind: 'perfect' };
}

function partOf({ found }: Field, graph: Graph, reason: 'effects' | 'labels'): ConstrainedMatch {
  return {
    kind: 'partial',
    reason,
    missing: graph.missing(),
    matched: tally(found, graph.pairings()),
  };
}

/**
 * Every effect has its counterpart, but no choice of them respects the labels: shows the pairs that
 * break one choice.
 */
function contradictionIn(field: Field, pairings: readonly Pairing[]): ConstrainedMatch {
  const { agreed, against } = splitByLabels(field, pairings);
  const missing = against.map(({ wanted, units }) => ({ ...wanted.effect, count: units }));
  return { kind: 'partial', reason: 'labels', missing, matched: tally(field.found, agreed) };
}

function tally(found: readonly Found[], pairings: readonly Pairing[]): readonly number[] {
  const matched = found.map(() => 0);
  for (const { found: position, units } of pairings)
    matched[position] = (matched[position] ?? 0) + units;
  return matched;
}

/**
 * Takes pairs as long as they agree with those taken before: equal labels have equal values,
 * different labels of one place have different ones. Rows in which values originate come before
 * rows that refer to them, so that of two rows that contradict each other the reference is the
 * wrong one.
 */
function splitByLabels({ admission, found }: Field, pairings: readonly Pairing[]) {
  const values = new Map<string, string>();
  const takers = new Map<string, string>();
  const agreed: Pairing[] = [];
  const against: Pairing[] = [];
  const isOrigin = ({ wanted }: Pairing) =>
    wanted.labels.every(({ slot }) => admission.hasEvidence(wanted.shape, slot));
  for (const pairing of [
    ...pairings.filter(isOrigin),
    ...pairings.filter((pairing) => !isOrigin(pairing)),
  ]) {
    const { wanted } = pairing;
    const claims = wanted.labels.map(({ label, slot }) => {
      const text = found[pairing.found]?.texts[slot] as string;
      return { label, text, token: tokenText(wanted.shape.slots[slot]?.place as string, text) };
    });
    const agrees = claims.every(
      ({ label, text, token }) =>
        (values.get(label) ?? text) === text &&
        (takers.get(token) ?? label) === label &&
        claims.every((other) => other.token !== token || other.label === label),
    );
    (agrees ? agreed : against).push(pairing);
    if (!agrees) continue;
    for (const { label, text, token } of claims) {
      values.set(label, text);
      takers.set(token, label);
    }
  }
  return { agreed, against };
}
