import { canonical } from './canon.ts';
import { satisfies, withinAssigned } from './constraint.ts';
import type { Cell, Effect } from './effect.ts';
import type { Assigned } from './observation.ts';
import type { Registration } from './registration.ts';
import { orderValues, type Value } from './value.ts';
import {
  isVolatileOnly,
  type VolatileColumns,
  volatileColumns,
  withoutVolatile,
} from './volatile.ts';

/** What one rehearsal did, and the backend's evidence about it. */
export interface Rehearsal {
  readonly effects: readonly Effect[];
  readonly assigned: readonly Assigned[];
  readonly window: { readonly fromMs: number; readonly toMs: number };
}

export type Side = 'key' | 'before' | 'after';
const IMAGES: readonly Side[] = ['before', 'after'];
export const SIDES: readonly Side[] = ['key', ...IMAGES];

/** The same change in two rehearsals, with the same operation, target and columns. */
export interface Pair {
  readonly first: Effect;
  readonly second: Effect;
}

type RehearsalPairing =
  | { readonly kind: 'paired'; readonly pairs: readonly Pair[] }
  /** Changes of one shape, if one rehearsal has more of them than the other. */
  | {
      readonly kind: 'unequal';
      readonly first: readonly Effect[];
      readonly second: readonly Effect[];
    };

/**
 * Finds, for every change of the first rehearsal, its counterpart in the second. Existing rows are
 * paired by key, rows with numbers that the backend assigned by the order of those numbers, and all
 * others by content apart from assigned values and times. A wrong pair can only cause a refusal,
 * because the resulting outcome is compared with both rehearsals.
 */
export function pairRehearsals(
  first: Rehearsal,
  second: Rehearsal,
  registration: Registration,
): RehearsalPairing {
  const volatile = volatileColumns(registration);
  const strip = (effect: Effect) => withoutUnapproved(registration, effect, volatile);
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
  const origins = new Origins(run);
  const effects = run.effects.map(strip).filter((effect) => effect !== undefined);
  const ranked = effects.map((effect) => rank(effect, run, origins));
  const groups = Map.groupBy(ranked, ({ effect }) => {
    const columns = SIDES.map((side) => Object.keys(effect[side] ?? {}).sort());
    return canonical([effect.op, effect.target, columns]);
  });
  return new Map(
    [...groups].map(([shape, group]) => [
      shape,
      group.sort(orderRanked).map(({ effect }) => effect),
    ]),
  );
}

/**
 * Removes volatile columns, which are not approved. Under `row-event`, an update of nothing else
 * stays as a write without columns. Elsewhere it is left to the comparison, which refuses
 * unexpected effects.
 */
function withoutUnapproved(
  { profile }: Registration,
  effect: Effect,
  volatile: VolatileColumns,
): Effect | undefined {
  const isDropped = profile !== 'row-event' && isVolatileOnly(effect, volatile);
  return isDropped ? undefined : withoutVolatile(effect, volatile);
}

interface Ranked {
  readonly effect: Effect;
  /** The key of a row that existed before; empty for other rows. */
  readonly oldKey: string;
  /** Numbers that the backend assigned, in column order. */
  readonly numbers: readonly Value[];
  readonly skeleton: string;
}

function rank(effect: Effect, run: Rehearsal, origins: Origins): Ranked {
  const numbers: Value[] = [];
  const isOld = origins.isOldRow(effect);
  const skeleton = (isOld ? IMAGES : SIDES).map((side) =>
    Object.entries(effect[side] ?? {})
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([column, value]) => {
        const origin = origins.find(effect.target, column, value);
        if (origin !== undefined && 'above' in origin) numbers.push(value);
        const place = { target: effect.target, column };
        if (origin !== undefined || origins.mayRefer(place, value)) return 'assigned';
        return timeUnit(value, run.window) === undefined ? { is: value } : 'time';
      }),
  );
  const oldKey = isOld ? canonical(effect.key) : '';
  return { effect, oldKey, numbers, skeleton: canonical(skeleton) };
}

