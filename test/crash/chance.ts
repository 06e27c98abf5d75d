import { createHash } from 'node:crypto';

/** Choices that a seed repeats exactly, on every machine and in every order of execution. */
export interface Chance {
  /** From 0 (included) to 1 (excluded). */
  fraction(): number;
  /** A whole number from 0 to below `limit`. */
  below(limit: number): number;
  pick<T>(list: readonly T[]): T;
  /** Between two positive numbers, every order of magnitude equally likely. */
  spread(low: number, high: number): number;
}

/**
 * Draws from the digests of `label:0`, `label:1`, …. A label such as `seed/17` gives the
 * seventeenth case choices of its own, so one case can be repeated without the sixteen before it.
 */
export function chanceOf(label: string): Chance {
  let drawn = 0;
  const fraction = () => {
    const bytes = createHash('sha256').update(`${label}:${drawn}`).digest();
    drawn += 1;
    return bytes.readUIntBE(0, 6) / 2 ** 48;
  };
  const below = (limit: number) => Math.floor(fraction() * limit);
  return {
    fraction,
    below,
    pick(list) {
      const chosen = list[below(list.length)];
      if (chosen === undefined) throw new RangeError('there is nothing to pick from');
      return chosen;
    },
    spread: (low, high) => low * (high / low) ** fraction(),
  };
}

/** The seed to use: the one asked for in the environment or on the command line, else a new one. */
export function chooseSeed(asked: string | undefined = process.env.EFFECTMATCH_SEED): string {
  return asked === undefined || asked === ''
    ? Math.floor(Math.random() * 2 ** 32).toString(36)
    : asked;
}
