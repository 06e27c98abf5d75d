const KEPT = 10_000;

/**
 * What a process knows about the requests it sent last. Nothing may depend on it: a later process
 * knows none of it.
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
