// Goal: the study of cost measures right executions, on the tasks of the paper's table, with its
// rows beside ours. Method: the table against its own arithmetic and the data; the study with few
// pairs. No time is asserted.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findData } from '../../bench/data/folder.ts';
import { loadStateTasks, STATE_FILES } from '../../bench/data/state-bench.ts';
import { NATIVE_FILES } from '../../bench/data/state-native.ts';
import { PAPER_CERTIFICATION, PAPER_ROWS, PAPER_STATE } from '../../bench/studies/cost/paper.ts';
import { costStudy } from '../../bench/studies/cost.ts';
import { whyAbsent } from './absent.ts';

test("the paper's rows agree with their own ratios and with its medians", () => {
  const rows = Object.values(PAPER_ROWS);
  assert.equal(rows.length, 18);
  for (const { direct, held, ratio } of rows)
    assert.ok(Math.abs(held / direct - ratio) < 0.03, `${held} / ${direct}`);
  const middle = (values: readonly number[]) => {
    const sorted = [...values].sort((a, b) => a - b);
    return ((sorted[8] ?? Number.NaN) + (sorted[9] ?? Number.NaN)) / 2;
  };
  assert.ok(Math.abs(middle(rows.map(({ ratio }) => ratio)) - PAPER_STATE.ratio) < 0.01);
  assert.ok(
    Math.abs(middle(rows.map(({ direct, held }) => held - direct)) - PAPER_STATE.added) < 0.01,
  );
  const { off, on, ratio } = PAPER_CERTIFICATION;
  assert.ok(Math.abs(on / off - ratio) < 0.005);
});

test('the tasks are those of the table, and every execution leaves the right state', {
  skip: whyAbsent([...STATE_FILES, ...NATIVE_FILES]),
}, async () => {
  const timing = loadStateTasks(findData(undefined, STATE_FILES)).filter(
    ({ timing18 }) => timing18,
  );
  const named = timing.map(({ packet }) => `${packet.domain}/${packet.taskId}`);
  assert.deepEqual(named.sort(), Object.keys(PAPER_ROWS).sort());
  const cells = await costStudy.run({ quick: true, seed: 3, progress: () => {} });
  const cellOf = (name: string) => cells.find((cell) => cell.name === name);
  assert.equal(
    cellOf('STATE: executions with the right state')?.value,
    18,
    'three tasks, three pairs, two halves',
  );
  assert.equal(cellOf('STATE own tools: executions with the right state')?.value, 18);
  assert.ok(cellOf('STATE: the barest path with the same flushes, over direct'));
  const ratios = cells.filter(({ name }) =>
    /^STATE (?!own tools).+\/.+: held over direct$/.test(name),
  );
  assert.equal(ratios.length, 3);
  for (const { name, paper } of ratios) {
    assert.equal(paper, PAPER_ROWS[name.replace(/^STATE |: held over direct$/g, '')]?.ratio);
  }
  for (const [name, paper] of [
    ['STATE: median of held over direct', 4.35],
    ['PostgreSQL: on over off', 2.19],
    ['comparison of 500 effects', 2.92],
  ] as const) {
    assert.equal(cellOf(name)?.paper, paper);
    assert.notEqual(cellOf(name)?.target, undefined, name);
  }
  assert.ok(cells.every(({ value }) => Number.isFinite(value)));
  const times = cells.filter(({ name }) => !name.includes('increment'));
  assert.ok(times.every(({ value }) => value > 0));
});
