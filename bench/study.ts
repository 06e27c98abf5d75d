import { type Samples, statisticOf } from './statistics.ts';

export { median, quantile } from './statistics.ts';

/**
 * One figure of a study. `ok` tells whether it meets its target; a figure without one is `ok`.
 */
export interface Cell {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly target?: string;
  /** The figure the paper reports for the same measurement. */
  readonly paper?: number;
  readonly ok: boolean;
  /** The samples behind a measured figure, kept with the raw records. */
  readonly samples?: Samples;
}

/** Thrown if something that a study needs is missing. This is reported, but not as a failure. */
export class NotRun extends Error {}

export interface StudyOptions {
  readonly quick: boolean;
  /** The folder with the public task data, if it is not in the usual place. */
  readonly data?: string | undefined;
  /** The seed of all random draws in a study. Defaults to {@link DEFAULT_SEED}. */
  readonly seed?: number | undefined;
  /** Prints to standard error what is being measured. */
  progress(line: string): void;
}

export const DEFAULT_SEED = 1;

/** A generator of numbers in [0, 1) that depend only on the seed (mulberry32). */
export function drawing(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A study. One run measures everything that its ratios compare. */
export interface Study {
  readonly name: string;
  readonly about: string;
  /**
   * What the seed decides. Absent if the study draws nothing at random. The runtime's keys and ids
   * are never seeded.
   */
  readonly seeded?: string;
  /** The study's default seed, if it is not {@link DEFAULT_SEED}. */
  readonly seed?: number;
  run(options: StudyOptions): Promise<readonly Cell[]>;
}

/** A value, or the samples to compute it from. Samples are kept with the figure. */
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

/** The median of the quotients of samples that were measured in turn, so under the same load. */
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
 * The figures that miss a target of a strict run. A quick run checks only counts with one right
 * value ({@link exactly}, {@link reproduced}). Bounds apply to times, ratios of times and rates,
 * and a quick run measures too little to judge those.
 */
export function missedTargets(cells: readonly Cell[], quick: boolean): readonly Cell[] {
  return cells.filter(({ target, ok }) => !ok && (!quick || target?.startsWith('= ')));
}

/** A count that should equal the one the paper reports. */
export function reproduced(name: string, value: number, unit: string, paper: number): Cell {
  return { ...exactly(name, value, unit, paper), paper };
}
