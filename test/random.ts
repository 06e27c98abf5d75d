import { hash } from 'node:crypto';

/** Choices that a label repeats exactly, on every machine and in every order of execution. */
export interface Random {
  /** From 0 (included) to 1 (excluded). */
  fraction(): number;
  /** A whole number from 0 to below `limit`. */
  below(limit: number): number;
  pick<T>(list: readonly T[]): T;
  /** Between two positive numbers, every order of magnitude equally likely. */
  spread(low: number, high: number): number;
  bytes(length: number): Buffer;
}

/**
 * The digest of the label seeds a small generator. A label such as `seed/17` makes the seventeenth
 * case independent of the others, so it can be repeated without the sixteen before it.
 */
export function randomOf(label: string): Random {
  let state = Number.parseInt(hash('sha256', label).slice(0, 8), 16);
  const fraction = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number) => Math.floor(fraction() * limit);
  return {
    fraction,
    below,
    pick<T>(list: readonly T[]): T {
      if (list.length === 0) throw new RangeError('there is nothing to pick from');
      return list[below(list.length)] as T;
    },
    spread: (low, high) => low * (high / low) ** fraction(),
    bytes: (length) => Buffer.from(Array.from({ length }, () => below(256))),
  };
}

/** How many random cases a test plays: the usual number, times EFFECTMATCH_RUNS. */
export function runsOf(usual: number): number {
  return Math.ceil(usual * Number(process.env.EFFECTMATCH_RUNS ?? 1));
}

/** The seed to use: the one asked for in the environment or on the command line, else a new one. */
export function chooseSeed(asked: string | undefined = process.env.EFFECTMATCH_SEED): string {
  return asked === undefined || asked === ''
    ? Math.floor(Math.random() * 2 ** 32).toString(36)
    : asked;
}
