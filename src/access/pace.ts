const MINUTE_MS = 60_000;

/** Limits the calls per minute. A full minute's calls may come in one burst. */
export class Pace {
  readonly #perMinute: number;
  readonly #now: () => number;
  #left: number;
  #countedAt: number;

  constructor(perMinute: number, now = () => performance.now()) {
    this.#perMinute = perMinute;
    this.#now = now;
    this.#left = perMinute;
    this.#countedAt = now();
  }

  /** Whether one more call is allowed. Counts the call if it is. */
  take(): boolean {
    const now = this.#now();
    const earned = ((now - this.#countedAt) * this.#perMinute) / MINUTE_MS;
    this.#left = Math.min(this.#perMinute, this.#left + earned);
    this.#countedAt = now;
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }
}
