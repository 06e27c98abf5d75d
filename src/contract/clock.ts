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

let second = Number.NaN;
let untilSecond = '';

/** The only form in which records carry time. Everything but the milliseconds is formatted once a second. */
export function instant(ms: number): string {
  if (!Number.isSafeInteger(ms)) return new Date(ms).toISOString();
  const since = Math.floor(ms / 1000);
  if (since !== second) {
    untilSecond = new Date(ms).toISOString().slice(0, -'000Z'.length);
    second = since;
  }
  return `${untilSecond}${String(ms - since * 1000).padStart(3, '0')}Z`;
}
