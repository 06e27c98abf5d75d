import type { Candidate } from './candidate.ts';
import type { Catalog } from './catalog.ts';

/**
 * Keeps the connection of the last stage for the next one: opening, setting up and compiling again
 * costs more than the stage itself. There is one at most, because stages of one process take turns.
 */
export class Keeper {
  #kept: Candidate | undefined;

  /**
   * The connection at hand, which is the caller's from now on; one for another schema is closed.
   */
  take(catalog: Catalog): Candidate | undefined {
    const kept = this.#kept;
    this.#kept = undefined;
    if (kept === undefined || kept.isFor(catalog)) return kept;
    kept.close();
    return undefined;
  }

  keep(candidate: Candidate): void {
    this.#kept?.close();
    this.#kept = candidate;
  }

  close(): void {
    this.#kept?.close();
    this.#kept = undefined;
  }
}
