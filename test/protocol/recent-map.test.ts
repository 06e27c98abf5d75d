// Goal: a process that sends for years does not keep all of it in memory.
// Method: more entries than are kept; the newest are there, the oldest are not.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecentMap } from '../../src/protocol/recent-map.ts';

test('the newest entries are kept', () => {
  const recent = new RecentMap<string, number>(3);
  for (let n = 0; n < 5; n += 1) recent.set(`key ${n}`, n);
  assert.deepEqual([...recent.values()], [2, 3, 4]);
});

test('a new value of a kept entry drops no other', () => {
  const recent = new RecentMap<string, number>(2);
  recent.set('one', 1).set('two', 2).set('two', 3);
  assert.deepEqual(
    [...recent],
    [
      ['one', 1],
      ['two', 3],
    ],
  );
});
