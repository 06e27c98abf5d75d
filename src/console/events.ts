import { setTimeout as sleep } from 'node:timers/promises';
import type { Requests } from '../requests/requests.ts';

const POLL_MS = 500;
const PAGE = 500;
/** So many pages may listen at once. */
const MAX_LISTENERS = 200;
const BEAT_MS = 15_000;
/** So many messages wait for a page that does not read them. */
const MAX_UNREAD = 1000;

/** Tells pages which requests have changed. One reader of the store serves all of them. */
export class EventStream {
  readonly #requests: Requests;
  readonly #listeners = new Set<(text: string) => void>();
  readonly #stopping = new AbortController();
  #seq = 0;
  #working: Promise<void> | undefined;

  constructor(requests: Requests) {
    this.#requests = requests;
  }

  /** An answer that stays open; undefined if there are too many already. */
  open(signal: AbortSignal): Response | undefined {
    if (this.#listeners.size >= MAX_LISTENERS) return undefined;
    this.#working ??= this.#work();
    let end = () => {};
    const body = new ReadableStream<string>({
      start: (controller) => {
        const tell = (text: string) => {
          // A page that reads nothing must not fill the memory.
          if ((controller.desiredSize ?? 0) > -MAX_UNREAD) controller.enqueue(text);
          else end();
        };
        const beat = setInterval(() => tell(': still here\n\n'), BEAT_MS);
        end = () => {
          clearInterval(beat);
          this.#listeners.delete(tell);
          this.#stopping.signal.removeEventListener('abort', end);
          try {
            controller.close();
          } catch {
            // The page has gone and has closed it itself.
          }
        };
        this.#listeners.add(tell);
        tell('retry: 2000\n\n');
        signal.addEventListener('abort', end, { once: true });
        this.#stopping.signal.addEventListener('abort', end);
      },
      // The page may go without `signal` saying so. Writing to it then would throw.
      cancel: () => end(),
    });
    const headers = { 'content-type': 'text/event-stream' };
    return new Response(body.pipeThrough(new TextEncoderStream()), { headers });
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#working;
  }

  async #work(): Promise<void> {
    const { signal } = this.#stopping;
    await this.#read();
    while (!signal.aborted) {
      await sleep(POLL_MS, undefined, { signal }).catch(() => {});
      for (const id of await this.#read())
        for (const tell of this.#listeners) tell(`event: request\ndata: ${id}\n\n`);
    }
  }

  /** The requests that have changed since the last time; nothing if the store cannot be read. */
  async #read(): Promise<ReadonlySet<string>> {
    const changed = new Set<string>();
    for (;;) {
      const events = await this.#requests.events(this.#seq, PAGE).catch(() => []);
      for (const { id } of events) changed.add(id);
      this.#seq = events.at(-1)?.seq ?? this.#seq;
      if (events.length < PAGE) return changed;
    }
  }
}
