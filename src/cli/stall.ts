import { Worker } from 'node:worker_threads';

/** A large rehearsal takes seconds, so only an endless statement takes this long. */
const STALL_S = 120;

const WATCH = `
const { workerData: { beat, seconds } } = require('node:worker_threads');
let [last, still] = [0, 0];
setInterval(() => {
  const now = Atomics.load(beat, 0);
  still = now === last ? still + 1 : 0;
  last = now;
  if (still < seconds) return;
  const why = 'effectmatch: a statement did not end within ' + seconds + ' seconds; the server ends, which rolls it back';
  require('node:fs').writeSync(2, why + '\\n');
  process.kill(process.pid, 'SIGKILL');
}, 1000);`;

/**
 * Kills the process when its event loop is blocked. SQLite cannot be interrupted from JavaScript,
 * so an agent's endless statement would block the server, its signal handlers and the database
 * forever. Killing the process rolls the statement back.
 */
export function endWhenStalled(seconds = STALL_S): Disposable {
  const beat = new Int32Array(new SharedArrayBuffer(4));
  const beating = setInterval(() => Atomics.add(beat, 0, 1), 500).unref();
  const watch = new Worker(WATCH, { eval: true, execArgv: [], workerData: { beat, seconds } });
  watch.unref();
  return {
    [Symbol.dispose]() {
      clearInterval(beating);
      void watch.terminate();
    },
  };
}
