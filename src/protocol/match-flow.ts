import type { Budget } from './budget.ts';

/** A number of identical units, all of which must be assigned. */
export interface Supply {
  free: number;
  /** The demands that use some of these units. */
  readonly users: Set<Demand<Supply>>;
}

/** A demand for units from any of several supplies. */
export interface Demand<S extends Supply> {
  open: number;
  readonly supplies: readonly S[];
  /** How many units of each supply it uses. */
  readonly used: Map<S, number>;
}

/**
 * Meets as many demands as possible and returns true if none stays open. Equal effects form one
 * demand or supply with a count, so a count of a million costs no more than one.
 */
export function meetDemands<S extends Supply>(
  demands: readonly Demand<S>[],
  budget: Budget,
): boolean {
  // No path leads from supplies that a failed search reached to free units, whatever is used later
  // in this call: a later path that entered them would have to leave them again.
  const exhausted = new Set<Supply>();
  let met = true;
  for (const demand of demands) {
    useDirectly(demand, budget);
    while (demand.open > 0) {
      if (makeRoom(demand, exhausted, budget)) continue;
      met = false;
      break;
    }
  }
  return met && !budget.exhausted;
}

/** Enough for most demands, and linear for a demand with a large count. */
function useDirectly(demand: Demand<Supply>, budget: Budget): void {
  for (const supply of demand.supplies) {
    if (demand.open === 0 || !budget.spend()) return;
    const units = Math.min(demand.open, supply.free);
    if (units > 0) use(demand, supply, units);
  }
}

/** Moves other demands to other supplies, along the shortest path to free units. */
function makeRoom(source: Demand<Supply>, exhausted: Set<Supply>, budget: Budget): boolean {
  const reachedBy = new Map<Supply, Demand<Supply>>();
  const givesUp = new Map<Demand<Supply>, Supply>();
  const queue = [source];
  for (const demand of queue) {
    for (const supply of demand.supplies) {
      if (!budget.spend()) return false;
      if (reachedBy.has(supply) || exhausted.has(supply)) continue;
      reachedBy.set(supply, demand);
      if (supply.free > 0) {
        changeOver(source, supply, reachedBy, givesUp);
        return true;
      }
      for (const user of supply.users) {
        if (!budget.spend()) return false;
        if (user === source || givesUp.has(user)) continue;
        givesUp.set(user, supply);
        queue.push(user);
      }
    }
  }
  for (const supply of reachedBy.keys()) exhausted.add(supply);
  return false;
}

/** Moves as many units as possible along the path. */
function changeOver(
  source: Demand<Supply>,
  free: Supply,
  reachedBy: ReadonlyMap<Supply, Demand<Supply>>,
  givesUp: ReadonlyMap<Demand<Supply>, Supply>,
): void {
  const path: { demand: Demand<Supply>; from: Supply | undefined; to: Supply }[] = [];
  let units = Math.min(source.open, free.free);
  for (let to: Supply | undefined = free; to !== undefined; to = path.at(-1)?.from) {
    const demand = reachedBy.get(to) as Demand<Supply>;
    const from = givesUp.get(demand);
    if (from !== undefined) units = Math.min(units, demand.used.get(from) ?? 0);
    path.push({ demand, from, to });
  }
  for (const { demand, from, to } of path) {
    if (from !== undefined) use(demand, from, -units);
    use(demand, to, units);
  }
}

function use(demand: Demand<Supply>, supply: Supply, units: number): void {
  const used = (demand.used.get(supply) ?? 0) + units;
  if (used === 0) {
    demand.used.delete(supply);
    supply.users.delete(demand);
  } else {
    demand.used.set(supply, used);
    supply.users.add(demand);
  }
  demand.open -= units;
  supply.free -= units;
}
