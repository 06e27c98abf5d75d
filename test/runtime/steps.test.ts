// Goal: the list of steps that crash tests iterate over is the list of steps that the code has.
// Method: compare STEPS with every literal that the source passes to `reached`, both ways; what
// only the suites for others contain (src/testing) does not count.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { STEPS } from '../../src/contract/steps.ts';

const calls = globSync('src/**/*.ts')
  .filter((file) => !file.startsWith('src/testing/'))
  .flatMap((file) => {
    const text = readFileSync(file, 'utf8');
    return [...text.matchAll(/\breached\(([^)]*)\)(?!\s*\{)/g)].map(([, argument = '']) => ({
      file,
      argument,
    }));
  });

test('every call of reached names a step by a literal, and the step is listed', () => {
  assert.ok(calls.length >= STEPS.length, `only ${calls.length} calls seen`);
  const listed = new Set<string>(STEPS);
  for (const { file, argument } of calls) {
    const step = /^'([^']+)'$/.exec(argument)?.[1];
    assert.ok(
      step !== undefined,
      `${file}: reached(${argument}) is not a literal, so no crash test can find it`,
    );
    assert.ok(listed.has(step), `${file}: ${step} is not in STEPS`);
  }
});

test('every listed step is reached somewhere', () => {
  const seen = new Set(calls.map(({ argument }) => argument.slice(1, -1)));
  assert.deepEqual(
    STEPS.filter((step) => !seen.has(step)),
    [],
  );
});

test('steps are listed once', () => {
  assert.equal(new Set(STEPS).size, STEPS.length);
});
