// Runs the test files with node:test. `--fast` leaves out what starts many processes or plays many random faults;
// `--only <part>` keeps files whose path contains the part.
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';

const SLOW = [
  'test/crash/',
  'test/cli/',
  'test/runtime/fault-properties.test.ts',
  'test/runtime/interleaving.test.ts',
  'test/rehearsal/',
  'test/examples/',
  'test/ledger/sqlite.test.ts',
  'test/adapters/files/promotion.test.ts',
  'test/adapters/http/random-faults.test.ts',
  'test/fuzz.test.ts',
];
const fast = process.argv.includes('--fast');
const only = process.argv.indexOf('--only');
const part = only === -1 ? '' : process.argv[only + 1];
const files = globSync('test/**/*.test.ts')
  .filter((file) => !(fast && SLOW.some((slow) => file.startsWith(slow))) && file.includes(part))
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
    `--test-concurrency=${availableParallelism() + 1}`,
    `--test-reporter=${reporter}`,
    '--test-timeout=540000',
    ...files,
  ],
  { stdio: 'inherit' },
);
process.exit(result.status ?? 1);
