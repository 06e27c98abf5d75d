// Goal: every mechanism is needed: the full system stops a fault that it admits with that mechanism
// switched off. Method: the study with one repetition and few tasks; a pair whose ablation changes
// nothing must be seen to fail.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MCPMARK_FILES } from '../../bench/data/mcpmark.ts';
import { STATE_FILES } from '../../bench/data/state-bench.ts';
import type { RawRecords } from '../../bench/raw.ts';
import { type Pair, runPair } from '../../bench/studies/ablations/pair.ts';
import { ablationsStudy } from '../../bench/studies/ablations.ts';
import { whyAbsent } from './absent.ts';

test('each fault is stopped, and admitted once its mechanism is gone', {
  skip: whyAbsent([...STATE_FILES, ...MCPMARK_FILES]),
}, async () => {
  const cells = await ablationsStudy.run({ quick: true, progress: () => {} });
  assert.deepEqual(
    cells.filter(({ ok }) => !ok),
    [],
  );
  const admitted = cells.filter(
    ({ name, value }) => name.endsWith('removed, admitted') && value > 0,
  );
  assert.equal(admitted.length, 11, 'all rows of the table');
});

test('a pair counts only what ended as it must', async () => {
  const raw = { run: (_: string, work: () => Promise<object>) => work() } as unknown as RawRecords;
  const pair: Pair = {
    name: 'nothing',
    paper: 2,
    runs: () => [
      { name: 'stops either way', run: async () => 'stopped' },
      { name: 'ends in another way', run: async () => 'neither' },
    ],
    controls: () => [{ name: 'never commits', run: async () => false }],
  };
  const cells = await runPair(pair, 1, raw, false);
  assert.deepEqual(
    cells.map(({ value, ok }) => [value, ok]),
    [
      [1, false],
      [0, false],
      [0, false],
      [0, false],
    ],
  );
});
