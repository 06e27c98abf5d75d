import { rowText } from './bag.ts';
import type { Effect } from './effect.ts';
import type { Registration } from './registration.ts';
import type { Row } from './value.ts';

/** The columns that are not compared, per target. */
export type VolatileColumns = ReadonlyMap<string, ReadonlySet<string>>;

/** Key columns identify the row that A names, so they are compared even if declared volatile. */
export function volatileColumns(registration: Registration): VolatileColumns {
  const volatile = new Map<string, ReadonlySet<string>>();
  for (const target of registration.targets) {
    if (target.volatile.length === 0) continue;
    const columns = target.volatile.filter((column) => !target.key.includes(column));
    if (columns.length > 0) volatile.set(target.name, new Set(columns));
  }
  return volatile;
}

/** Observed effects that A must account for, and those that may be left over. */
interface SplitEffects {
  readonly required: readonly Effect[];
  readonly optional: readonly Effect[];
}

/**
 * An update of only volatile columns may be left over if another effect of E names its row, because
 * that effect must be matched for E to equal A. Without such an effect, one update of the row must
 * be accounted for, and the others may be left over.
 */
export function splitTouches(effects: readonly Effect[], volatile: VolatileColumns): SplitEffects {
  if (volatile.size === 0) return { required: effects, optional: [] };
  const required: Effect[] = [];
  const optional: Effect[] = [];
  const touches: Effect[] = [];
  const named = new Set<string>();
  for (const effect of effects) {
    const row = rowIdentity(effect);
    if (isVolatileOnly(effect, volatile)) {
      touches.push(effect);
    } else {
      required.push(effect);
      if (row !== undefined) named.add(row);
    }
  }
  for (const effect of touches) {
    const row = rowIdentity(effect);
    if (row !== undefined && named.has(row)) optional.push(effect);
    else required.push(effect);
    if (row !== undefined) named.add(row);
  }
  return { required, optional };
}

/** Whether an update touched only volatile columns. */
export function isVolatileOnly(effect: Effect, volatile: VolatileColumns): boolean {
  const skip = volatile.get(effect.target);
  if (skip === undefined || effect.op !== 'update') return false;
  const columns = [...Object.keys(effect.before ?? {}), ...Object.keys(effect.after ?? {})];
  return columns.length > 0 && columns.every((column) => skip.has(column));
}

/** Identifies the row of an effect; undefined if the target has no key. */
export function rowIdentity({ target, key }: Effect): string | undefined {
  return key === undefined ? undefined : `${target.length}:${target}${rowText(key)}`;
}

/**
 * The part of E that is compared: without volatile columns, and without updates of only such
 * columns that may be left over. Observations that differ only in those have the same part.
 */
export function comparedEffects(
  registration: Registration,
  effects: Iterable<Effect>,
): Iterable<Effect> {
  const volatile = volatileColumns(registration);
  if (volatile.size === 0) return effects;
  return splitTouches([...effects], volatile).required.map((effect) =>
    withoutVolatile(effect, volatile),
  );
}

/** An effect without its volatile columns. */
export function withoutVolatile(effect: Effect, volatile: VolatileColumns): Effect {
  const skip = volatile.get(effect.target);
  if (skip === undefined) return effect;
  const { before, after } = effect;
  const omit = (row: Row): Row =>
    Object.fromEntries(Object.entries(row).filter(([column]) => !skip.has(column)));
  return {
    ...effect,
    ...(before && { before: omit(before) }),
    ...(after && { after: omit(after) }),
  };
}
