// Goal: a precondition counts as held only by a reading of its own row that says exactly what was
// required. Method: a reading that fits, then one thing wrong at a time.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Requirement, StateReading } from '../../src/protocol/effect.ts';
import type { Approved } from '../../src/protocol/manifest.ts';
import { brokenRequirements, stateReads, taskStateText } from '../../src/protocol/state.ts';

const open: Requirement = { target: 'vendor', key: { id: 1 }, row: { blocked: false, tier: null } };
const absent: Requirement = { target: 'hold', key: { id: 1 }, row: null };
const bare: Requirement = { target: 'vendor', key: { id: 2 }, row: {} };
const fits: StateReading = {
  target: 'vendor',
  key: { id: 1 },
  row: { blocked: false, tier: null },
};

const broken = (requirement: Requirement, ...readings: StateReading[]) =>
  brokenRequirements({ requires: [requirement] }, readings).length === 1;

test('a requirement reads the columns it names, a row that must exist or be absent its key', () => {
  const watch = [{ target: 'invoice', key: { id: 1 } }];
  assert.deepEqual(stateReads({ requires: [open, absent, bare], watch }), [
    { target: 'vendor', key: { id: 1 }, columns: ['blocked', 'tier'] },
    { target: 'hold', key: { id: 1 } },
    { target: 'vendor', key: { id: 2 } },
    { target: 'invoice', key: { id: 1 } },
  ]);
});

test('a row that says what is required holds, and may say more', () => {
  assert.ok(!broken(open, fits));
  assert.ok(!broken(open, { ...fits, row: { ...fits.row, name: 'more' } }));
});

test('a missing reading, another target, another key or another value breaks it', () => {
  assert.ok(broken(open));
  assert.ok(broken(open, { ...fits, target: 'customer' }));
  assert.ok(broken(open, { ...fits, key: { id: 2 } }));
  assert.ok(broken(open, { ...fits, row: { blocked: true, tier: null } }));
  assert.ok(broken(open, { ...fits, row: { blocked: false, tier: 1 } }));
});

test('a column that was not read breaks it, also where NULL is required', () => {
  assert.ok(broken(open, { ...fits, row: { blocked: false } }));
  assert.ok(broken(open, { ...fits, row: {} }));
});

test('absence is required of the row and not of the reading', () => {
  assert.ok(!broken(absent, { target: 'hold', key: { id: 1 }, row: null }));
  assert.ok(broken(absent, { target: 'hold', key: { id: 1 }, row: {} }));
  assert.ok(broken(absent));
  assert.ok(broken(open, { ...fits, row: null }));
  assert.ok(broken(bare, { target: 'vendor', key: { id: 2 }, row: null }));
  assert.ok(!broken(bare, { target: 'vendor', key: { id: 2 }, row: {} }));
});

test('each requirement is held against its own reading, and a broken one says what was found', () => {
  const readings = [fits, { target: 'hold', key: { id: 1 }, row: { why: 'audit' } }];
  assert.deepEqual(brokenRequirements({ requires: [open, absent] }, readings), [
    { requirement: absent, found: readings[1] },
  ]);
});

test('the text of a task state tells readings, revisions and salts apart, and stands without a revision', () => {
  const approved = { salt: 'a' } as Approved;
  const texts = [
    taskStateText(approved, [fits], undefined),
    taskStateText(approved, [fits], '7'),
    taskStateText(approved, [fits], '8'),
    taskStateText(approved, [{ ...fits, row: null }], '8'),
    taskStateText({ salt: 'b' } as Approved, [fits], '8'),
  ];
  assert.equal(new Set(texts).size, texts.length);
  assert.equal(JSON.parse(texts[0] ?? '').revision, null);
});
