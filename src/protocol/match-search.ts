import { invariant } from '../errors.ts';
import type { Budget } from './budget.ts';
import type { Graph } from './match-graph.ts';
import { tokenText } from './match-labels.ts';
import type { Found } from './match-shape.ts';

/** That a label has a certain value: live while every node with the label has a candidate with the value. */
interface Option {
  readonly label: Label;
  readonly text: string;
  readonly edges: number[];
  /** Per place of the label all options for this value there: at most one of them can hold. */
  readonly contests: Option[][];
  live: boolean;
}

interface Label {
  /** Nodes of approved effects that have the label. */
  readonly nodes: number[];
  readonly places: Set<string>;
  readonly options: Map<string, Option>;
  live: number;
  settled: boolean;
}

/** How many candidates of one node give one label one value. */
interface Support {
  readonly option: Option;
  live: number;
}

interface Seen {
  readonly labels: Set<Label>;
  readonly nodes: Set<number>;
  readonly rights: Set<number>;
  readonly contests: Set<readonly Option[]>;
}

/** Deeper guesses than the stack holds count as a spent budget. */
const DEPTH_MAX = 1000;

/**
 * Looks for values of the open labels under which a perfect matching exists, starting from one that ignores them.
 * Only label values are guessed: once they are settled the rest is a plain matching. After every guess its
 * consequences are drawn (an edge that contradicts a settled label goes, a value that a node has no edge for goes, a
 * single value left is settled) and the matching is repaired; where that fails the guess is taken back. Parts that
 * share neither effects nor values are searched one by one, so that one part's failure does not repeat the others.
 */
export class LabelSearch {
  readonly #graph: Graph;
  readonly #budget: Budget;
  readonly #labels: readonly Label[];
  readonly #labelsAt: readonly Label[][];
  readonly #supports: readonly Support[][];
  /** What was done, newest last: an edge removed, an option dropped, a label settled. */
  readonly #trail: (number | Option | Label)[] = [];
  #dropped: Option[] = [];
  #single: Label[] = [];
  #stuck = false;