function orderRanked(a: Ranked, b: Ranked): number {
  if (a.oldKey !== b.oldKey) return a.oldKey < b.oldKey ? -1 : 1;
  for (const [index, value] of a.numbers.entries()) {
    const other = b.numbers[index];
    const order = other === undefined ? undefined : orderValues(value, other);
    if (order !== undefined && order !== 0) return order;
  }
  return a.skeleton === b.skeleton ? 0 : a.skeleton < b.skeleton ? -1 : 1;
}

/** Finds the values of a rehearsal that the backend assigned, by its evidence. */
export class Origins {
  readonly #assigned: ReadonlyMap<string, readonly Assigned[]>;
  readonly #values = new Map<string, Set<Assigned>>();
  /** Keys that rows received in this rehearsal. */
  readonly #newKeys = new Set<string>();

  constructor({ effects, assigned }: Rehearsal) {
    this.#assigned = Map.groupBy(assigned, ({ target, column }) => canonical([target, column]));
    for (const effect of effects) this.#noteKey(effect);
    for (const effect of effects) {
      const sides = this.isOldRow(effect) ? IMAGES : SIDES;
      for (const [column, value] of sides.flatMap((side) => Object.entries(effect[side] ?? {}))) {
        const evidence = this.find(effect.target, column, value);
        if (evidence === undefined) continue;
        const known = this.#values.get(canonical(value)) ?? new Set();
        this.#values.set(canonical(value), known.add(evidence));
      }
    }
  }

  /** Under `row-event`, an update that changes the key has the new key in `after`. */
  #noteKey({ op, target, key, after = {} }: Effect): void {
    if (key === undefined) return;
    const moved = Object.keys(key).filter((column) => Object.hasOwn(after, column));
    if (op !== 'insert' && moved.length === 0) return;
    const changes = Object.fromEntries(moved.map((column) => [column, after[column]]));
    this.#newKeys.add(canonical([target, { ...key, ...changes }]));
  }

  /**
   * Whether the change names a row by a key that the row had before. Such a key is never assigned,
   * and never refers to an assigned value.
   */
  isOldRow({ op, target, key }: Effect): boolean {
    if (op === 'insert' || key === undefined) return false;
    return !this.#newKeys.has(canonical([target, key]));
  }

  /** The evidence that the backend assigned this value in this column, if any. */
  find(target: string, column: string, value: Value): Assigned | undefined {
    return this.#assigned
      .get(canonical([target, column]))
      ?.find((one) => withinAssigned(one, value));
  }

  /** Whether the backend assigned this value in a column that the place may refer to. */
  mayRefer(place: Place, value: Value): boolean {
    const known = [...(this.#values.get(canonical(value)) ?? [])];
    return known.some((evidence) => declaresReference(evidence, place) !== false);
  }
}

interface Place {
  readonly target: string;
  readonly column: string;
}

/**
 * Whether the schema says that the column refers to these identifiers. Undefined if the column's
 * table declares no foreign keys and no table declares one to them.
 */
export function declaresReference(
  assigned: Assigned | undefined,
  { target, column }: Place,
): boolean | undefined {
  const referredBy = assigned?.referredBy ?? [];
  const own = referredBy.find((referring) => referring.target === target);
  if (own !== undefined) return own.columns.includes(column);
  return referredBy.some(({ columns }) => columns.length > 0) ? false : undefined;
}

type TimeUnit = Extract<Cell, { readonly now: unknown }>['now']['unit'];
const UNITS: readonly TimeUnit[] = ['iso', 'ms', 's'];

/** The unit in which a value is a time within the window, or undefined if it is not. */
export function timeUnit(value: Value, window: Rehearsal['window']): TimeUnit | undefined {
  return UNITS.find((unit) => satisfies({ now: { withinMs: 0, unit } }, value, { window }));
}
