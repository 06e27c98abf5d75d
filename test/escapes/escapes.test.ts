// Goal: the catalogue of escapes stays large, well formed and true; CI runs the whole of it with
// `npm run escapes`. Method: count and name what is there, compare the kept results with it, and
// run one case of every kind of ending.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { expectedEnding } from './case.ts';
import { ESCAPES as GATE } from './cases/gate.ts';
import { ESCAPES } from './cases/postgres.ts';
import { compareEvidence, readEvidence } from './evidence.ts';
import { runEscapes } from './runner.ts';

test('there are at least 120 cases besides the clean controls, each with a name of its own', () => {
  const controls = ESCAPES.cases.filter(({ expectation }) => expectation.kind === 'committed');
  assert.ok(controls.length >= 10);
  assert.ok(ESCAPES.cases.length - controls.length >= 120);
  const names = ESCAPES.cases.map(({ name }) => name);
  assert.deepEqual(
    names.filter((name, index) => names.indexOf(name) !== index),
    [],
  );
});

test('the kept results are those of exactly this catalogue, and every case ended as it must', () => {
  const { postgres, cases } = readEvidence();
  const major = Number.parseInt(postgres, 10);
  assert.equal(major, 17);
  assert.deepEqual(
    cases.map(({ name }) => name),
    ESCAPES.cases.map(({ name }) => name),
    'run `npm run escapes -- --write` after a change of the catalogue',
  );
  for (const [index, { name, expected, found }] of cases.entries()) {
    const attempt = ESCAPES.cases[index];
    assert.ok(attempt);
    assert.equal(found, expectedEnding(attempt, major), name);
    const because = 'because' in attempt.expectation ? (attempt.expectation.because ?? '') : '';
    assert.ok(expected.startsWith(found) && expected.includes(because), name);
  }
});

test('a result that changed, a new case and one that is gone are each named', () => {
  const one = { name: 'one', expected: 'denied 42501', found: 'denied 42501' };
  const kept = { postgres: '17.1', cases: [one, { ...one, name: 'two' }] };
  assert.deepEqual(compareEvidence(kept, kept), []);
  const now = {
    postgres: '17.2',
    cases: [
      { ...one, found: 'committed' },
      { ...one, name: 'three' },
    ],
  };
  assert.deepEqual(compareEvidence(kept, now), [
    'PostgreSQL is 17.2, was 17.1',
    'one: committed (expected denied 42501), was denied 42501 (expected denied 42501)',
    'new case: three',
    'case is gone: two',
  ]);
});

const SAMPLE = [
  'control: update',
  "statement: update app.invoice set status = 'paid'",
  'statement: notify leak',
  "entry point: perform pg_notify('leak', 'x')",
  "definer: insert into app.hidden values (2, 'y')",
  'trigger: notify leak',
  'while held: grant temporary on database {db} to public',
  'while held: alter function app.act() set search_path = app; alter functi',
  'built-in: one that got the rights of a superuser',
];

test('one case of every kind ends as it must', async () => {
  const cases = ESCAPES.cases.filter(({ name }) => SAMPLE.includes(name));
  assert.equal(cases.length, SAMPLE.length);
  const { results } = await runEscapes({ ...ESCAPES, cases });
  assert.deepEqual(
    results.filter(({ ok }) => !ok),
    [],
  );
});

test('at least 60 cases aim at the statement gate, and one of every kind ends as it must', async () => {
  const aimed = GATE.cases.filter(({ expectation }) => expectation.kind !== 'committed');
  assert.ok(aimed.length >= 60);
  const cases = GATE.cases.filter(({ name }) => GATE_SAMPLE.includes(name));
  assert.equal(cases.length, GATE_SAMPLE.length);
  const { results } = await runEscapes({ ...GATE, cases });
  assert.deepEqual(
    results.filter(({ ok }) => !ok),
    [],
  );
});

const GATE_SAMPLE = [
  "gate: pg_notify('leak', 'x')",
  'gate: (12345::oid).lo_unlink',
  'gate: invoice.mood',
  'gate: initcap(invoice)',
  'gate: aggregate',
  'gate: in ON CONFLICT predicate',
  'gate: settings by an update behind a name',
  'gate: a view that calls',
  'gate: default: a built-in',
  'gate: trigger: a body that calls an extension',
  'gate: an overload made after the approval',
  'gate control: an extension that is trusted',
];
