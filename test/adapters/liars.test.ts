// Goal: the conformance suite can fail: every promise of the port that an adapter breaks is found.
// Method: run the suite as a program against adapters that break one promise each, and read its
// report.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { LIARS } from './liars.ts';

test('the suite passes an honest adapter and fails every liar', () => {
  const program = fileURLToPath(new URL('liars.ts', import.meta.url));
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { stdout } = spawnSync(process.execPath, ['--test-reporter=tap', program], {
    encoding: 'utf8',
    env,
  });
  const suites = [
    ...stdout.matchAll(
      /^(not )?ok \d+ - (.+): (?:declarations|candidates|permits|promotion and markers)$/gm,
    ),
  ];
  assert.equal(suites.length, 4 * (Object.keys(LIARS).length + 1), stdout.slice(0, 2000));
  const failed = new Set(suites.filter(([, not]) => not !== undefined).map(([, , name]) => name));
  assert.ok(!failed.has('honest'));
  assert.deepEqual([...failed].sort(), Object.keys(LIARS).sort());
});
