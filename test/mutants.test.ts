// Goal: `npm run mutate` misses no check of the files it is for, and its list of exceptions names
// what is there. Method: the mutants it lists are compared with the conditions and invariants that
// a plain search finds in the sources.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';

interface Mutant {
  readonly id: string;
  readonly file: string;
  readonly kind: string;
  readonly line: string;
  readonly original: string;
  /** Its place in the list of exceptions, or -1. */
  readonly entry: number;
}
type Exception = Omit<Mutant, 'id' | 'entry'> & { readonly reason: string };

const listed = spawnSync(process.execPath, ['scripts/mutate.mjs', '--list', '--json'], {
  encoding: 'utf8',
  maxBuffer: 64 * 1024 * 1024,
});
const mutants: readonly Mutant[] = JSON.parse(listed.stdout);
const files = [...new Set(mutants.map(({ file }) => file))];

/**
 * How often a pattern occurs in the code of a file; comments, texts, which may hold SQL, and lines
 * with a regular expression alone are left out.
 */
function count(file: string, pattern: RegExp): number {
  const comments = /^\s*\/\*[\s\S]*?\*\/|^\s*\/\/.*$|^\s*\/.*\/[a-z]*;$/gm;
  const texts =
    /`(?:[^`\\$]|\\.|\$(?!\{)|\$\{(?:[^`}]|`[^`]*`)*\})*`|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g;
  const code = readFileSync(file, 'utf8').replace(comments, '').replace(texts, "''");
  return [...code.matchAll(pattern)].length;
}
const found = (file: string, kind: string) =>
  mutants.filter((one) => one.file === file && one.kind === kind);

test('every mutant has an id of its own', () => {
  assert.ok(mutants.length > 300, `only ${mutants.length} mutants`);
  assert.equal(new Set(mutants.map(({ id }) => id)).size, mutants.length);
});

test('every condition is forced both ways, and every invariant is removed', () => {
  for (const file of files) {
    const conditions = count(file, /\bif \(/g);
    assert.equal(found(file, 'if-false').length, conditions, file);
    assert.equal(found(file, 'if-true').length, conditions, file);
    const removed = found(file, 'call').filter(({ original }) => original.startsWith('invariant('));
    assert.equal(removed.length, count(file, /^\s*(?:if \(.*\) )?invariant\(/gm), file);
  }
});

test('every operand of a conjunction or disjunction is taken out', () => {
  for (const file of files) {
    for (const [kind, operator] of [
      ['and', /&&/g],
      ['or', /\|\|/g],
    ] as const) {
      const operators = count(file, operator);
      const operands = found(file, kind).length;
      assert.ok(
        operands > operators || operators === 0,
        `${file}: ${operators} operators and ${operands} operands`,
      );
    }
  }
});

test('the slot of a claim, the flush of a verdict and the claim at the final gate are taken out', () => {
  const isThere = (file: string, kind: string, original: RegExp) =>
    found(file, kind).some((one) => original.test(one.original));
  const tables = 'src/ledger/postgres/sql/tables.sql';
  assert.ok(isThere(tables, 'constraint', /journal_slot unique \(occurrence, slot\)$/));
  for (const file of ['src/runtime/finish.ts', 'src/runtime/recover.ts', 'src/ledger/verdicts.ts'])
    assert.ok(isThere(file, 'durability', /'flushed'/), file);
  assert.ok(isThere('src/runtime/gate.ts', 'if-true', /^standing\.holds$/));
});

test('the heartbeat of a worker, the revision and node of a license and the look of `ensure` are taken out', () => {
  const isThere = (file: string, kind: string, original: RegExp) =>
    assert.ok(
      found(file, kind).some((one) => original.test(one.original)),
      `${file} ${kind}`,
    );
  isThere('src/workflow/dbos.ts', 'call', /^await this\.#heartbeats\.beat\(\)$/);
  isThere('src/workflow/workflows.ts', 'call', /announcePlan\(/);
  isThere('src/workflow/run.ts', 'revision', /^record\.revision$/);
  isThere('src/workflow/records.ts', 'part', /\$\{revision\}/);
  isThere('src/workflow/records.ts', 'part', /^instance$/);
  isThere('src/runtime/ensure.ts', 'ternary-true', /^holder === undefined$/);
});

test('every exception is a mutant that exists, once, with a reason', () => {
  const exceptions: readonly Exception[] = JSON.parse(
    readFileSync('scripts/mutate/equivalent.json', 'utf8'),
  );
  assert.equal(
    new Set(exceptions.map((exception) => JSON.stringify(exception))).size,
    exceptions.length,
  );
  for (const [index, exception] of exceptions.entries()) {
    assert.equal(mutants.filter(({ entry }) => entry === index).length, 1, exception.line);
    assert.match(exception.reason, /^[A-Z`].{20,}\.$/);
  }
});

