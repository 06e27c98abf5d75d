const KEPT = 10_000;

/**
 * Facts about the latest requests of this process. Nothing may depend on them, because a later
 * process does not have them.
 */
export class Recent<V> {
  readonly #entries = new Map<string, V>();

  get(key: string): V | undefined {
    return this.#entries.get(key);
  }

  set(key: string, value: V): void {
    const [oldest] = this.#entries.keys();
    if (this.#entries.size >= KEPT && oldest !== undefined) this.#entries.delete(oldest);
    this.#entries.set(key, value);
  }
}
