const QUIET_MS = 1000;
const REPAINT_MS = 250;

/** A display of work in progress. */
interface Progress extends Disposable {
  /** Reports progress. Needed for work that blocks the event loop, where the timer cannot run. */
  at(detail: string): void;
}

/** Where to show progress, and which clock to use. */
interface ProgressSite {
  readonly stream: { readonly isTTY?: boolean; write(text: string): unknown };
  readonly nowMs: () => number;
}

let silenced = false;

/** Turns off progress output for this process, because a program reads the output. */
export function silenceProgress(): void {
  silenced = true;
}

/**
 * Shows on a terminal that work is in progress, once it takes over a second. Uses stderr to keep
 * stdout clean.
 */
export function showProgress(what: string): Progress {
  return openProgress(what, { stream: process.stderr, nowMs: () => performance.now() }, silenced);
}

/** Like {@link showProgress}, on a given stream. Removes its output at the end. */
export function openProgress(
  what: string,
  { stream, nowMs }: ProgressSite,
  quiet = false,
): Progress {
  if (quiet || stream.isTTY !== true) return { at() {}, [Symbol.dispose]() {} };
  const startedMs = nowMs();
  let paintedMs = Number.NEGATIVE_INFINITY;
  let detail = '';
  const paint = () => {
    const sinceMs = nowMs() - startedMs;
    if (sinceMs < QUIET_MS || nowMs() - paintedMs < REPAINT_MS) return;
    paintedMs = nowMs();
    stream.write(`\r\u001b[K${what}: ${Math.round(sinceMs / 1000)} s${detail}`);
  };
  const timer = setInterval(paint, QUIET_MS);
  timer.unref();
  return {
    at(text) {
      detail = `, ${text}`;
      paint();
    },
    [Symbol.dispose]() {
      clearInterval(timer);
      if (paintedMs > Number.NEGATIVE_INFINITY) stream.write('\r\u001b[K');
    },
  };
}

/** A first Ctrl-C or SIGTERM, as a promise and as a signal to abort work. */
interface Interrupt extends Disposable {
  readonly interrupted: Promise<'interrupted'>;
  readonly signal: AbortSignal;
}

/** Keeps the first of these signals from ending the process. A second one ends it. */
export function catchInterrupt(
  signals: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM'],
): Interrupt {
  const { promise, resolve } = Promise.withResolvers<'interrupted'>();
  const ending = new AbortController();
  const ignore = () => {
    for (const signal of signals) process.removeListener(signal, once);
  };
  const once = () => {
    ignore();
    ending.abort();
    resolve('interrupted');
  };
  for (const signal of signals) process.once(signal, once);
  return { interrupted: promise, signal: ending.signal, [Symbol.dispose]: ignore };
}
