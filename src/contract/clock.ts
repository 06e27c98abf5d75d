/** All nondeterminism is injected, so that a test can replay it. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

/** Randomness, injected like the clock so that tests can repeat a run. */
export interface IdSource {
  /** Lower-case hex of `bytes` random bytes. */
  hex(bytes: number): string;
}

/** The machine's clock. */
export const systemClock: Clock = { now: () => Date.now() };

/** The only form in which records carry time. */
export function instant(ms: number): string {
  return new Date(ms).toISOString();
}
