const QUIET_MS = 1000;
const REPAINT_MS = 250;

/** Something under way. */
interface Progress extends Disposable {
  /** How far it has come. Work that never lets the event loop turn is shown by this alone. */
  at(detail: string): void;
}

/** Where progress is shown, and by which clock. */
interface ProgressSite {
  readonly stream: { readonly isTTY?: boolean; write(text: string): unknown };
  readonly nowMs: () => number;
}

let silenced = false;

/** Turns progress output off for this process, because a program reads the requested document. */
export function silenceProgress(): void {
  silenced = true;
}

/**
 * Says on a terminal that something is under way once it takes over a second, on stderr so that
 * output stays clean.
 */
export function showProgress(what: string): Progress {
  return openProgress(what, { stream: process.stderr, nowMs: () => performance.now() }, silenced);
}

/** The same on a chosen stream. It writes nothing for a second, and removes what it wrote. */
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

/**
 * Ctrl-C, or a supervisor's SIGTERM, as a promise instead of the end of the process; a second one
 * ends it after all.
 */
export function catchInterrupt(): Disposable & { readonly interrupted: Promise<'interrupted'> } {
  const { promise, resolve } = Promise.withResolvers<'interrupted'>();
  const signals = ['SIGINT', 'SIGTERM'] as const;
  const once = () => {
    for (const signal of signals) process.removeListener(signal, once);
    resolve('interrupted');
  };
  for (const signal of signals) process.once(signal, once);
  return {
    interrupted: promise,
    [Symbol.dispose]() {
      for (const signal of signals) process.removeListener(signal, once);
    },
  };
}