  constructor(graph: Graph, found: readonly Found[], open: ReadonlySet<string>, budget: Budget) {
    this.#graph = graph;
    this.#budget = budget;
    const labels = new Map<string, Label>();
    this.#supports = Array.from({ length: graph.flow.edges }, () => []);
    this.#labelsAt = graph.groups.map(({ sample: { labels: named, shape } }, node) => {
      const slots = new Map(named.filter(({ label }) => open.has(label)).map(({ label, slot }) => [label, slot]));
      return [...slots].map(([name, slot]) => {
        const label = labels.get(name) ?? openLabel();
        labels.set(name, label);
        label.nodes.push(node);
        for (const one of named) if (one.label === name) label.places.add(shape.slots[one.slot]?.place as string);
        this.#supportOptions(label, node, (right) => found[right]?.texts[slot] as string);
        return label;
      });
    });
    this.#labels = [...labels.values()];
    this.#enterContests();
  }

  /** True when there is such a matching; the graph's flow is then one. False means nothing if the budget is spent. */
  run(): boolean {
    if (!this.#begin()) return false;
    for (const part of this.#split(this.#labels)) {
      const mark = this.#trail.length;
      if (this.#dive(part)) continue;
      this.#takeBack(mark);
      if (!this.#searchPart(part, 0)) return false;
    }
    invariant(this.#budget.exhausted || this.#graph.flow.fill(this.#budget), 'a search that succeeds leaves a match');
    return !this.#budget.exhausted;
  }

  #supportOptions(label: Label, node: number, textAt: (right: number) => string): void {
    const supports = new Map<string, Support>();
    for (const edge of this.#graph.flow.leaving(node)) {
      this.#budget.spend();
      const text = textAt(this.#graph.flow.rightOf(edge));
      const option = label.options.get(text) ?? { label, text, edges: [], contests: [], live: true };
      if (option.edges.length === 0) label.live += 1;
      label.options.set(text, option);
      option.edges.push(edge);
      const support = supports.get(text) ?? { option, live: 0 };
      supports.set(text, support);
      support.live += 1;
      this.#supports[edge]?.push(support);
    }
  }

  #enterContests(): void {
    const contests = new Map<string, Option[]>();
    for (const { places, options } of this.#labels) {
      for (const option of options.values()) {
        for (const place of places) {
          const token = tokenText(place, option.text);
          const contest = contests.get(token) ?? [];
          contests.set(token, contest);
          contest.push(option);
          option.contests.push(contest);
        }
      }
    }
  }

  /** Draws the consequences that hold before any guess. */
  #begin(): boolean {
    for (const label of this.#labels) {
      const support = new Map<Option, Set<number>>();
      for (const option of label.options.values()) {
        support.set(option, new Set(option.edges.map((edge) => this.#graph.flow.leftOf(edge))));
      }
      for (const [option, nodes] of support) if (nodes.size < label.nodes.length) this.#drop(option);
      if (label.live === 0) this.#stuck = true;
      if (label.live === 1) this.#single.push(label);
    }
    return this.#propagate();
  }

  /** Guesses without looking back, along the matching at hand: finds most matches there are. */
  #dive(part: readonly Label[]): boolean {
    for (;;) {
      const label = this.#chooseLabel(part);
      if (label === undefined) return true;
      const [option] = this.#orderOptions(label);
      if (option === undefined || !this.#assume(option)) return false;
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
      const mark = this.#trail.length;
      if (this.#assume(option) && this.#search(part, depth + 1)) return true;
      this.#takeBack(mark);
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
    const used = live.find((option) => option.edges.some((edge) => this.#graph.flow.units(edge) > 0));
    return used === undefined ? live : [used, ...live.filter((option) => option !== used)];
  }

  #assume(option: Option): boolean {
    for (const other of option.label.options.values()) if (other !== option) this.#drop(other);
    return this.#propagate();
  }

  #drop(option: Option): void {
    if (!option.live) return;
    option.live = false;
    option.label.live -= 1;
    this.#trail.push(option);
    this.#dropped.push(option);
    if (option.label.live === 0) this.#stuck = true;
    if (option.label.live === 1) this.#single.push(option.label);
  }

  /** Draws all consequences and repairs the matching; false when something can no longer be matched. */
  #propagate(): boolean {
    while (!this.#stuck && !this.#budget.exhausted) {
      const option = this.#dropped.pop();
      const label = option === undefined ? this.#single.pop() : undefined;
      if (option !== undefined) this.#removeEdges(option);
      else if (label !== undefined) this.#settle(label);
      else return this.#graph.flow.fill(this.#budget);
    }
    return false;
  }

  #removeEdges(option: Option): void {
    for (const edge of option.edges) {
      this.#budget.spend();
      if (!this.#graph.flow.isLive(edge)) continue;
      this.#graph.flow.remove(edge);
      this.#trail.push(edge);
      for (const support of this.#supports[edge] ?? []) {
        support.live -= 1;
        if (support.live === 0) this.#drop(support.option);
      }
    }
  }

  #settle(label: Label): void {
    if (label.settled) return;
    label.settled = true;
    this.#trail.push(label);
    const chosen = [...label.options.values()].find((option) => option.live);
    for (const contest of chosen?.contests ?? []) {
      for (const rival of contest) {
        this.#budget.spend();
        if (rival !== chosen) this.#drop(rival);
      }
    }
  }

  #takeBack(mark: number): void {
    while (this.#trail.length > mark) {
      const last = this.#trail.pop();
      if (typeof last === 'number') {
        this.#graph.flow.restore(last);
        for (const support of this.#supports[last] ?? []) support.live += 1;
      } else if (last !== undefined && 'settled' in last) {
        last.settled = false;
      } else if (last !== undefined) {
        last.live = true;
        last.label.live += 1;
      }
    }
    this.#dropped = [];
    this.#single = [];
    this.#stuck = false;
  }

  /** Splits labels into parts that share no effect, observed or approved, and no value of a place. */
  #split(labels: readonly Label[]): readonly (readonly Label[])[] {
    const seen: Seen = { labels: new Set(), nodes: new Set(), rights: new Set(), contests: new Set() };
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
    const { flow } = this.#graph;
    const nodes = label.nodes.filter((node) => !seen.nodes.has(node));
    for (const node of nodes) seen.nodes.add(node);
    for (const node of nodes) {
      yield* this.#labelsAt[node] ?? [];
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
          nodes.push(owner);
        }
      }
    }
  }
}

function openLabel(): Label {
  return { nodes: [], places: new Set(), options: new Map(), live: 0, settled: false };
}
