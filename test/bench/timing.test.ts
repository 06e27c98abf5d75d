// Goal: the studies that only measure still run: every operation in them commits, every comparison
// finds equality. Method: each with few repetitions; they throw on anything else. Times are not
// asserted: machines are busy.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compareStudy } from '../../bench/studies/compare.ts';
import { coreCostStudy } from '../../bench/studies/core-cost.ts';
import { serverStudy } from '../../bench/studies/server.ts';
import { sqliteCostStudy } from '../../bench/studies/sqlite-cost.ts';

for (const study of [compareStudy, coreCostStudy, sqliteCostStudy, serverStudy]) {
  test(`${study.name} measures what it says, against a target`, async () => {
    const cells = await study.run({ quick: true, progress: () => {} });
    assert.ok(cells.every(({ value }) => Number.isFinite(value)));
    assert.ok(cells.some(({ target }) => target !== undefined));
    assert.equal(
      new Set(cells.map(({ name }) => name)).size,
      cells.length,
      'no two figures have one name',
    );
  });
}