test('changed lines are those since the branch left the other one, committed or not, and all of a new file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-changed-'));
  const run = (program: string, ...args: readonly string[]) => {
    const { status, stdout, stderr } = spawnSync(program, args, { cwd: folder, encoding: 'utf8' });
    assert.equal(status, 0, stderr);
    return stdout;
  };
  const git = (...args: readonly string[]) =>
    run(
      'git',
      '-c',
      'user.name=test',
      '-c',
      'user.email=test@example.com',
      '-c',
      'init.defaultBranch=main',
      ...args,
    );
  const write = (file: string, lines: string) =>
    writeFileSync(join(folder, 'src', file), lines.replaceAll(' ', '\n'));
  const commit = () => {
    git('add', '-A');
    git('commit', '-qm', 'change');
  };
  try {
    mkdirSync(join(folder, 'src'));
    git('init', '-q');
    write('a.ts', 'one two three four');
    write('b.ts', 'one two');
    commit();
    git('checkout', '-qb', 'work');
    write('a.ts', 'one 2 three four');
    commit();
    git('checkout', '-q', 'main');
    write('b.ts', 'one moved');
    commit();
    git('checkout', '-q', 'work');
    write('a.ts', 'one 2 three 4');
    write('new.ts', 'one two');
    const module = resolve('scripts/mutate/changed.mjs');
    const script = `import { changedLines } from ${JSON.stringify(module)};
      console.log(JSON.stringify([...changedLines('main')].map(([file, lines]) => [file, ...lines])));`;
    const found = run(process.execPath, '--input-type=module', '--eval', script);
    assert.deepEqual(JSON.parse(found), [
      ['src/a.ts', 2, 4],
      ['src/new.ts', 1, 2],
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('an unknown ref, or --changed-lines without one, is refused clearly', () => {
  for (const [given, says] of [
    [['--since', 'no-such-ref'], /^--since no-such-ref: .*no-such-ref/],
    [['--changed-lines'], /^--changed-lines needs --since/],
  ] as const) {
    const { status, stderr } = spawnSync(
      process.execPath,
      ['scripts/mutate.mjs', '--list', ...given],
      {
        encoding: 'utf8',
      },
    );
    assert.equal(status, 2);
    assert.match(stderr, says);
    assert.doesNotMatch(stderr, /\n\s+at /);
  }
});

test('--help says what can be asked for, and an unknown option is answered with it', () => {
  const run = (option: string) =>
    spawnSync(process.execPath, ['scripts/mutate.mjs', option], {
      encoding: 'utf8',
      timeout: 60_000,
    });
  const help = run('--help');
  assert.equal(help.status, 0);
  for (const option of [
    'only',
    'mutant',
    'tests',
    'since',
    'changed-lines',
    'jobs',
    'list',
    'json',
    'help',
  ]) {
    assert.match(help.stdout, new RegExp(`^  --${option} `, 'm'));
  }
  const unknown = run('--ony');
  assert.equal(unknown.status, 2);
  assert.match(unknown.stderr, /'--ony'/);
  assert.ok(unknown.stderr.includes(help.stdout.trim()));
});
