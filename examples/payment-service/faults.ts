/** What can be made to go wrong with the next request of a kind. */
export type Fault =
  /** The payment also sends a notice that was not requested. */
  | 'hidden-effect'
  /** The connection is cut when the request has arrived and nothing was done. */
  | 'drop-before'
  /** The connection is cut when everything was done. */
  | 'drop-after'
  /** Answered at once, done later; until then the key is unknown. */
  | 'delay-effect'
  /** Done, and answered with 500. */
  | 'error-after'
  /** Not done, and answered with 503; the key stays unknown. */
  | 'error-before'
  /** Done; the answer breaks off in the middle. */
  | 'truncate-answer';

export const FAULTS: readonly Fault[] = [
  'hidden-effect',
  'drop-before',
  'drop-after',
  'delay-effect',
  'error-after',
  'error-before',
  'truncate-answer',
];

/**
 * The faults of one account. A test or an example arms them; each occurs as often as it was armed.
 */
export class Faults {
  readonly #armed: Fault[] = [];
  /** While set, everything that only reads is answered with 503. */
  readsUnavailable = false;
  /** Effects that were answered and have not happened yet. */
  readonly #pending: (() => void)[] = [];

  arm(...faults: readonly Fault[]): void {
    this.#armed.push(...faults);
  }

  /** Clears the faults that have not occurred yet. */
  disarm(): void {
    this.#armed.length = 0;
  }

  /** The fault of the request that has just arrived, if any. */
  take(): Fault | undefined {
    return this.#armed.shift();
  }

  postpone(effect: () => void): void {
    this.#pending.push(effect);
  }

  /** Everything that was put off happens now. */
  settle(): void {
    for (const effect of this.#pending.splice(0)) effect();
  }
}
