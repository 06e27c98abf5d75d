import type { Effect } from './effect.ts';
import { volatileColumns } from './match-prepare.ts';
import { isVolatileOnly, rowIdentity } from './match-shape.ts';
import type { Registration } from './registration.ts';
import type { Row } from './value.ts';

type Skip = ReadonlySet<string>;

/**
 * The part of E that comparison looks at: without volatile columns, and without updates that
 * touched nothing else and may be left over. Two observations that differ in nothing but those have
 * the same.
 */
export function comparedEffects(
  registration: Registration,
  effects: readonly Effect[],
): readonly Effect[] {
  const volatile = volatileColumns(registration);
  if (volatile.size === 0) return effects;
  const touches: Effect[] = [];
  const compared: Effect[] = [];
  const named = new Set<string | undefined>();
  for (const effect of effects) {
    const skip = volatile.get(effect.target);
    if (skip !== undefined && isVolatileOnly(effect, skip)) {
      touches.push(effect);
      continue;
    }
    compared.push(skip === undefined ? effect : withoutColumns(effect, skip));
    named.add(rowIdentity(effect));
  }
  for (const effect of touches) {
    const row = rowIdentity(effect);
    if (row !== undefined && named.has(row)) continue;
    compared.push(withoutColumns(effect, volatile.get(effect.target) ?? new Set()));
    named.add(row);
  }
  return compared;
}

function withoutColumns(effect: Effect, skip: Skip): Effect {
  const { before, after } = effect;
  return {
    ...effect,
    ...(before && { before: omit(before, skip) }),
    ...(after && { after: omit(after, skip) }),
  };
}

function omit(row: Row, skip: Skip): Row {
  return Object.fromEntries(Object.entries(row).filter(([column]) => !skip.has(column)));
}
