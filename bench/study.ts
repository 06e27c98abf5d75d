import { type Samples, statisticOf } from './statistics.ts';

export { median, quantile } from './statistics.ts';

/**
 * One figure of a study. `ok` says whether it meets its target; a figure without a target is `ok`.
 */
export interface Cell {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly target?: string;
  /** The figure the paper reports for the same measurement. */
  readonly paper?: number;
  readonly ok: boolean;
  /** What a measured figure was calculated from; kept with the raw records. */
  readonly samples?: Samples;
}

/**
 * A study that cannot run here, because what it needs is absent. That is reported, and is no
 * failure.
 */
export class NotRun extends Error {}

export interface StudyOptions {
  readonly quick: boolean;
  /** The folder with the public task data, where it is not in its usual place. */
  readonly data?: string | undefined;
  /** Decides whatever a study draws at random; {@link DEFAULT_SEED} unless told. */
  readonly seed?: number | undefined;
  /** Says what is being measured now; goes to standard error. */
  progress(line: string): void;
}

export const DEFAULT_SEED = 1;

/** Whether hours of repetitions are wanted, by EFFECTMATCH_BENCH_LONG: for kills and races. */
export function isLong(): boolean {
  return process.env.EFFECTMATCH_BENCH_LONG === '1';
}

/** Numbers from 0 to below 1 that depend on the seed alone (mulberry32). */
export function drawing(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A study measures in one run everything that its ratios compare. */
export interface Study {
  readonly name: string;
  readonly about: string;
  /**
   * What the seed decides. Absent where nothing in the study is drawn: keys and ids of the runtime
   * are never seeded.
   */
  readonly seeded?: string;
  /** The seed unless told; {@link DEFAULT_SEED} for most. */
  readonly seed?: number;
  run(options: StudyOptions): Promise<readonly Cell[]>;
}

/** A value, or the samples that it is calculated from, which are kept with the figure then. */
export type Measured = number | Samples;

function valueFrom(measured: Measured): { readonly value: number; readonly samples?: Samples } {
  if (typeof measured === 'number') return { value: measured };
  return { value: statisticOf(measured), samples: measured };
}

/** A figure with an upper bound. */
export function atMost(name: string, measured: Measured, unit: string, bound: number): Cell {
  const found = valueFrom(measured);
  return { name, unit, ...found, target: `<= ${bound}`, ok: found.value <= bound };
}

/** A figure with a lower bound. */
export function atLeast(name: string, measured: Measured, unit: string, bound: number): Cell {
  const found = valueFrom(measured);
  return { name, unit, ...found, target: `>= ${bound}`, ok: found.value >= bound };
}

/** A figure that is only reported. */
export function figure(name: string, measured: Measured, unit: string): Cell {
  return { name, unit, ...valueFrom(measured), ok: true };
}

/** The median of samples, only reported. `times` converts the unit. */
export function medianCell(name: string, of: readonly number[], unit: string, times = 1): Cell {
  return figure(name, { statistic: 'median', of, times }, unit);
}

/** The median of quotients, sample by sample: what was measured in turns met the same load. */
export function pairedCell(name: string, of: readonly number[], to: readonly number[]): Cell {
  return figure(name, { statistic: 'paired', of, to }, 'x');
}

/** The 95th percentile of samples, only reported. */
export function p95Cell(name: string, of: readonly number[], unit: string, times = 1): Cell {
  return figure(name, { statistic: 'p95', of, times }, unit);
}

/** A count that has one right value. */
export function exactly(name: string, value: number, unit: string, expected: number): Cell {
  return { name, value, unit, target: `= ${expected}`, ok: value === expected };
}

/**
 * Targets that a strict run must meet: all of them, or in a quick run the counts, which have one
 * right value ({@link exactly}, {@link reproduced}). Every bound is on a time, a ratio of times or
 * a rate, and a quick run measures too little to judge those.
 */
export function missedTargets(cells: readonly Cell[], quick: boolean): readonly Cell[] {
  return cells.filter(({ target, ok }) => !ok && (!quick || target?.startsWith('= ')));
}

/** A count for which the paper reports one, and whether both are the same. */
export function reproduced(name: string, value: number, unit: string, paper: number): Cell {
  return { ...exactly(name, value, unit, paper), paper };
}
