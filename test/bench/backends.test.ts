// Goal: on ToolSandbox an unrequested reminder is rejected although the benchmark's own goal checks
// pass; on GitHub only what is read back as approved is continued. Method: approvals from requests
// against those in the data, then the study with one repetition; GitHub is an emulator.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { approveSandbox } from '../../bench/approvals/sandbox.ts';
import { findData } from '../../bench/data/folder.ts';
import { loadSandbox, TOOLSANDBOX_FILES } from '../../bench/data/toolsandbox.ts';
import type { RawRecords } from '../../bench/raw.ts';
import { runGithub } from '../../bench/studies/backends/github.ts';
import { sandboxEffects } from '../../bench/studies/backends/sandbox-runs.ts';
import { backendsStudy } from '../../bench/studies/backends.ts';
import { backendsMariadbStudy } from '../../bench/studies/backends-mariadb.ts';
import { NotRun } from '../../bench/study.ts';
import { skipWithoutMariadb } from '../mysql/binaries.ts';
import { demandRecomputed } from './recomputed.ts';

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
  assert.throws(() => approveSandbox('Turn off everything', initial), /it is not known what/);
});

test('every scenario ends as the paper says', { skip }, async () => {
  const cells = await backendsStudy.run({ quick: true, progress: () => {} });
  assert.deepEqual(
    cells.map(({ value }) => value),
    [4, 4, 4, 4, 4, 4, 4, 8, 8, 8, 8],
  );
  demandRecomputed('backends', cells);
});

test('on GitHub, only fields that can be read back and match release what depends on them', async () => {
  const raw = { run: (_: string, work: () => Promise<object>) => work() } as unknown as RawRecords;
  const cells = await runGithub(raw, { quick: true, progress: () => {} });
  assert.deepEqual(
    cells.map(({ name, value }) => [name, value]),
    [
      ['GitHub, clean: fields match, released', 8],
      ['GitHub, changed title: mismatch detected, blocked', 8],
      ['GitHub, no read-back: blocked', 8],
      ['GitHub, no read-back: fields match all the same', 8],
    ],
  );
});

test('on MariaDB, only the clean operations are committed under a license', {
  skip: skipWithoutMariadb(),
}, async () => {
  const cells = await backendsMariadbStudy.run({ quick: true, progress: () => {} });
  assert.deepEqual(
    cells.map(({ value }) => value),
    [8, 8, 8, 8, 8, 8],
  );
  demandRecomputed('backends-mariadb', cells);
});
