// Goal: on ToolSandbox an unrequested reminder is rejected although the benchmark's own goal checks pass.
// Method: approvals from requests against those in the data, then the study with one repetition.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { approveSandbox } from '../../bench/approvals/sandbox.ts';
import { findData } from '../../bench/data/folder.ts';
import { loadSandbox, TOOLSANDBOX_FILES } from '../../bench/data/toolsandbox.ts';
import { sandboxEffects } from '../../bench/studies/backends/sandbox-runs.ts';
import { backendsStudy } from '../../bench/studies/backends.ts';
import { NotRun } from '../../bench/study.ts';

const data = whereData();
const skip = data instanceof NotRun ? `no public task data: ${data.message}` : false;
const folder = data instanceof NotRun ? '' : data;

function whereData(): string | NotRun {
  try {
    return findData(undefined, TOOLSANDBOX_FILES);
  } catch (error) {
    if (error instanceof NotRun) return error;
    throw error;
  }
}

test('what is read from a request is what the data says is approved', { skip }, () => {
  const { initial, scenarios } = loadSandbox(folder);
  const listed = JSON.parse(readFileSync(join(folder, TOOLSANDBOX_FILES[1]), 'utf8')).scenarios;
  assert.equal(scenarios.length, 4);
  for (const [index, { request }] of scenarios.entries()) {
    const [effect, ...more] = sandboxEffects(initial, approveSandbox(request, initial));
    const [change, ...others] = listed[index].approved_changes;
    assert.deepEqual([more, others], [[], []]);
    assert.deepEqual([effect?.op, effect?.target], [change.op, change.table]);
    for (const [column, value] of Object.entries(change.after ?? {})) {
      assert.deepEqual(effect?.after?.[column], { is: value });
    }
  }
  assert.throws(() => approveSandbox('Turn off everything', initial), /nobody knows/);
});

test('every scenario ends as the paper says', { skip }, async () => {
  const cells = await backendsStudy.run({ quick: true, progress: () => {} });
  assert.deepEqual(
    cells.map(({ value }) => value),
    [4, 4, 4, 4, 4, 4, 4],
  );
});
