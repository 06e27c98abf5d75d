import { setTimeout as sleep } from 'node:timers/promises';
import type { RequestEvent } from './request.ts';
import type { Requests } from './requests.ts';

const POLL_MS = 500;
const PAGE = 500;
/** The maximum number of open connections. */
const MAX_LISTENERS = 200;
const BEAT_MS = 15_000;
/** A listener with more unread messages than this is disconnected. */
const MAX_UNREAD = 1000;
/** How long a listener that is catching up may take to read what it was sent. */
const CATCH_UP_MS = 30_000;
const CATCH_UP_POLL_MS = 20;

/** A listener, and the events that it wants. */
interface EventReader {
  /** Connections with the same name count together, up to `most` of them if it is set. */
  readonly name: string;
  readonly most?: number;
  /** Selects the events to send. All of them by default. */
  readonly wants?: (event: RequestEvent) => boolean;
  /** Start after this event. By default only new events are sent. */
  readonly after?: number | undefined;
  readonly signal: AbortSignal;
  /** Whether the listener is still admitted. Checked at every heartbeat. */
  readonly isAdmitted?: () => Promise<boolean>;
  /** Formats an event as one message. */
  readonly write: (event: RequestEvent) => string;
}

type Tell = (event: RequestEvent) => void;

/** Tells listeners what happens to requests. All of them share one reader of the store. */
export class EventStream {
  readonly #requests: Requests;
  readonly #listeners = new Set<Tell>();
  readonly #names = new Map<string, number>();
  readonly #stopping = new AbortController();
  #open = 0;
  #seq = 0;
  #working: Promise<void> | undefined;
  #started: Promise<void> | undefined;

  constructor(requests: Requests) {
    this.#requests = requests;
  }

  /** A response that stays open; undefined if there are too many connections. */
  open(listener: EventReader): Response | undefined {
    const { name, signal, most = MAX_LISTENERS } = listener;
    const named = this.#names.get(name) ?? 0;
    if (this.#open >= MAX_LISTENERS || named >= most) return undefined;
    this.#open += 1;
    this.#names.set(name, named + 1);
    this.#working ??= this.#work();
    let end = () => {};
    const body = new ReadableStream<string>({
      start: (controller) => {
        let isOpen = true;
        const send = (text: string) => {
          // Disconnect a listener that does not read, so that its messages do not fill the memory.
          if (isOpen && (controller.desiredSize ?? 0) > -MAX_UNREAD) controller.enqueue(text);
          else end();
        };
        const beat = setInterval(async () => {
          const { isAdmitted = async () => true } = listener;
          if (await isAdmitted().catch(() => false)) send(': still here\n\n');
          else end();
        }, BEAT_MS);
        const tell = this.#tellFor(listener, send);
        end = () => {
          if (!isOpen) return;
          isOpen = false;
          clearInterval(beat);
          this.#leave(name, tell);
          this.#stopping.signal.removeEventListener('abort', end);
          closeQuietly(controller);
        };
        send('retry: 2000\n\n');
        signal.addEventListener('abort', end, { once: true });
        this.#stopping.signal.addEventListener('abort', end);
        const isBehind = () => (controller.desiredSize ?? 0) < 0;
        this.#join(listener, tell, { isOpen: () => isOpen, isBehind }).catch(() => end());
      },
      // A listener may disconnect without aborting `signal`. Writing to it would then throw.
      cancel: () => end(),
    });
    const headers = { 'content-type': 'text/event-stream' };
    return new Response(body.pipeThrough(new TextEncoderStream()), { headers });
  }

  /** The number of the last event that was read. Later events have higher numbers. */
  async last(): Promise<number> {
    this.#working ??= this.#work();
    await this.#started;
    return this.#seq;
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#working;
  }

  /** Sends the events that a listener wants and has not received yet. */
  #tellFor({ wants, write, after = 0 }: EventReader, send: (text: string) => void): Tell {
    let last = after;
    return (event) => {
      if (event.seq <= last) return;
      last = event.seq;
      if (wants?.(event) !== false) send(write(event));
    };
  }

  /** Sends the events that a listener missed, then adds it to the others. No event is skipped. */
  async #join(
    { after }: EventReader,
    tell: Tell,
    { isOpen, isBehind }: { isOpen: () => boolean; isBehind: () => boolean },
  ): Promise<void> {
    await this.#started;
    let seq = after ?? this.#seq;
    const until = performance.now() + CATCH_UP_MS;
    while (isOpen() && seq < this.#seq) {
      if (isBehind() && performance.now() < until) {
        await sleep(CATCH_UP_POLL_MS);
        continue;
      }
      const events = await this.#requests.events(seq, PAGE);
      for (const event of events) tell(event);
      seq = events.at(-1)?.seq ?? this.#seq;
    }
    if (isOpen()) this.#listeners.add(tell);
  }

  #leave(name: string, tell: Tell): void {
    this.#listeners.delete(tell);
    this.#open -= 1;
    const left = (this.#names.get(name) ?? 1) - 1;
    if (left === 0) this.#names.delete(name);
    else this.#names.set(name, left);
  }

  async #work(): Promise<void> {
    const { signal } = this.#stopping;
    this.#started = this.#read(() => {});
    await this.#started;
    // Events of this process are sent at once, those of other processes at the next poll.
    let wake = () => {};
    let isDue = false;
    const unwatch = this.#requests.watch(() => {
      isDue = true;
      wake();
    });
    while (!signal.aborted) {
      const waking = new AbortController();
      wake = () => waking.abort();
      const either = AbortSignal.any([signal, waking.signal]);
      if (!isDue) await sleep(POLL_MS, undefined, { signal: either }).catch(() => {});
      isDue = false;
      await this.#read((event) => {
        for (const tell of this.#listeners) tell(event);
      });
    }
    unwatch();
  }

  /** Reads the events since the last call. If that fails, the next round tries again. */
  async #read(tell: Tell): Promise<void> {
    for (;;) {
      const events = await this.#requests.events(this.#seq, PAGE).catch(() => []);
      for (const event of events) {
        this.#seq = event.seq;
        tell(event);
      }
      if (events.length < PAGE) return;
    }
  }
}

function closeQuietly(controller: ReadableStreamDefaultController): void {
  try {
    controller.close();
  } catch {
    // The listener disconnected and has already closed the stream.
  }
}
