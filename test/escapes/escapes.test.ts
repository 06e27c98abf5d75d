// Goal: the catalogue of escapes stays large, well formed and true; the whole of it runs with `npm run escapes`.
// Method: count and name what is there, and run one case of every kind of ending on a real server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ESCAPES } from './cases/postgres.ts';
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
  const results = await runEscapes({ ...ESCAPES, cases });
  assert.deepEqual(
    results.filter(({ ok }) => !ok),
    [],
  );
});
