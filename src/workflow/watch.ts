import { setTimeout as sleep } from 'node:timers/promises';
import type { Requests } from '../requests/requests.ts';
import type { OpenContinuation } from '../runtime/continuation.ts';
import type { Recovered } from '../runtime/recover.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Workflows } from './workflows.ts';

/** What a watcher looks after. */
export interface WatcherOptions {
  readonly runtime: Runtime;
  readonly requests?: Requests;
  readonly workflows?: Workflows;
  /** How often it looks; 5000 unless said otherwise. */
  readonly everyMs?: number;
  /** Called with what every look found and did. */
  readonly onLook?: (found: WatcherFindings) => void;
  /** Called when a look failed; the next one is tried all the same. */
  readonly onFault?: (error: unknown) => void;
}

/** What one look found and did. */
export interface WatcherFindings {
  /** Attempts that had ended without a verdict. */
  readonly recovered: readonly Recovered[];
  /** Runs of silent workers that were taken over. */
  readonly takenOver: readonly string[];
  /** How many requests wait for an answer, after those that were overdue have expired. */
  readonly waiting: number;
  /** Work that was released and has not completed. */
  readonly continuations: readonly OpenContinuation[];
}

/** A watcher at work. */
export interface Watcher extends AsyncDisposable {
  /** Looks now, and waits for it. */
  look(): Promise<WatcherFindings>;
  close(): Promise<void>;
}

const EVERY_MS = 5000;

/**
 * Looks after what interrupted processes leave: settles attempts whose lease has run out, takes over
 * the runs of silent workers, and lets overdue requests expire. Any number may run at once.
 */
export function startWatcher(options: WatcherOptions): Watcher {
  const { everyMs = EVERY_MS, onLook = () => {}, onFault = () => {} } = options;
  const closing = new AbortController();
  const { signal } = closing;
  const watch = async () => {
    while (!signal.aborted) {
      await lookOnce(options).then(onLook, onFault);
      await sleep(everyMs, undefined, { signal }).catch(() => {});
    }
  };
  const watching = watch();
  const close = async () => {
    closing.abort();
    await watching;
  };
  return { look: () => lookOnce(options), close, [Symbol.asyncDispose]: close };
}

async function lookOnce({
  runtime,
  requests,
  workflows,
}: WatcherOptions): Promise<WatcherFindings> {
  const recovered = await runtime.recover();
  const takenOver = (await workflows?.takeOver()) ?? [];
  // A request that is overdue expires when it is looked at.
  await requests?.list({ state: 'pending', limit: 500 });
  const waiting = (await requests?.countWaiting()) ?? 0;
  return { recovered, takenOver, waiting, continuations: await runtime.continuations() };
}
