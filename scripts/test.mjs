// Runs the test files with node:test. `--fast` leaves out what needs a database server, starts many
// processes, plays many random faults or takes seconds; `--only <part>`, or the part alone, keeps
// files whose path contains it. Test files that need PostgreSQL share one server, which starts
// before them and ends after them, however they end; so do those that need MariaDB, which is
// installed first where that is possible.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { availableParallelism, freemem, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { needsMariadb } from './needs-mariadb.mjs';
import { needsPostgres } from './needs-postgres.mjs';

/** Left out by `--fast`, together with everything that needs a database server. */
const SLOW = [
  'test/adapters/conformance.test.ts',
  'test/adapters/early.test.ts',
  'test/adapters/files/promotion.test.ts',
  'test/adapters/github/',
  'test/adapters/http/random-faults.test.ts',
  'test/adapters/kill.test.ts',
  'test/adapters/snapshot/shortcuts.test.ts',
  'test/adapters/snapshot/tools.test.ts',
  'test/adapters/sqlite/observation.test.ts',
  'test/agents/frameworks/',
  'test/agents/read-sqlite.test.ts',
  'test/api/',
  'test/bench/',
  'test/cli/',
  'test/console/',
  'test/crash/',
  'test/docs/executed.test.ts',
  'test/examples/',
  'test/fuzz.test.ts',
  'test/ledger/sqlite-tamper.test.ts',
  'test/ledger/sqlite.test.ts',
  'test/mcp/',
  'test/newcomer/',
  'test/npm-test.test.ts',
  'test/package.test.ts',
  'test/rehearsal/',
  'test/requests/kill.test.ts',
  'test/requests/orders.test.ts',
  'test/runtime/channels.test.ts',
  'test/runtime/fault-properties.test.ts',
  'test/runtime/faults.test.ts',
  'test/runtime/interleaving.test.ts',
  'test/runtime/stored-size.test.ts',
  'test/runtime/task-properties.test.ts',
];
/** Tests create and drop hundreds of databases on one server, and none of them kills it. */
const MANY_DATABASES = {
  shared_buffers: '256MB',
  max_wal_size: '2GB',
  checkpoint_timeout: '1h',
};
/** What servers may fill in memory, if the system has a file system for that. */
const MEMORY_FOLDER = '/dev/shm';
const MEMORY_BYTES = 8 * 2 ** 30;
const { values, positionals } = readArguments();
const { fast, only } = values;
const parts = only === undefined ? positionals : [...positionals, only];
const files = globSync('test/**/*.test.ts')
  .filter(
    (file) =>
      !(fast && isSlow(file)) && (parts.length === 0 || parts.some((part) => file.includes(part))),
  )
  .sort();
if (files.length === 0) {
  console.error(
    `no test file has ${parts.join(' or ')} in its path; run this from the project root`,
  );
  process.exit(1);
}
const servers = [];
// A killed server loses nothing that it has written, there or on a disk: only the system could.
if (hasMemoryFolder()) process.env.EFFECTMATCH_SERVER_TMPDIR ??= MEMORY_FOLDER;
// Tests that need a server for themselves start it on a copy of a data folder.
const templates = mkdtempSync(join(tmpdir(), 'effectmatch-templates-'));
process.env.EFFECTMATCH_TEST_TEMPLATES = templates;
process.on('exit', () => rmSync(templates, { recursive: true, force: true }));
if (files.some(needsPostgres)) {
  const postgres = await import('../test/postgres/server.ts');
  postgres.installVersion15();
  await startShared('PostgreSQL', postgres, { settings: MANY_DATABASES });
  if (postgres.isInstalled(15) && files.some(namesVersion15))
    await startShared('PostgreSQL 15', postgres, { version: 15, settings: MANY_DATABASES });
}
if (files.some(needsMariadb)) {
  const { findMariadb, installMariadb } = await import('../test/mysql/binaries.ts');
  installMariadb();
  // Where it is missing, its tests are skipped with the reason, and under CI they fail.
  if (findMariadb() !== undefined)
    await startShared('MariaDB', await import('../test/mysql/server.ts'));
}
if (files.some((file) => file.startsWith('test/console/'))) {
  const { installChromium } = await import('../test/chromium.ts');
  installChromium();
}
// Many tests wait: for a lock, for a server, for a process that they kill.
const CONCURRENCY = availableParallelism() + 4;
// Hundreds of files and thousands of child processes load the same modules.
const NODE_COMPILE_CACHE = resolve('node_modules/.cache/compiled');
const environments = servers.map(({ environment }) => environment);
const tests = spawn(
  process.execPath,
  [
    '--test',
    `--test-concurrency=${CONCURRENCY}`,
    '--test-reporter=./scripts/test-reporter.mjs',
    '--test-reporter-destination=stdout',
    '--test-timeout=540000',
    ...files,
  ],
  {
    stdio: 'inherit',
    env: Object.assign({ ...process.env, NODE_COMPILE_CACHE }, ...environments),
  },
);
let interrupted = false;
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(name, () => {
    interrupted = true;
    tests.kill(name);
  });
}
const [status] = await once(tests, 'exit');
for (const { stop } of servers) await stop();
if (interrupted) console.log('\nINTERRUPTED: not every test has run');
process.exit(interrupted ? 130 : (status ?? 1));

async function startShared(name, { startServer, environmentOf }, options) {
  try {
    const server = await startServer(options);
    servers.push({ environment: environmentOf(server), stop: server.stop });
  } catch (error) {
    console.error(`These tests need ${name}, which did not start. ${error.message}`);
    for (const { stop } of servers) await stop();
    process.exit(1);
  }
}

function isSlow(file) {
  const isListed = SLOW.some((slow) => file.startsWith(slow));
  return isListed || needsPostgres(file) || needsMariadb(file);
}

function namesVersion15(file) {
  return needsPostgres(file) && /\b15\b|\bVERSIONS\b/.test(readFileSync(file, 'utf8'));
}

function hasMemoryFolder() {
  if (process.env.TMPDIR !== undefined || !existsSync(MEMORY_FOLDER)) return false;
  const { bavail, bsize } = statfsSync(MEMORY_FOLDER);
  return bavail * bsize >= MEMORY_BYTES && freemem() >= MEMORY_BYTES;
}

function readArguments() {
  try {
    const options = { fast: { type: 'boolean', default: false }, only: { type: 'string' } };
    return parseArgs({ options, allowPositionals: true });
  } catch (error) {
    console.error(
      `${error.message.split('. ')[0]}\nUsage: npm test -- [--fast] [--only <part of a path>]`,
    );
    process.exit(1);
  }
}
