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

let last = { ms: 0, text: new Date(0).toISOString() };

/** The only form in which records carry time. One execution asks for the same millisecond again and again. */
export function instant(ms: number): string {
  if (ms !== last.ms) last = { ms, text: new Date(ms).toISOString() };
  return last.text;
}
