// Goal: every mechanism is needed: the full system stops a fault that it admits with that mechanism
// switched off. Method: the study with one repetition and few tasks; a pair whose ablation changes
// nothing must be seen to fail.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findData } from '../../bench/data/folder.ts';
import { MCPMARK_FILES } from '../../bench/data/mcpmark.ts';
import { loadStateTasks, STATE_FILES } from '../../bench/data/state-bench.ts';
import { deskMaker, NATIVE_FILES } from '../../bench/data/state-native.ts';
import type { RawRecords } from '../../bench/raw.ts';
import { BINDINGS, bindingOnState } from '../../bench/studies/ablations/binding.ts';
import { APPROVAL_SOURCES } from '../../bench/studies/ablations/books.ts';
import { type Pair, runPair } from '../../bench/studies/ablations/pair.ts';
import { ablationsStudy } from '../../bench/studies/ablations.ts';
import { whyAbsent } from './absent.ts';
import { demandRecomputed } from './recomputed.ts';

const FILES = [...STATE_FILES, ...NATIVE_FILES, ...MCPMARK_FILES];
const absent = whyAbsent(FILES);
/** Keeps nothing. */
const RAW = { run: (_: string, work: () => Promise<object>) => work() } as unknown as RawRecords;

test('each fault is stopped, and admitted once its mechanism is gone', {
  skip: absent,
}, async () => {
  const cells = await ablationsStudy.run({ quick: true, progress: () => {} });
  assert.deepEqual(
    cells.filter(({ ok }) => !ok),
    [],
  );
  demandRecomputed('ablations', cells);
  const admitted = cells.filter(
    ({ name, value }) => name.endsWith('removed, admitted') && value > 0,
  );
  assert.equal(admitted.length, 18, 'all rows of the table');
});

test('a system that lacks a mechanism is noticed', { skip: absent }, async () => {
  const folder = findData(undefined, FILES);
  const all = loadStateTasks(folder);
  const chosen = all.filter(({ approved12 }) => approved12).slice(0, 1);
  const desk = deskMaker(folder, all);
  const bindings = BINDINGS.map((binding) => bindingOnState(binding, { all, chosen }, desk));
  for (const pair of [...bindings, ...APPROVAL_SOURCES]) {
    const broken = { ...pair, runs: () => pair.runs(true), controls: () => [] };
    const cells = await runPair(broken, 1, RAW, true);
    const stopped = cells.find(({ name }) => name.endsWith('full, stopped'));
    assert.deepEqual([stopped?.value, stopped?.ok], [0, false], pair.name);
  }
});

test('a pair counts only what ended as it must', async () => {
  const pair: Pair = {
    name: 'nothing',
    paper: 2,
    runs: () => [
      { name: 'stops either way', run: async () => 'stopped' },
      { name: 'ends in another way', run: async () => 'neither' },
    ],
    controls: () => [{ name: 'never commits', run: async () => false }],
  };
  const cells = await runPair(pair, 1, RAW, false);
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
