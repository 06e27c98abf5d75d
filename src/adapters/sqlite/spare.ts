import type { DatabaseSync } from 'node:sqlite';

/**
 * Keeps one connection ready that no action has run on yet, so that a stage need not wait for its own to be opened.
 * Every connection is handed out once: what makes a stage's connection clean is that nobody used it before, not when
 * it was opened.
 */
export class Spare {
  readonly #open: () => DatabaseSync | undefined;
  #ready: DatabaseSync | undefined;
  #soon: NodeJS.Immediate | undefined;

  /** `open` prepares a connection, or returns undefined where it would not be the right file. */
  constructor(open: () => DatabaseSync | undefined) {
    this.#open = open;
  }

  /** The connection at hand, which is the caller's from now on; undefined where there is none. */
  take(): DatabaseSync | undefined {
    const ready = this.#ready;
    this.#ready = undefined;
    return ready;
  }

  /** Opens the next one when this turn of the event loop is over. */
  prepare(): void {
    if (this.#ready !== undefined || this.#soon !== undefined) return;
    this.#soon = setImmediate(() => {
      this.#soon = undefined;
      try {
        this.#ready = this.#open();
      } catch {
        // The stage that needs a connection opens its own then, and says what is wrong.
      }
    });
    this.#soon.unref();
  }

  close(): void {
    clearImmediate(this.#soon);
    this.#soon = undefined;
    this.take()?.close();
  }
}
