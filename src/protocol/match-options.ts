import type { Budget } from './budget.ts';
import type { Graph, Group } from './match-graph.ts';
import { tokenText } from './match-labels.ts';
import type { Found } from './match-shape.ts';

/**
 * That a label has a certain value: live while every node with the label has a candidate with the
 * value.
 */
export interface Option {
  readonly label: Label;
  readonly text: string;
  readonly edges: number[];
  /** Per place of the label all options for this value there: at most one of them can hold. */
  readonly contests: Option[][];
  live: boolean;
}

/** A label whose value is to be found. */
export interface Label {
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

/**
 * The values that open labels can still have. Every assumption is followed by all its consequences:
 * an edge that contradicts it goes, a value that some node has no edge for goes, a single value
 * left is settled, a settled value is nobody else's in the same place; then the matching is
 * repaired. All of it can be taken back.
 */
export class LabelOptions {
  readonly labels: readonly Label[];
  /** Open labels of each node of the graph. */
  readonly labelsAt: readonly (readonly Label[])[];
  readonly #graph: Graph;
  readonly #budget: Budget;
  readonly #supports: readonly Support[][];
  /** What was done, newest last: an edge removed, an option dropped, a label settled. */
  readonly #trail: (number | Option | Label)[] = [];
  #dropped: Option[] = [];
  #single: Label[] = [];
  #stuck = false;

  constructor(graph: Graph, found: readonly Found[], open: ReadonlySet<string>, budget: Budget) {
    this.#graph = graph;
    this.#budget = budget;
    this.#supports = Array.from({ length: graph.flow.edges }, () => []);
    const labels = new Map<string, Label>();
    this.labelsAt = graph.groups.map((group, node) =>
      this.#enterGroup(group, node, { labels, found, open }),
    );
    this.labels = [...labels.values()];
    this.#enterContests();
  }

  /**
   * Draws the consequences that hold before any assumption; false when there is no solution at all.
   */
  begin(): boolean {
    for (const label of this.labels) {
      for (const option of label.options.values()) {
        const nodes = new Set(option.edges.map((edge) => this.#graph.flow.leftOf(edge)));
        if (nodes.size < label.nodes.length) this.#drop(option);
      }
      if (label.live === 0) this.#stuck = true;
      if (label.live === 1) this.#single.push(label);
    }
    return this.#propagate();
  }

  /** Where to return to by {@link takeBack}. */
  get mark(): number {
    return this.#trail.length;
  }

  /** Settles a label on a value; false when something can then no longer be matched. */
  assume(option: Option): boolean {
    for (const other of option.label.options.values()) if (other !== option) this.#drop(other);
    return this.#propagate();
  }

  /**
   * Undoes everything since the mark. The matching needs no undoing: it stays one, if not a
   * complete one.
   */
  takeBack(mark: number): void {
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

  #enterGroup(
    { sample: { labels: cells, shape } }: Group,
    node: number,
    known: { labels: Map<string, Label>; found: readonly Found[]; open: ReadonlySet<string> },
  ): readonly Label[] {
    const slots = new Map(
      cells.filter(({ label }) => known.open.has(label)).map(({ label, slot }) => [label, slot]),
    );
    return [...slots].map(([name, slot]) => {
      const label = known.labels.get(name) ?? openLabel();
      known.labels.set(name, label);
      label.nodes.push(node);
      for (const cell of cells)
        if (cell.label === name) label.places.add(shape.slots[cell.slot]?.place as string);
      this.#enterOptions(label, node, (right) => known.found[right]?.texts[slot] as string);
      return label;
    });
  }

  #enterOptions(label: Label, node: number, textAt: (right: number) => string): void {
    const supports = new Map<string, Support>();
    for (const edge of this.#graph.flow.leaving(node)) {
      this.#budget.spend();
      const text = textAt(this.#graph.flow.rightOf(edge));
      const option = label.options.get(text) ?? {
        label,
        text,
        edges: [],
        contests: [],
        live: true,
      };
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
    for (const { places, options } of this.labels) {
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

  #drop(option: Option): void {
    if (!option.live) return;
    option.live = false;
    option.label.live -= 1;
    this.#trail.push(option);
    this.#dropped.push(option);
    if (option.label.live === 0) this.#stuck = true;
    if (option.label.live === 1) this.#single.push(option.label);
  }

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
}

function openLabel(): Label {
  return { nodes: [], places: new Set(), options: new Map(), live: 0, settled: false };
}
