/**
 * One question for many callers. A caller never gets an answer that was asked for before it came:
 * while a question is under way, later callers wait and share the next one.
 */
export class SharedAnswer<T> {
  readonly #ask: () => Promise<T>;
  #underWay: Promise<unknown> = Promise.resolve();
  #next: Promise<T> | undefined;

  constructor(ask: () => Promise<T>) {
    this.#ask = ask;
  }

  get(): Promise<T> {
    this.#next ??= this.#askNext();
    return this.#next;
  }

  async #askNext(): Promise<T> {
    await this.#underWay;
    // Callers that come from here on wait for the next answer.
    this.#next = undefined;
    const answer = Promise.try(this.#ask);
    this.#underWay = answer.catch(() => {});
    return await answer;
  }
}
