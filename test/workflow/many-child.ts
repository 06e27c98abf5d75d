// One of many processes that are handed the same licenses.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { isFault } from '../../src/errors.ts';
import { postgresLedgers } from '../../src/ledger/postgres/index.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { deskConfig } from './desk.ts';

const [folder = '', key = '', store = '', from = '0', schema = ''] = process.argv.slice(2);
const work = JSON.parse(readFileSync(`${folder}/work.json`, 'utf8')) as {
  readonly license: unknown;
  readonly action: unknown;
}[];
const config = { ...deskConfig(folder, key), store: postgresLedgers(store, { schema }) };
await using runtime = await open();
const counts = { released: 0, committed: 0 };
const order = [...work.slice(Number(from)), ...work.slice(0, Number(from))];
for (const { license, action } of order) {
  const terminal = await runtime.ensure(license, action);
  if (terminal.kind === 'committed') counts.committed += 1;
  const gate = runtime.continuation(terminal, 'tell');
  const released = await gate.release(() => undefined);
  if (released.kind === 'released') counts.released += 1;
}
process.send?.(counts);

/** Many processes that open one SQLite file at once wait for each other. */
async function open(): Promise<Runtime> {
  for (;;) {
    try {
      return await createRuntime(config);
    } catch (error) {
      if (!isFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE')) throw error;
      await sleep(50);
    }
  }
}
