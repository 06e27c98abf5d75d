import { EXIT } from './exit-code.ts';

const QUIET_MS = 1000;

/**
 * Says on a terminal that something is under way once it takes over a second, and ends the process in an orderly way on
 * Ctrl-C: the backend rolls back what a vanished client held, and `interrupted` says what that means here.
 */
export function watchProgress(what: string, interrupted: string): Disposable {
  const started = performance.now();
  let shown = false;
  const timer = setInterval(() => {
    if (!process.stderr.isTTY) return;
    shown = true;
    process.stderr.write(`\r${what}: ${Math.round((performance.now() - started) / 1000)} s`);
  }, QUIET_MS);
  timer.unref();
  const clear = () => {
    clearInterval(timer);
    if (shown) process.stderr.write('\r\u001b[K');
  };
  const end = () => {
    clear();
    process.stderr.write(`${interrupted}\n`);
    process.exit(EXIT.halted);
  };
  process.once('SIGINT', end);
  return {
    [Symbol.dispose]() {
      clear();
      process.removeListener('SIGINT', end);
    },
  };
}
