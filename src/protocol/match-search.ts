import { invariant } from '../errors.ts';
import type { Budget } from './budget.ts';
import type { Graph } from './match-graph.ts';
import { type Label, LabelOptions, type Option } from './match-options.ts';
import type { Found } from './match-shape.ts';

/** Deeper guesses than the stack holds count as a spent budget. */
const DEPTH_MAX = 1000;

interface Seen {
  readonly labels: Set<Label>;
  readonly nodes: Set<number>;
  readonly rights: Set<number>;
  readonly contests: Set<readonly Option[]>;
}

/**
 * Looks for values of the open labels under which a perfect matching exists. Only label values are
 * guessed: once all are settled the rest is a plain matching. Parts that share neither effects nor
 * values are searched one by one, so that one part's failure does not repeat the others.
 */
export class LabelSearch {
  readonly #graph: Graph;
  readonly #options: LabelOptions;
  readonly #budget: Budget;

  constructor(graph: Graph, found: readonly Found[], open: ReadonlySet<string>, budget: Budget) {
    this.#graph = graph;
    this.#options = new LabelOptions(graph, found, open, budget);
    this.#budget = budget;
  }

  /**
   * True when there is such a matching; the graph's flow is then one. False means nothing if the
   * budget is spent.
   */
  run(): boolean {
    if (!this.#options.begin()) return false;
    for (const part of this.#split(this.#options.labels)) {
      const { mark } = this.#options;
      if (this.#dive(part)) continue;
      this.#options.takeBack(mark);
      if (!this.#searchPart(part, 0)) return false;
    }
    if (this.#budget.exhausted) return false;
    invariant(
      this.#graph.flow.fill(this.#budget) || this.#budget.exhausted,
      'a search that succeeds leaves a match',
    );
    return true;
  }

  /** Guesses without looking back, along the matching at hand: finds most matches there are. */
  #dive(part: readonly Label[]): boolean {
    for (;;) {
      const label = this.#chooseLabel(part);
      if (label === undefined) return true;
      const [option] = this.#orderOptions(label);
      if (option === undefined || !this.#options.assume(option)) return false;
    }
  }

  #search(labels: readonly Label[], depth: number): boolean {
    if (depth > DEPTH_MAX) this.#budget.spend(Number.POSITIVE_INFINITY);
    return this.#split(labels).every((part) => this.#searchPart(part, depth));
  }

  #searchPart(part: readonly Label[], depth: number): boolean {
    const label = this.#chooseLabel(part);
    if (label === undefined) return true;
    for (const option of this.#orderOptions(label)) {
      if (this.#budget.exhausted) return false;
      const { mark } = this.#options;
      if (this.#options.assume(option) && this.#search(part, depth + 1)) return true;
      this.#options.takeBack(mark);
    }
    return false;
  }

  /** The open label with the fewest values left. */
  #chooseLabel(part: readonly Label[]): Label | undefined {
    let best: Label | undefined;
    for (const label of part) {
      if (!this.#budget.spend()) return undefined;
      if (!label.settled && (best === undefined || label.live < best.live)) best = label;
      if (best?.live === 2) break;
    }
    return best;
  }

  /** The value that the matching at hand uses comes first. */
  #orderOptions(label: Label): readonly Option[] {
    this.#budget.spend(label.options.size);
    const live = [...label.options.values()].filter((option) => option.live);
    const used = live.find((option) =>
      option.edges.some((edge) => this.#graph.flow.units(edge) > 0),
    );
    return used === undefined ? live : [used, ...live.filter((option) => option !== used)];
  }

  /**
   * Splits labels into parts that share no effect, observed or approved, and no value of a place.
   */
  #split(labels: readonly Label[]): readonly (readonly Label[])[] {
    const seen: Seen = {
      labels: new Set(),
      nodes: new Set(),
      rights: new Set(),
      contests: new Set(),
    };
    const parts: Label[][] = [];
    for (const first of labels) {
      if (first.settled || seen.labels.has(first)) continue;
      const part = [first];
      seen.labels.add(first);
      for (const label of part) {
        for (const linked of this.#linkedLabels(label, seen)) {
          if (linked.settled || seen.labels.has(linked)) continue;
          seen.labels.add(linked);
          part.push(linked);
        }
      }
      parts.push(part);
    }
    return parts;
  }

  *#linkedLabels(label: Label, seen: Seen): Iterable<Label> {
    for (const option of label.options.values()) {
      if (!option.live) continue;
      for (const contest of option.contests) {
        if (seen.contests.has(contest)) continue;
        seen.contests.add(contest);
        if (!this.#budget.spend(contest.length)) return;
        for (const rival of contest) if (rival.live) yield rival.label;
      }
    }
    const nodes = label.nodes.filter((node) => !seen.nodes.has(node));
    for (const node of nodes) seen.nodes.add(node);
    for (const node of nodes) {
      yield* this.#options.labelsAt[node] ?? [];
      for (const neighbour of this.#neighbours(node, seen)) nodes.push(neighbour);
    }
  }

  /** Nodes that compete with this one for an observed effect. */
  *#neighbours(node: number, seen: Seen): Iterable<number> {
    const { flow } = this.#graph;
    for (const edge of flow.leaving(node)) {
      if (!this.#budget.spend()) return;
      const right = flow.rightOf(edge);
      if (!flow.isLive(edge) || seen.rights.has(right)) continue;
      seen.rights.add(right);
      for (const back of flow.entering(right)) {
        if (!this.#budget.spend()) return;
        const owner = flow.leftOf(back);
        if (!flow.isLive(back) || seen.nodes.has(owner)) continue;
        seen.nodes.add(owner);
        yield owner;
      }
    }
  }
}
