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

  readonly #end: 'SIGKILL' | 'SIGQUIT' | 'SIGINT';

  /** `end` is how the server ends: it is stopped for `SIGKILL`, and told to shut down otherwise. */
  constructor(server: TestServer, end: 'SIGKILL' | 'SIGQUIT' | 'SIGINT' = 'SIGKILL') {
    this.#server = server;
    this.#end = end;
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
    const { pid } = this.#server;
    if (this.#end === 'SIGKILL') for (const known of this.#known) signal(known, 'SIGSTOP');
    else if (pid !== undefined) signal(pid, this.#end);
    this.#stopped.resolve();
  }

  /** Resolves when the server was stopped. */
  get stopped(): Promise<void> {
    return this.#stopped.promise;
  }
}
