import { generateApprover } from '../../../src/crypto/approver.ts';
import { update } from '../../../src/protocol/draft.ts';
import { createRuntime, type Runtime, type RuntimeConfig } from '../../../src/runtime/runtime.ts';
import { approveAll } from '../../licenses.ts';

/** How many calls a task makes; each changes one row. */
export const CALLS = 20;

export const SCHEMA =
  'create table item (id integer primary key, task integer not null, n integer not null)';

/** The rows of one task, which no other task touches. */
export function rowsOf(task: number): readonly number[] {
  return Array.from({ length: CALLS }, (_, index) => task * CALLS + index);
}

/** A runtime on one backend, and a license for each of so many tasks. */
export async function openTasks(
  folder: string,
  adapter: RuntimeConfig['adapters'][string],
  count: number,
): Promise<{ readonly runtime: Runtime; readonly licenses: readonly unknown[] }> {
  const key = generateApprover('bench');
  const runtime = await createRuntime({
    store: `${folder}/ledger.db`,
    keyring: `${folder}/keys.json`,
    issuers: { bench: { key: key.publicKey, may: ['books'] } },
    adapters: { books: adapter },
  });
  const effects = (task: number) => rowsOf(task).map((id) => update('item', { id }, { n: [0, 1] }));
  return { runtime, licenses: await approveAll(runtime, key, { count, effects }) };
}

/** Works one task off once `opened` returns, and returns how long each call took. */
export async function workOff(
  runtime: Runtime,
  license: unknown,
  task: number,
  sql: string,
  opened: () => Promise<void> = async () => {},
): Promise<readonly number[]> {
  const samples: number[] = [];
  const terminal = await runtime.task(license, async (open) => {
    await opened();
    for (const id of rowsOf(task)) {
      const from = performance.now();
      const answer = await open.call({ sql, values: [id] });
      samples.push(performance.now() - from);
      if (answer.kind === 'failed') throw new Error(answer.detail);
    }
  });
  if (terminal.kind !== 'committed') throw new Error(JSON.stringify(terminal));
  return samples;
}
