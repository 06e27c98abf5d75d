/**
 * Counts the steps of a search. Once it is exhausted every loop ends at once and whatever was
 * computed so far means nothing: the caller asks {@link Budget.exhausted} first and reads a result
 * only when it is false.
 */
export class Budget {
  readonly #limit: number;
  #spent = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get spent(): number {
    return this.#spent;
  }

  /** How many steps may still be spent. */
  get left(): number {
    return Math.max(0, this.#limit - this.#spent);
  }

  get exhausted(): boolean {
    return this.#spent > this.#limit;
  }

  /** Counts steps; false when they were more than allowed. */
  spend(steps = 1): boolean {
    this.#spent += steps;
    return this.#spent <= this.#limit;
  }
}
