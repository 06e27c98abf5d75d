import { canonical } from '../../src/protocol/canon.ts';
import type { Effect } from '../../src/protocol/effect.ts';

/** A multiset of effects: how often each occurs, by its canonical text. */
export type Multiset = ReadonlyMap<string, number>;

export function multisetOf(effects: Iterable<Effect & { readonly count?: number }>): Multiset {
  const counts = new Map<string, number>();
  for (const { count = 1, ...effect } of effects) {
    const text = canonical(effect);
    counts.set(text, count + (counts.get(text) ?? 0));
  }
  return counts;
}

/** What the first multiset has and the second has not. */
export function without(from: Multiset, taken: Multiset): Multiset {
  const left = [...from].map(([text, count]) => [text, count - (taken.get(text) ?? 0)] as const);
  return new Map(left.filter(([, count]) => count > 0));
}
