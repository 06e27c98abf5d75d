// Goal: approving and executing a change of very many rows takes memory in proportion to the
// approval, and not several objects more for each effect. Method: a process with a small heap.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { protectedDatabase } from '../../postgres/protected.ts';

const ROWS = 50_000;
/** With a list of casts, of reads and of observed rows beside the approval it takes far more. */
const HEAP_MB = 160;

test(`${ROWS} inserted rows are approved and executed with a heap of ${HEAP_MB} MB`, async () => {
  await using held = await protectedDatabase(
    'create table line (id integer primary key, amount integer not null, text text not null)',
    { relations: [{ name: 'line', bulk: true }] },
  );
  const child = fileURLToPath(new URL('./bulk-memory-child.ts', import.meta.url));
  const args = [`--max-old-space-size=${HEAP_MB}`, '--disable-warning=ExperimentalWarning', child];
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [...args, JSON.stringify(held.options), String(ROWS)],
    { env, encoding: 'utf8' },
  );
  assert.equal(stdout.trim(), 'committed', stderr.slice(-2000));
});
