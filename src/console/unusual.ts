import type { ApprovedEffect } from '../protocol/effect.ts';
import { largestWritten } from './numbers.ts';

/** One of several items to decide about, and how it differs from the others. */
export interface Ranked<T> {
  readonly item: T;
  /** The difference in words, if the item is unusual. */
  readonly unusual?: string;
}

/** An item is unusual if it is more than this many spreads away from the median. */
const FAR = 3;

/**
 * Puts unusual items first: those whose number of changes or amounts are far from the median. This
 * only helps reading. It does not detect fraud: one forgery among many would look usual.
 */
export function rankUnusual<T>(
  items: readonly T[],
  effectsOf: (item: T) => readonly ApprovedEffect[],
): readonly Ranked<T>[] {
  const features = items.map((item) => featuresOf(effectsOf(item)));
  const names = [...new Set(features.flatMap((found) => [...found.keys()]))];
  const usual = new Map(names.map((name) => [name, spreadOf(features.map((f) => f.get(name)))]));
  const ranked = items.map((item, index) => {
    let [score, words] = [0, ''];
    for (const [name, found] of features[index] ?? []) {
      const { middle, spread } = usual.get(name) ?? { middle: found, spread: 1 };
      const distance = Math.abs(found - middle) / spread;
      if (distance <= score) continue;
      [score, words] = [distance, `${name} is ${found}, usually about ${middle}`];
    }
    return { item, score, words };
  });
  return ranked
    .sort((a, b) => b.score - a.score)
    .map(({ item, score, words }) => (score > FAR ? { item, unusual: words } : { item }));
}

function featuresOf(effects: readonly ApprovedEffect[]): ReadonlyMap<string, number> {
  const count = effects.reduce((sum, effect) => sum + effect.count, 0);
  // Leave out keys: an identifier says nothing about the size of a change.
  const written = effects.map(({ key: _key, ...effect }) => effect);
  return new Map([['the number of changes', count], ...largestWritten(written)]);
}

/** The median, and the median distance from it. Never zero, or one cent would look unusual. */
function spreadOf(values: readonly (number | undefined)[]): { middle: number; spread: number } {
  const known = values.filter((value) => value !== undefined);
  const middle = medianOf(known);
  const spread = medianOf(known.map((value) => Math.abs(value - middle)));
  return { middle, spread: Math.max(spread, Math.abs(middle) / 10, Number.EPSILON) };
}

function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
}
