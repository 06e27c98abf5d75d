// Goal: the pairs of the study look the same before execution, and comparison tells them apart afterwards.
// Method: the study with few executions, where the public data is present.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findData } from '../../bench/data/folder.ts';
import { STATE_FILES } from '../../bench/data/state-bench.ts';
import { informationStudy } from '../../bench/studies/information.ts';
import { NotRun } from '../../bench/study.ts';

function whyAbsent(): string | false {
  try {
    findData(undefined, STATE_FILES);
    return false;
  } catch (error) {
    if (error instanceof NotRun) return `no public task data: ${error.message}`;
    throw error;
  }
}

test('no decider by packets reaches more than 38, comparison tells every pair apart', {
  skip: whyAbsent(),
}, async () => {
  const cells = await informationStudy.run({ quick: true, progress: () => {} });
  assert.deepEqual(
    cells.map(({ value, ok }) => [value, ok]),
    [
      [38, true],
      [38, true],
      [6, true],
      [6, true],
    ],
  );
});
