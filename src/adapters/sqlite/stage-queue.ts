/**
 * Lets the stages of one process take the write lock in the order in which they asked. SQLite
 * itself has no queue: every writer has to try again until it meets the moment at which the lock is
 * free. Between processes that remains so.
 */
export class StageQueue {
  #taken = false;
  readonly #waiting: (() => void)[] = [];

  /**
   * Waits up to `deadlineMs` for its turn. Returns how to end it, once; undefined when the turn did
   * not come.
   */
  async take(deadlineMs: number): Promise<(() => void) | undefined> {
    if (this.#taken && !(await this.#wait(deadlineMs))) return undefined;
    this.#taken = true;
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      this.#passOn();
    };
  }

  #wait(deadlineMs: number): Promise<boolean> {
    if (deadlineMs <= 0) return Promise.resolve(false);
    return new Promise((resolve) => {
      const proceed = () => {
        clearTimeout(timer);
        resolve(true);
      };
      const timer = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(proceed), 1);
        resolve(false);
      }, deadlineMs);
      this.#waiting.push(proceed);
    });
  }

  /**
   * The turn goes straight to the next in line, so that a later stage cannot get in first.
   */
  #passOn(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#taken = false;
    else next();
  }
}
