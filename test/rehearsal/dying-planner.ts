import { appendFileSync } from 'node:fs';
import { sqlite } from '../../src/adapters/sqlite/index.ts';
import { createRuntime } from '../../src/runtime/runtime.ts';

/**
 * Plans one action and is killed when a step is reached for the n-th time after admission; the log
 * proves that.
 */
const [file = '', ledger = '', keyring = '', key = '', sql = '', step = '', nth = '', log = ''] =
  process.argv.slice(2);
let left = Number.POSITIVE_INFINITY;
const runtime = await createRuntime(
  {
    store: ledger,
    keyring,
    issuers: { 'ap-team': { key, may: ['books'], sources: ['rehearsed'] } },
    adapters: { books: sqlite({ file, relations: ['item', 'log', 'stock'] }) },
  },
  {
    reached(at) {
      if (at !== step) return;
      left -= 1;
      if (left > 0) return;
      appendFileSync(log, `${at}\n`);
      process.kill(process.pid, 'SIGKILL');
      while (true) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000);
    },
  },
);
left = Number(nth);
await runtime.plan({ adapter: 'books', task: 'killed', planRevision: 1, action: { sql } });
