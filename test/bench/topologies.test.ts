// Goal: the 80 cases of the paper end as it says, on four kinds of backends, and every handoff
// report is true. Method: the study itself, all of it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { topologiesStudy } from '../../bench/studies/topologies.ts';

test('80 disrupted runs: blockers and changed plans leave nothing, failures keep what was done', async () => {
  const cells = await topologiesStudy.run({ quick: false, progress: () => {} });
  assert.deepEqual(
    cells.filter(({ ok }) => !ok),
    [],
  );
  const found = Object.fromEntries(cells.map(({ name, value }) => [name, value]));
  assert.equal(found['mid-run failure: effects of completed predecessors'], 25);
  assert.equal(found['handoff reports that equal durable state'], 80);
  assert.equal(found.cases, 80);
});
