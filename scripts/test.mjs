// Runs the test files with node:test. `--fast` leaves out the kill, stop and contention runs under test/crash;
// `--only <part>` keeps files whose path contains the part.
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';

const fast = process.argv.includes('--fast');
const only = process.argv.indexOf('--only');
const part = only === -1 ? '' : process.argv[only + 1];
const files = globSync('test/**/*.test.ts')
  .filter((file) => !(fast && file.startsWith('test/crash/')) && file.includes(part))
  .sort();
if (files.length === 0) {
  console.error('no test files found: run this from the project root');
  process.exit(1);
}
const reporter = process.env.CI ? 'spec' : 'dot';
const result = spawnSync(
  process.execPath,
  [
    '--test',
    `--test-concurrency=${availableParallelism()}`,
    `--test-reporter=${reporter}`,
    '--test-timeout=540000',
    ...files,
  ],
  { stdio: 'inherit' },
);
process.exit(result.status ?? 1);
