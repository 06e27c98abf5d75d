import { setTimeout as sleep } from 'node:timers/promises';
import type { Connection } from '../../postgres/connection.ts';
import { quoteName } from '../../postgres/identifier.ts';

/**
 * Listens for verdicts that any process records. This only saves time: behind a pooler, or while
 * the connection is down, no notification arrives, and the caller looks again after the wait.
 */
export class Listener {
  readonly #open: () => Promise<Connection>;
  readonly #channel: string;
  readonly #waiting = new Map<string, Set<AbortController>>();
  #session: Promise<Connection | undefined> | undefined;
  #isClosed = false;

  constructor(open: () => Promise<Connection>, channel: string) {
    this.#open = open;
    this.#channel = channel;
  }

  /** Returns when a notification for the occurrence arrives, or after `ms`. */
  async wait(occurrence: string, ms: number, signal?: AbortSignal): Promise<void> {
    void this.#listen();
    const heard = new AbortController();
    const waiting = this.#waiting.get(occurrence) ?? new Set();
    this.#waiting.set(occurrence, waiting.add(heard));
    const either = AbortSignal.any([heard.signal, ...(signal ? [signal] : [])]);
    try {
      await sleep(ms, undefined, { signal: either });
    } catch (error) {
      if (!heard.signal.aborted) throw error;
    } finally {
      waiting.delete(heard);
      if (waiting.size === 0) this.#waiting.delete(occurrence);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await (await this.#session)?.close();
  }

  /** Starts to listen, unless a live session already does. */
  async #listen(): Promise<void> {
    const known = this.#session;
    const session = await known;
    if (session?.isAlive || this.#session !== known || this.#isClosed) return;
    this.#session = this.#begin().catch(() => undefined);
  }

  async #begin(): Promise<Connection> {
    const session = await this.#open();
    session.onNotification((occurrence) => {
      for (const heard of this.#waiting.get(occurrence) ?? []) heard.abort();
    });
    await session.query(`listen ${quoteName(this.#channel)}`);
    return session;
  }
}
