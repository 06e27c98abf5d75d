import { valueText } from './bag.ts';
import type { Budget } from './budget.ts';
import type { ApprovedEffect } from './effect.ts';
import type { Candidates } from './match-candidates.ts';
import { type Demand, meetDemands, type Supply } from './match-flow.ts';
import type { LabelValues } from './match-labels.ts';
import type { ObservedGroup, Wanted } from './match-shape.ts';
import type { Value } from './value.ts';

/** The input of matching. */
export interface Sides {
  readonly wanted: readonly Wanted[];
  readonly observed: readonly ObservedGroup[];
  readonly candidates: Candidates;
  readonly budget: Budget;
}

/** Approved effects with the same requirements, counted together. */
export interface WantedGroup {
  readonly members: Wanted[];
  /** The first member represents all of them. */
  readonly sample: Wanted;
  count: number;
}

/** Some units of an approved effect and the observed effects they are matched with. */
export interface Pairing {
  readonly wanted: Wanted;
  readonly observed: ObservedGroup;
  readonly units: number;
}

/** Approved effects matched with observed ones, and the approved effects that are left over. */
export interface Assignment {
  /** Whether every approved effect and every required observed effect is matched. */
  readonly complete: boolean;
  readonly pairings: readonly Pairing[];
  readonly missing: readonly ApprovedEffect[];
}

interface Place extends Supply {
  readonly observed: ObservedGroup;
}

/** Matches as many effects as possible, given the label values that are known. */
export function assign(sides: Sides, labels: LabelValues): Assignment {
  const required = placesOf(sides.observed, ({ required }) => required);
  const optional = placesOf(sides.observed, ({ effects, required }) => effects.length - required);
  const groups = groupWanted(sides, labels);
  const demands = groups.map(({ sample, count }) => {
    const found = findCandidates(sides, sample, labels);
    const supplies = found.flatMap((one) => [required.get(one) ?? [], optional.get(one) ?? []]);
    return demandOf(count, supplies.flat());
  });
  const leftOver = demandOf(countLeftOver(sides), [...optional.values()]);
  const complete = meetDemands([...demands, leftOver], sides.budget);
  const dealt = groups.map((group, index) => dealOut(group, demands[index]?.used ?? new Map()));
  return {
    complete,
    pairings: dealt.flatMap(({ pairings }) => pairings),
    missing: dealt.flatMap(({ missing }) => missing),
  };
}

function placesOf(
  observed: readonly ObservedGroup[],
  countOf: (one: ObservedGroup) => number,
): ReadonlyMap<ObservedGroup, Place> {
  const places = new Map<ObservedGroup, Place>();
  for (const one of observed) {
    const free = countOf(one);
    if (free > 0) places.set(one, { observed: one, free, users: new Set() });
  }
  return places;
}

function demandOf(open: number, supplies: readonly Place[]): Demand<Place> {
  return { open, supplies, used: new Map() };
}

/** The observed effects that one approved effect could account for. */
export function findCandidates(
  { candidates, budget }: Sides,
  wanted: Wanted,
  labels: LabelValues,
): readonly ObservedGroup[] {
  if (budget.exhausted) return [];
  return candidates
    .lookUp(wanted, labels)
    .filter((observed) => budget.spend() && candidates.admits(wanted, observed, labels));
}

/**
 * How many observed effects must be left over. A demand for exactly this many makes both sides
 * equally large, so that they either match or differ visibly.
 */
function countLeftOver({ wanted, observed }: Sides): number {
  let units = 0;
  for (const { effects } of observed) units += effects.length;
  for (const { effect } of wanted) units -= effect.count;
  return Math.max(0, units);
}

/** Distributes the units of a group to its members, in order. */
function dealOut(
  { members }: WantedGroup,
  used: ReadonlyMap<Place, number>,
): Omit<Assignment, 'complete'> {
  const pairings: Pairing[] = [];
  const missing: ApprovedEffect[] = [];
  const parts = [...used].map(([{ observed }, units]) => ({ observed, units }));
  for (const wanted of members) {
    let open = wanted.effect.count;
    while (open > 0) {
      const part = parts[0];
      if (part === undefined) break;
      const units = Math.min(open, part.units);
      pairings.push({ wanted, observed: part.observed, units });
      open -= units;
      part.units -= units;
      if (part.units === 0) parts.shift();
    }
    if (open > 0) missing.push({ ...wanted.effect, count: open });
  }
  return { pairings, missing };
}

/** Groups approved effects that the same observed effects satisfy. */
export function groupWanted(
  { wanted, candidates }: Sides,
  labels: LabelValues,
): readonly WantedGroup[] {
  const groups = new Map<string, WantedGroup>();
  for (const one of wanted) {
    const signature = `${candidates.isAnchored(one) ? '' : '!'}${signatureOf(one, labels)}`;
    const group = groups.get(signature);
    if (group === undefined) {
      groups.set(signature, { members: [one], sample: one, count: one.effect.count });
    } else {
      group.members.push(one);
      group.count += one.effect.count;
    }
  }
  return [...groups.values()];
}

function signatureOf(wanted: Wanted, labels: LabelValues): string {
  let text = `${wanted.shape.text}=`;
  wanted.cells.forEach((cell, slot) => {
    const fixed = wanted.fixed[slot];
    if (fixed !== undefined) text += `v${fixed}`;
    else if ('generated' in cell) text += labelSignature(cell.generated, wanted, labels);
    else text += `c${valueText(cell as Value)}`;
  });
  return text;
}

function labelSignature(name: string, wanted: Wanted, labels: LabelValues): string {
  if (labels.isAnonymous(name)) return `g${wanted.labels.findIndex(({ label }) => label === name)}`;
  const value = labels.valueOf(name);
  return value === undefined ? `l${valueText(name)}` : `v${value}`;
}
