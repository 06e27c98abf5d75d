import { valueText } from './bag.ts';
import type { Budget } from './budget.ts';
import type { ApprovedEffect, Cell } from './effect.ts';
import type { Admission, Candidates } from './match-candidates.ts';
import { Flow } from './match-flow.ts';
import { fixedUnder, type LabelReading } from './match-labels.ts';
import type { Found, Wanted } from './match-shape.ts';
import type { Value } from './value.ts';

/** Approved effects that ask for the same, so that they are one node with a count. */
export interface Group {
  readonly members: Wanted[];
  /** The first member stands for all. */
  readonly sample: Wanted;
  count: number;
}

/** Some units of an approved effect matched with an observed one. */
export interface Pairing {
  readonly wanted: Wanted;
  readonly found: number;
  readonly units: number;
}

/** What matching works with. */
export interface Field {
  readonly wanted: readonly Wanted[];
  readonly found: readonly Found[];
  readonly candidates: Candidates;
  readonly admission: Admission;
  readonly budget: Budget;
}

/** Which approved effects can account for which observed ones, under one reading of the labels. */
export class Graph {
  readonly groups: readonly Group[];
  readonly flow: Flow;

  constructor(field: Field, reading: LabelReading) {
    const { found, candidates, admission, budget } = field;
    this.groups = groupWanted(field, reading);
    const demand = found.map(({ required, optional }) => required + optional);
    this.flow = new Flow([...this.groups.map(({ count }) => count), this.#leftOver(found)], demand);
    this.groups.forEach(({ sample }, left) => {
      if (
        !admission.isAnchored(sample) ||
        sample.labels.some(({ label }) => reading.void.has(label))
      )
        return;
      for (const right of candidates.of(sample.shape, fixedUnder(sample, reading.bound))) {
        if (!budget.spend()) return;
        const one = found[right] as Found;
        if (admission.admits(sample, one) && permits(reading, sample, one))
          this.flow.addEdge(left, right);
      }
    });
    found.forEach(({ optional }, right) => {
      if (optional > 0) this.flow.addEdge(this.groups.length, right, optional);
    });
  }

  /**
   * What may be left over is taken by a node of its own with exactly as many units as must be left
   * over, so that both sides are equally large and a matching is either perfect or shows a
   * difference.
   */
  #leftOver(found: readonly Found[]): number {
    let units = 0;
    for (const { required, optional } of found) units += required + optional;
    for (const { count } of this.groups) units -= count;
    return Math.max(0, units);
  }

  /** The matching as it stands. */
  pairings(): readonly Pairing[] {
    return this.groups.flatMap((group, left) => this.#dealOut(group, left).paired);
  }

  /** Approved effects that the matching leaves out, with how many of each. */
  missing(): readonly ApprovedEffect[] {
    return this.groups.flatMap((group, left) => this.#dealOut(group, left).missing);
  }

  /** Deals the units of a node out to its members, in their order. */
  #dealOut({ members }: Group, left: number): { paired: Pairing[]; missing: ApprovedEffect[] } {
    const edges = this.flow.leaving(left).filter((edge) => this.flow.units(edge) > 0);
    const paired: Pairing[] = [];
    const missing: ApprovedEffect[] = [];
    let next = 0;
    let used = 0;
    for (const wanted of members) {
      let open = wanted.effect.count;
      while (open > 0 && next < edges.length) {
        const edge = edges[next] as number;
        const units = Math.min(open, this.flow.units(edge) - used);
        paired.push({ wanted, found: this.flow.rightOf(edge), units });
        open -= units;
        used += units;
        if (used === this.flow.units(edge)) [next, used] = [next + 1, 0];
      }
      if (open > 0) missing.push({ ...wanted.effect, count: open });
    }
    return { paired, missing };
  }
}

function groupWanted({ wanted, admission }: Field, reading: LabelReading): readonly Group[] {
  const groups = new Map<string, Group>();
  for (const one of wanted) {
    const signature = `${admission.isAnchored(one) ? '' : '!'}${signatureOf(one, reading)}`;
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

/**
 * Equal for approved effects that every observed effect satisfies alike, under this reading of the
 * labels.
 */
function signatureOf(
  { shape, cells, fixed, labels }: Wanted,
  { bound, open, void: none }: LabelReading,
): string {
  let text = `${shape.text}=`;
  cells.forEach((cell: Cell, slot) => {
    if (fixed[slot] !== undefined) text += `v${fixed[slot]}`;
    else if (!('generated' in cell)) text += `c${valueText(cell as Value)}`;
    else if (bound.has(cell.generated)) text += `v${bound.get(cell.generated)}`;
    else if (open.has(cell.generated) || none.has(cell.generated))
      text += `l${valueText(cell.generated)}`;
    else text += `g${labels.findIndex(({ label }) => label === cell.generated)}`;
  });
  return text;
}

/** Open labels may not take what a bound one has. */
function permits(reading: LabelReading, { labels, shape }: Wanted, { texts }: Found): boolean {
  return labels.every(({ label, slot }) => {
    const place = shape.slots[slot]?.place as string;
    return !reading.open.has(label) || reading.permits(label, place, texts[slot] as string);
  });
}
