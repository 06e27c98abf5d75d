// Computes measured figures from samples, for the studies and for `recompute`.

export function median(samples: readonly number[]): number {
  return quantile(samples, 0.5);
}

export function quantile(samples: readonly number[], q: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN;
}

/** The median of a few samples. It averages the middle two if their number is even. */
export function middle(samples: readonly number[]): number {
  const sorted = [...samples].sort((a, b) => a - b);
  const at = (index: number) => sorted[index] ?? Number.NaN;
  const half = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? at(half) : (at(half - 1) + at(half)) / 2;
}

type Numbers = readonly number[];

/**
 * The samples behind a measured figure. `middle` uses {@link middle}. `paired` takes the median of
 * the quotients, sample by sample. `blocks` does the same with the medians of blocks. `increment`
 * subtracts sample by sample.
 */
export type Samples =
  | {
      readonly statistic: 'median' | 'p95' | 'middle';
      readonly of: Numbers;
      readonly times?: number;
    }
  | {
      readonly statistic: 'ratio' | 'difference' | 'paired' | 'increment';
      readonly of: Numbers;
      readonly to: Numbers;
      readonly times?: number;
    }
  | {
      readonly statistic: 'blocks';
      readonly of: readonly Numbers[];
      readonly to: readonly Numbers[];
    };

/** Computes the figure from its samples. */
export function statisticOf(samples: Samples): number {
  const times = 'times' in samples ? (samples.times ?? 1) : 1;
  switch (samples.statistic) {
    case 'median':
      return median(samples.of) * times;
    case 'p95':
      return quantile(samples.of, 0.95) * times;
    case 'middle':
      return middle(samples.of) * times;
    case 'ratio':
      return (median(samples.of) / median(samples.to)) * times;
    case 'difference':
      return (median(samples.of) - median(samples.to)) * times;
    case 'paired':
      return medianOfPairs(samples.of, samples.to, (one, other) => one / other) * times;
    case 'increment':
      return medianOfPairs(samples.of, samples.to, (one, other) => one - other) * times;
    case 'blocks':
      return medianOfPairs(
        samples.of.map(median),
        samples.to.map(median),
        (one, other) => one / other,
      );
    default:
      throw new Error(`there is no statistic ${JSON.stringify(samples satisfies never)}`);
  }
}

function medianOfPairs(
  of: Numbers,
  to: Numbers,
  compare: (one: number, other: number) => number,
): number {
  return median(of.map((one, index) => compare(one, to[index] ?? Number.NaN)));
}
