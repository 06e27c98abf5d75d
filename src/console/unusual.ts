import type { ApprovedEffect } from '../protocol/effect.ts';
import { largestWritten } from './numbers.ts';

/** One of several things to decide, and in what it differs from the others. */
export interface Ranked<T> {
  readonly item: T;
  /** In words, if it stands out. */
  readonly unusual?: string;
}

/** So many times the usual spread away from the middle stands out. */
const FAR = 3;

/**
 * Puts what stands out first: more changes than usual, or larger amounts. It is a help for reading,
 * and no judgement: the first of many forgeries would look usual.
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
  // Identifiers say nothing about how far a change goes.
  const written = effects.map(({ key: _key, ...effect }) => effect);
  return new Map([['the number of changes', count], ...largestWritten(written)]);
}

/** The median, and the median distance from it; never nothing, or one cent would stand out. */
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
