import { canonical } from './canon.ts';
import { satisfies, withinAssigned } from './constraint.ts';
import type { Cell, Effect } from './effect.ts';
import type { Assigned } from './observation.ts';
import type { Registration } from './registration.ts';
import { orderValues, type Row, type Value } from './value.ts';

/** What one rehearsal left, and what the backend said about it. */
export interface Rehearsal {
  readonly effects: readonly Effect[];
  readonly assigned: readonly Assigned[];
  readonly window: { readonly fromMs: number; readonly toMs: number };
}

export type Side = 'key' | 'before' | 'after';
export const SIDES: readonly Side[] = ['key', 'before', 'after'];

/** The same change as two rehearsals show it. Both have the same operation, target and columns. */
export interface Pair {
  readonly first: Effect;
  readonly second: Effect;
}

export type RehearsalPairing =
  | { readonly kind: 'paired'; readonly pairs: readonly Pair[] }
  /** Changes of one shape that one rehearsal has more of than the other. */
  | {
      readonly kind: 'unequal';
      readonly first: readonly Effect[];
      readonly second: readonly Effect[];
    };

/**
 * Finds for every change of the first rehearsal the one of the second that it corresponds to: rows
 * with numbers that the backend assigned in the order of these numbers, all others by what they
 * hold beside assigned values and times. A wrong pair costs nothing but a refusal, because the
 * outcome made of the pairs is compared with both rehearsals.
 */
export function pairRehearsals(
  first: Rehearsal,
  second: Rehearsal,
  registration: Registration,
): RehearsalPairing {
  const volatile = new Map(
    registration.targets.map((target) => [target.name, new Set(target.volatile)]),
  );
  const strip = (effect: Effect) =>
    withoutColumns(registration, effect, volatile.get(effect.target) ?? new Set());
  const ours = groupByShape(first, strip);
  const theirs = groupByShape(second, strip);
  const pairs: Pair[] = [];
  for (const shape of new Set([...ours.keys(), ...theirs.keys()])) {
    const left = ours.get(shape) ?? [];
    const right = theirs.get(shape) ?? [];
    if (left.length !== right.length) return { kind: 'unequal', first: left, second: right };
    left.forEach((effect, index) => {
      pairs.push({ first: effect, second: right[index] as Effect });
    });
  }
  return { kind: 'paired', pairs };
}

function groupByShape(
  run: Rehearsal,
  strip: (effect: Effect) => Effect | undefined,
): Map<string, Effect[]> {
  const groups = new Map<string, Ranked[]>();
  const origins = new Origins(run);
  for (const reported of run.effects) {
    const effect = strip(reported);
    if (effect === undefined) continue;
    const columns = SIDES.map((side) => Object.keys(effect[side] ?? {}).sort());
    const shape = canonical([effect.op, effect.target, columns]);
    const group = groups.get(shape);
    const ranked = rank(effect, run, origins);
    if (group === undefined) groups.set(shape, [ranked]);
    else group.push(ranked);
  }
  return new Map(
    [...groups].map(([shape, group]) => [
      shape,
      group.sort(orderRanked).map(({ effect }) => effect),
    ]),
  );
}

/**
 * Volatile columns are not approved. An update of nothing else is a write of no column where every
 * write is an effect; elsewhere it is left to the comparison, which refuses strangers.
 */
function withoutColumns(
  { profile }: Registration,
  effect: Effect,
  columns: ReadonlySet<string>,
): Effect | undefined {
  if (columns.size === 0) return effect;
  const strip = (row: Row): Row =>
    Object.fromEntries(Object.entries(row).filter(([column]) => !columns.has(column)));
  const { key, before, after, ...rest } = effect;
  const stripped = {
    ...rest,
    ...(key !== undefined && { key }),
    ...(before !== undefined && { before: strip(before) }),
    ...(after !== undefined && { after: strip(after) }),
  };
  const isEmpty =
    profile !== 'row-event' &&
    effect.op === 'update' &&
    Object.keys(stripped.after ?? {}).length === 0;
  return isEmpty && after !== undefined && Object.keys(after).length > 0 ? undefined : stripped;
}

interface Ranked {
  readonly effect: Effect;
  /** Numbers that the backend assigned, in order of columns. */
  readonly numbers: readonly Value[];
  readonly skeleton: string;
}

function rank(effect: Effect, run: Rehearsal, origins: Origins): Ranked {
  const numbers: Value[] = [];
  const skeleton = SIDES.map((side) =>
    Object.entries(effect[side] ?? {})
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([column, value]) => {
        const origin = origins.find(effect.target, column, value);
        if (origin === 'range') numbers.push(value);
        if (origin !== undefined || origins.isReferred(value)) return 'assigned';
        return timeUnit(value, run.window) === undefined ? { is: value } : 'time';
      }),
  );
  return { effect, numbers, skeleton: canonical(skeleton) };
}

function orderRanked(a: Ranked, b: Ranked): number {
  for (const [index, value] of a.numbers.entries()) {
    const other = b.numbers[index];
    const order = other === undefined ? undefined : orderValues(value, other);
    if (order !== undefined && order !== 0) return order;
  }
  return a.skeleton === b.skeleton ? 0 : a.skeleton < b.skeleton ? -1 : 1;
}

/** Which values of a rehearsal the backend itself assigned, by its evidence. */
export class Origins {
  readonly #assigned = new Map<string, Assigned[]>();
  readonly #values = new Set<string>();

  constructor({ effects, assigned }: Rehearsal) {
    for (const evidence of assigned) {
      const place = canonical([evidence.target, evidence.column]);
      this.#assigned.set(place, [...(this.#assigned.get(place) ?? []), evidence]);
    }
    for (const effect of effects) {
      for (const [column, value] of SIDES.flatMap((side) => Object.entries(effect[side] ?? {}))) {
        if (this.find(effect.target, column, value) !== undefined)
          this.#values.add(canonical(value));
      }
    }
  }

  /**
   * How the backend accounts for this value in this column: as a step of a counter, as a new value,
   * or not at all.
   */
  find(target: string, column: string, value: Value): 'range' | 'fresh' | undefined {
    const evidence = this.#assigned
      .get(canonical([target, column]))
      ?.find((one) => withinAssigned(one, value));
    if (evidence === undefined) return undefined;
    return 'fresh' in evidence ? 'fresh' : 'range';
  }

  /** Whether the backend assigned this value anywhere. */
  isReferred(value: Value): boolean {
    return this.#values.has(canonical(value));
  }
}

export type TimeUnit = Extract<Cell, { readonly now: unknown }>['now']['unit'];
const UNITS: readonly TimeUnit[] = ['iso', 'ms', 's'];

/** The form in which a value tells a time within the window; undefined when it does not. */
export function timeUnit(value: Value, window: Rehearsal['window']): TimeUnit | undefined {
  return UNITS.find((unit) => satisfies({ now: { withinMs: 0, unit } }, value, { window }));
}
