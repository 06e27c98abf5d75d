import { valueText } from './bag.ts';
import type { Budget } from './budget.ts';
import type { Candidates } from './match-candidates.ts';
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

/** One approved effect and the observed effect it is matched with. */
export interface Pairing {
  readonly wanted: Wanted;
  readonly observed: ObservedGroup;
}

/** Which approved effects are matched with which observed ones. */
export interface Assignment {
  /** Whether every approved effect and every required observed effect is matched. */
  readonly complete: boolean;
  readonly pairings: readonly Pairing[];
}

/** Observed effects of which `free` are unused, and who uses the others. */
interface Supply {
  free: number;
  readonly users: Map<Demand, number>;
}

/** A demand for units from any of several supplies. `open` is how many it still needs. */
interface Demand {
  open: number;
  readonly supplies: readonly Supply[];
  /** The approved effects that the units are for, each as often as its count. */
  readonly members: Iterator<Wanted>;
}

/** Matches as many effects as possible, given the label values that are known. */
export function assign(sides: Sides, labels: LabelValues): Assignment {
  const { wanted, observed, budget } = sides;
  const supplies = new Map<ObservedGroup, Supply>();
  for (const one of observed) supplies.set(one, { free: one.effects.length, users: new Map() });
  const demandOf = (
    open: number,
    found: readonly ObservedGroup[],
    members: readonly Wanted[],
  ): Demand => ({
    open,
    supplies: found.map((one) => supplies.get(one) as Supply),
    members: unfold(members),
  });
  const demands = groupWanted(wanted, labels).map(({ members, sample, count }) =>
    demandOf(count, findCandidates(sides, sample, labels), members),
  );
  // Observed effects beyond what A asks for get a demand that only optional ones can meet. Both
  // sides then have the same size, so a complete assignment leaves nothing over.
  const surplus =
    observed.reduce((sum, { effects }) => sum + effects.length, 0) -
    demands.reduce((sum, { open }) => sum + open, 0);
  const optional = observed.filter(({ isRequired }) => !isRequired);
  demands.push(demandOf(Math.max(0, surplus), optional, []));
  const complete = meetDemands(demands, budget);
  const pairings: Pairing[] = [];
  for (const [one, { users }] of supplies)
    for (const [{ members }, units] of users)
      for (let unit = 0; unit < units; unit += 1) {
        const { value, done } = members.next();
        if (done !== true) pairings.push({ wanted: value, observed: one });
      }
  return { complete, pairings };
}

function* unfold(members: readonly Wanted[]): Generator<Wanted, undefined> {
  for (const wanted of members)
    for (let unit = 0; unit < wanted.effect.count; unit += 1) yield wanted;
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
 * Meets as many demands as possible and returns true if none stays open. Equal effects form one
 * demand or supply with a count, so a count of a million costs no more than one.
 */
function meetDemands(demands: readonly Demand[], budget: Budget): boolean {
  // No path leads from supplies that a failed search reached to free units, whatever is used later
  // in this call: a later path that entered them would have to leave them again.
  const exhausted = new Set<Supply>();
  for (const demand of demands) {
    // Enough for most demands, and linear for a demand with a large count.
    for (const supply of demand.supplies) {
      if (demand.open === 0 || !budget.spend()) break;
      use(demand, supply, Math.min(demand.open, supply.free));
    }
    let hasRoom = true;
    while (hasRoom && demand.open > 0) hasRoom = makeRoom(demand, exhausted, budget);
  }
  return demands.every(({ open }) => open === 0) && !budget.exhausted;
}

/** Moves other demands to other supplies, along the shortest path to free units. */
function makeRoom(source: Demand, exhausted: Set<Supply>, budget: Budget): boolean {
  const reachedBy = new Map<Supply, Demand>();
  const givesUp = new Map<Demand, Supply | undefined>([[source, undefined]]);
  for (const [demand] of givesUp) {
    for (const supply of demand.supplies) {
      if (!budget.spend()) return false;
      if (reachedBy.has(supply) || exhausted.has(supply)) continue;
      reachedBy.set(supply, demand);
      if (supply.free > 0) {
        changeOver(supply, reachedBy, givesUp);
        return true;
      }
      for (const user of supply.users.keys()) {
        if (!budget.spend()) return false;
        if (!givesUp.has(user)) givesUp.set(user, supply);
      }
    }
  }
  for (const supply of reachedBy.keys()) exhausted.add(supply);
  return false;
}

/** Moves as many units as possible along the path. */
function changeOver(
  free: Supply,
  reachedBy: ReadonlyMap<Supply, Demand>,
  givesUp: ReadonlyMap<Demand, Supply | undefined>,
): void {
  const path: { demand: Demand; from: Supply | undefined; to: Supply }[] = [];
  let units = free.free;
  for (let to: Supply | undefined = free; to !== undefined; to = path.at(-1)?.from) {
    const demand = reachedBy.get(to) as Demand;
    const from = givesUp.get(demand);
    units = Math.min(units, from === undefined ? demand.open : (from.users.get(demand) ?? 0));
    path.push({ demand, from, to });
  }
  for (const { demand, from, to } of path) {
    if (from !== undefined) use(demand, from, -units);
    use(demand, to, units);
  }
}

function use(demand: Demand, supply: Supply, units: number): void {
  const used = (supply.users.get(demand) ?? 0) + units;
  if (used === 0) supply.users.delete(demand);
  else supply.users.set(demand, used);
  demand.open -= units;
  supply.free -= units;
}

/** Groups approved effects that the same observed effects satisfy. */
export function groupWanted(
  wanted: readonly Wanted[],
  labels: LabelValues,
): readonly WantedGroup[] {
  const groups = new Map<string, WantedGroup>();
  for (const one of wanted) {
    const signature = signatureOf(one, labels);
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
  const value = labels.valueOf(name);
  if (value !== undefined) return `v${value}`;
  return wanted.labels.some(({ label }) => label === name) ? `l${valueText(name)}` : 'g';
}
