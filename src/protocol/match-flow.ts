import { invariant } from '../errors.ts';
import type { Budget } from './budget.ts';

/**
 * A matching between two sides with multiplicities, kept as large as possible by augmenting paths
 * while edges are removed and restored. Equal effects are one node with a count, so a count of a
 * million costs no more than one.
 */
export class Flow {
  readonly #left: number[] = [];
  readonly #right: number[] = [];
  readonly #capacity: number[] = [];
  readonly #units: number[] = [];
  readonly #live: boolean[] = [];
  readonly #leaving: number[][];
  readonly #entering: number[][];
  /** Units not placed yet per left node, units not used yet per right node. */
  readonly #need: number[];
  readonly #free: number[];
  #short: number[];
  // The search for one augmenting path: when a node was last reached, and by which edge.
  #search = 0;
  readonly #leftSeen: number[];
  readonly #rightSeen: number[];
  readonly #leftVia: number[];
  readonly #rightVia: number[];

  constructor(supply: readonly number[], demand: readonly number[]) {
    this.#need = [...supply];
    this.#free = [...demand];
    this.#leaving = supply.map(() => []);
    this.#entering = demand.map(() => []);
    this.#short = supply.map((_, left) => left);
    this.#leftSeen = supply.map(() => 0);
    this.#rightSeen = demand.map(() => 0);
    this.#leftVia = supply.map(() => -1);
    this.#rightVia = demand.map(() => -1);
  }

  get edges(): number {
    return this.#left.length;
  }

  addEdge(left: number, right: number, capacity = Number.POSITIVE_INFINITY): void {
    const edge = this.#left.length;
    this.#left.push(left);
    this.#right.push(right);
    this.#capacity.push(capacity);
    this.#units.push(0);
    this.#live.push(true);
    at(this.#leaving, left).push(edge);
    at(this.#entering, right).push(edge);
  }

  leftOf(edge: number): number {
    return at(this.#left, edge);
  }

  rightOf(edge: number): number {
    return at(this.#right, edge);
  }

  leaving(left: number): readonly number[] {
    return at(this.#leaving, left);
  }

  entering(right: number): readonly number[] {
    return at(this.#entering, right);
  }

  isLive(edge: number): boolean {
    return at(this.#live, edge);
  }

  /** How many units the matching sends along an edge. */
  units(edge: number): number {
    return at(this.#units, edge);
  }

  /** Takes an edge out of use; what it carried has to be placed again by {@link fill}. */
  remove(edge: number): void {
    this.#live[edge] = false;
    const units = this.units(edge);
    if (units === 0) return;
    const [left, right] = [this.leftOf(edge), this.rightOf(edge)];
    this.#units[edge] = 0;
    this.#need[left] = at(this.#need, left) + units;
    this.#free[right] = at(this.#free, right) + units;
    this.#short.push(left);
  }

  restore(edge: number): void {
    this.#live[edge] = true;
  }

  /** Places as much as can be placed; true when nothing is left over on the left side. */
  fill(budget: Budget): boolean {
    // From nodes that a failed search reached no path leads out, whatever is placed later in this
    // call: any later path that entered them would have to leave them again. So they are not
    // searched twice.
    const hopeless = new Set<number>();
    const short: number[] = [];
    for (const left of this.#short) {
      this.#placeDirectly(left, budget);
      while (at(this.#need, left) > 0) {
        if (this.#augment(left, hopeless, budget)) continue;
        short.push(left);
        break;
      }
    }
    this.#short = short;
    return short.length === 0 && !budget.exhausted;
  }

  /**
   * One pass over the node's own edges: all that most nodes need, and linear for a node with a
   * large count.
   */
  #placeDirectly(left: number, budget: Budget): void {
    for (const edge of this.leaving(left)) {
      const need = at(this.#need, left);
      if (need === 0 || !budget.spend()) return;
      const right = this.rightOf(edge);
      const room = this.isLive(edge) ? at(this.#capacity, edge) - this.units(edge) : 0;
      const units = Math.min(need, room, at(this.#free, right));
      this.#units[edge] = this.units(edge) + units;
      this.#need[left] = need - units;
      this.#free[right] = at(this.#free, right) - units;
    }
  }

  #augment(source: number, hopeless: Set<number>, budget: Budget): boolean {
    this.#search += 1;
    const queue = [source];
    const reached: number[] = [];
    this.#leftSeen[source] = this.#search;
    for (const left of queue) {
      for (const edge of this.leaving(left)) {
        if (!budget.spend()) return false;
        const right = this.rightOf(edge);
        if (!this.isLive(edge) || this.units(edge) >= at(this.#capacity, edge)) continue;
        if (this.#rightSeen[right] === this.#search || hopeless.has(right)) continue;
        this.#rightSeen[right] = this.#search;
        this.#rightVia[right] = edge;
        if (at(this.#free, right) > 0) {
          this.#push(source, right);
          return true;
        }
        reached.push(right);
        for (const back of this.entering(right)) {
          if (!budget.spend()) return false;
          const owner = this.leftOf(back);
          if (this.units(back) === 0 || this.#leftSeen[owner] === this.#search) continue;
          this.#leftSeen[owner] = this.#search;
          this.#leftVia[owner] = back;
          queue.push(owner);
        }
      }
    }
    for (const right of reached) hopeless.add(right);
    return false;
  }

  /** Sends as many units as fit along the path found last. */
  #push(source: number, sink: number): void {
    const forward: number[] = [];
    const backward: number[] = [];
    let right = sink;
    for (;;) {
      const edge = at(this.#rightVia, right);
      forward.push(edge);
      const left = this.leftOf(edge);
      if (left === source) break;
      const back = at(this.#leftVia, left);
      backward.push(back);
      right = this.rightOf(back);
    }
    let units = Math.min(at(this.#need, source), at(this.#free, sink));
    for (const edge of forward)
      units = Math.min(units, at(this.#capacity, edge) - this.units(edge));
    for (const edge of backward) units = Math.min(units, this.units(edge));
    invariant(units > 0, 'an augmenting path carries something');
    for (const edge of forward) this.#units[edge] = this.units(edge) + units;
    for (const edge of backward) this.#units[edge] = this.units(edge) - units;
    this.#need[source] = at(this.#need, source) - units;
    this.#free[sink] = at(this.#free, sink) - units;
  }
}

function at<T>(list: readonly T[], index: number): T {
  return list[index] as T;
}
