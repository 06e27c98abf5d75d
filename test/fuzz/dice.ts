import { hash } from 'node:crypto';

/**
 * Choices that a label repeats exactly. Cheaper than `test/crash/chance.ts`, because a fuzzer draws
 * millions.
 */
export interface Dice {
  /** A whole number from 0 to below `limit`. */
  below(limit: number): number;
  pick<T>(list: readonly T[]): T;
  bytes(length: number): Buffer;
}

/**
 * The digest of the label seeds a small generator, so every case can be repeated without the ones
 * before it.
 */
export function diceOf(label: string): Dice {
  let state = Number.parseInt(hash('sha256', label).slice(0, 8), 16);
  const draw = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number) => Math.floor(draw() * limit);
  return {
    below,
    pick: <T>(list: readonly T[]) => list[below(list.length)] as T,
    bytes: (length) => Buffer.from(Array.from({ length }, () => below(256))),
  };
}
