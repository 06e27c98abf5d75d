// Goal: a server that an endless statement holds is ended, and one that works or waits is not.
// Method: real processes.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';

const STALL = JSON.stringify(new URL('../../src/cli/stall.ts', import.meta.url).href);

function run(script: string) {
  const text = `import { endWhenStalled } from ${STALL}; using _stall = endWhenStalled(1); ${script}`;
  const words = ['--no-warnings', '--input-type=module', '--eval', text];
  return spawnSync(process.execPath, words, { encoding: 'utf8', timeout: 60_000 });
}

test('a process whose event loop stands still is killed, and says why', () => {
  const { signal, stderr } = run('for (;;);');
  assert.equal(signal, 'SIGKILL');
  assert.match(stderr, /a statement did not end within 1 seconds/);
});

test('a process that waits is left alone and ends by itself', () => {
  const { status, stderr } = run('await new Promise((resolve) => setTimeout(resolve, 2500));');
  assert.deepEqual([status, stderr], [0, '']);
});
