/**
 * Counts the steps of a search. Once the budget is exhausted, every loop ends at once and the
 * result so far is meaningless: callers must check {@link Budget.exhausted} before they use a
 * result.
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

  /** How many steps are left. */
  get left(): number {
    return Math.max(0, this.#limit - this.#spent);
  }

  get exhausted(): boolean {
    return this.#spent > this.#limit;
  }

  /** Counts steps. Returns false once the limit is exceeded. */
  spend(steps = 1): boolean {
    this.#spent += steps;
    return this.#spent <= this.#limit;
  }
}
