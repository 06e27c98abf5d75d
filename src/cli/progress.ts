const QUIET_MS = 1000;

/** Says on a terminal that something is under way once it takes over a second. */
export function showProgress(what: string): Disposable {
  const started = performance.now();
  let shown = false;
  const timer = setInterval(() => {
    if (!process.stderr.isTTY) return;
    shown = true;
    process.stderr.write(`\r${what}: ${Math.round((performance.now() - started) / 1000)} s`);
  }, QUIET_MS);
  timer.unref();
  return {
    [Symbol.dispose]() {
      clearInterval(timer);
      if (shown) process.stderr.write('\r\u001b[K');
    },
  };
}

/** Ctrl-C as a promise instead of the end of the process; a second one ends it after all. */
export function catchInterrupt(): Disposable & { readonly interrupted: Promise<'interrupted'> } {
  const { promise, resolve } = Promise.withResolvers<'interrupted'>();
  const once = () => resolve('interrupted');
  process.once('SIGINT', once);
  return {
    interrupted: promise,
    [Symbol.dispose]() {
      process.removeListener('SIGINT', once);
    },
  };
}
