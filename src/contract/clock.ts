/** All nondeterminism is injected, so that a test can replay it. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /**
   * Milliseconds on a clock that cannot be set. It has no fixed start, and may stop while the
   * machine is suspended.
   */
  monotonic(): number;
}

/** The part of a clock that dates records. */
export type WallClock = Pick<Clock, 'now'>;

/**
 * A moment on both clocks. It has passed as soon as either clock reaches it: the wall clock can be
 * set back, and the monotonic clock may stop while the machine is suspended.
 */
export interface Deadline {
  readonly atMs: number;
  readonly monotonicMs: number;
}

/** The deadline `ms` from now. */
export function deadlineIn(clock: Clock, ms: number): Deadline {
  return { atMs: clock.now() + ms, monotonicMs: clock.monotonic() + ms };
}

/** Whether the deadline has passed. */
export function isOver(clock: Clock, { atMs, monotonicMs }: Deadline): boolean {
  return clock.now() >= atMs || clock.monotonic() >= monotonicMs;
}

/** Randomness, injected like the clock so that tests can repeat a run. */
export interface IdSource {
  /** Lower-case hex of `bytes` random bytes. */
  hex(bytes: number): string;
}

/** The machine's clock. */
export const systemClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() };

/** The only format for times in records. */
export function instant(ms: number): string {
  return new Date(ms).toISOString();
}
