import { descendantsOf, signal } from './processes.ts';
import type { TestServer } from './server.ts';

/**
 * Stops a server at one instant, in the middle of whatever it does, so that `kill` can take its
 * time. Finding the processes takes longer than a COMMIT, so they are looked for beforehand.
 */
export class Freezer {
  readonly #server: TestServer;
  readonly #known = new Set<number>();
  readonly #stopped = Promise.withResolvers<void>();
  #frozen = false;

  constructor(server: TestServer) {
    this.#server = server;
  }

  get frozen(): boolean {
    return this.#frozen;
  }

  /** Notes the processes that run now. */
  look(): void {
    const { pid } = this.#server;
    if (pid === undefined || this.#frozen) return;
    this.#known.add(pid);
    for (const child of descendantsOf(pid)) this.#known.add(child);
  }

  /** Stops all that were noted; none of them writes or answers anything from here on. */
  freeze(): void {
    if (this.#frozen) return;
    this.#frozen = true;
    for (const pid of this.#known) signal(pid, 'SIGSTOP');
    this.#stopped.resolve();
  }

  /** Resolves when the server was stopped. */
  get stopped(): Promise<void> {
    return this.#stopped.promise;
  }
}
