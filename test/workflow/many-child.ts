// One of many processes that are handed the same licenses.
import { readFileSync } from 'node:fs';
import { postgresLedgers } from '../../src/ledger/postgres/index.ts';
import { createRuntime } from '../../src/runtime/runtime.ts';
import { deskConfig } from './desk.ts';

const [folder = '', key = '', store = '', from = '0', schema = ''] = process.argv.slice(2);
const work = JSON.parse(readFileSync(`${folder}/work.json`, 'utf8')) as {
  readonly license: unknown;
  readonly action: unknown;
}[];
await using runtime = await createRuntime({
  ...deskConfig(folder, key),
  store: postgresLedgers(store, { schema }),
});
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
