// Goal: the studies that measure servers, agents and workflows still run: every operation in them
// commits. Method: each with few repetitions; they throw on anything else. Times are not asserted:
// machines are busy.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { agentsStudy } from '../../bench/studies/agents.ts';
import { heldTasksStudy } from '../../bench/studies/held-tasks.ts';
import { mariadbCostStudy } from '../../bench/studies/mariadb-cost.ts';
import { pgCostStudy } from '../../bench/studies/pg-cost.ts';
import { workflowsStudy } from '../../bench/studies/workflows.ts';
import { missedTargets } from '../../bench/study.ts';
import { skipWithout } from '../integration.ts';
import { skipWithoutMariadb } from '../mysql/binaries.ts';

for (const { study, skip } of [
  { study: pgCostStudy, skip: false as const },
  { study: mariadbCostStudy, skip: skipWithoutMariadb() },
  { study: agentsStudy, skip: false as const },
  { study: heldTasksStudy, skip: false as const },
  { study: workflowsStudy, skip: skipWithout('dbos') },
])
  test(`${study.name} measures what it says`, { skip }, async () => {
    const cells = await study.run({ quick: true, progress: () => {} });
    assert.ok(cells.length >= 5);
    assert.ok(cells.every(({ value }) => Number.isFinite(value)));
    assert.deepEqual(missedTargets(cells, true), [], 'counts are judged in a quick run too');
    const names = new Set(cells.map(({ name }) => name));
    assert.equal(names.size, cells.length, 'no two figures have one name');
  });
