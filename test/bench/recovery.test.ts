// Goal: after a process ends anywhere, fresh readers continue exactly where the saved decision and
// state allow it. Method: the study with one task of each kind and one migration of each; producers
// are killed, readers are processes of their own.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MCPMARK_FILES } from '../../bench/data/mcpmark.ts';
import { STATE_FILES } from '../../bench/data/state-bench.ts';
import { recoveryStudy } from '../../bench/studies/recovery.ts';
import { whyAbsent } from './absent.ts';
import { demandRecomputed } from './recomputed.ts';

test('every scenario ends as the paper says, and recovery releases what was saved once', {
  skip: whyAbsent([...STATE_FILES, ...MCPMARK_FILES]),
}, async () => {
  const cells = await recoveryStudy.run({ quick: true, progress: () => {} });
  assert.deepEqual(
    cells.filter(({ ok }) => !ok),
    [],
  );
  demandRecomputed('recovery', cells);
  const figureOf = (name: string) => cells.find((cell) => cell.name === name)?.value;
  const interrupted = 'exit after state save, before terminal';
  assert.equal(figureOf(`${interrupted}: released`), 0);
  assert.equal(figureOf(`${interrupted}: released once, after our recovery`), 2);
  assert.equal(figureOf('omit first write, exit after terminal: released'), 1);
  const migrated = 'PostgreSQL, exit after commit, before terminal';
  assert.equal(figureOf(`${migrated}: correct state`), 1);
  assert.equal(figureOf(`${migrated}: released`), 0);
  assert.equal(figureOf(`${migrated}: released once, after our recovery`), 1);
});
