// Goal: the pairs of the study look the same before execution, and comparison tells them apart
// afterwards. Method: the study with few executions, where the public data is present.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { STATE_FILES } from '../../bench/data/state-bench.ts';
import { informationStudy } from '../../bench/studies/information.ts';
import { whyAbsent } from './absent.ts';

test('no decider by packets reaches more than 38, comparison tells every pair apart', {
  skip: whyAbsent(STATE_FILES),
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
