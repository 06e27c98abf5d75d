// Goal: whoever calls the command without knowing it learns what to do, and nothing happens before
// that. Method: the real process from source, with its exit code and both of its streams; an older
// Node where there is one.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { findOlderNode } from '../older-node.ts';
import { MAIN, runCommand } from './command.ts';

const VERBS = [
  'demo',
  'init',
  'keygen',
  'types',
  'provision',
  'doctor',
  'plan',
  'approve',
  'run',
  'shadow',
  'requests',
  'decline',
  'renew',
  'wait',
  'workflow',
  'serve',
  'token',
  'mcp',
  'journal',
  'show',
  'continuations',
  'recover',
  'resolve',
  'export',
  'verify',
  'ledger',
  'completion',
];

test('every verb explains itself, and the overview names every verb', async () => {
  const overview = await runCommand(['help']);
  assert.equal(overview.code, 0);
  assert.equal(overview.stderr, '');
  for (const verb of VERBS) assert.match(overview.stdout, new RegExp(`^ {2}${verb}\\b`, 'm'));
  for (const { verb, ended } of await Promise.all(
    VERBS.map(async (verb) => ({ verb, ended: await runCommand([verb, '--help']) })),
  )) {
    assert.equal(ended.code, 0, verb);
    assert.match(ended.stdout, new RegExp(`^Usage: effectmatch ${verb}`), verb);
    assert.match(ended.stdout, /^ {2}--json/m, verb);
    assert.match(ended.stdout, /Exit codes: 0 committed or done/, verb);
  }
});

test('help fits a terminal of 80 columns, and its commands can be copied from it', async () => {
  const topics = [[], ...VERBS.map((verb) => [verb])];
  const helps = await Promise.all(topics.map((topic) => runCommand(['help', ...topic])));
  for (const [index, { stdout }] of helps.entries()) {
    for (const line of stdout.split('\n'))
      assert.ok(line.length <= 80, `${topics[index]}: ${line}`);
    const examples = /^Examples:\n((?: {2}.*\n)+)/m.exec(stdout)?.[1] ?? '';
    const commands = examples
      .replace(/ \\\n +/g, ' ')
      .trimEnd()
      .split('\n');
    for (const command of index === 0 ? [] : commands)
      assert.match(command, /^ {2}(source <\()?effectmatch /);
  }
});

test('help as data has the same verbs, and its own flag is one of theirs', async () => {
  const { code, stdout } = await runCommand(['help', '--json']);
  assert.equal(code, 0);
  const { verbs } = JSON.parse(stdout) as { verbs: { verb: string; flags: { flag: string }[] }[] };
  assert.deepEqual(
    verbs.map(({ verb }) => verb),
    VERBS,
  );
  for (const { flags } of verbs) assert.ok(flags.some(({ flag }) => flag === '--json'));
});

test('without a verb the overview is printed, and the exit code says that nothing was done', async () => {
  const { code, stdout } = await runCommand([]);
  assert.equal(code, 1);
  assert.match(stdout, /effectmatch demo/);
});

test('the version is the one of the package', async () => {
  const { version } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  );
  assert.equal((await runCommand(['--version'])).stdout, `${version}\n`);
});

test('an unknown verb and an unknown flag are faults of usage with code, sentence and next step', async () => {
  const [verb, flag] = await Promise.all([
    runCommand(['joural']),
    runCommand(['recover', '--nwo']),
  ]);
  for (const ended of [verb, flag]) {
    assert.equal(ended.code, 1);
    assert.equal(ended.stdout, '');
    assert.match(ended.stderr, /^error ERR_EM_USAGE: unknown .*did you mean/);
    assert.match(ended.stderr, /\nnext: run `effectmatch .*`; nothing was done\n$/);
    assert.doesNotMatch(ended.stderr, /\n {4}at /);
  }
});

test('in JSON mode a fault is one document on stdout, wherever the flag stands', async () => {
  for (const argv of [
    ['joural', '--json'],
    ['--json', 'journal', '--bad'],
  ]) {
    const { code, stdout, stderr } = await runCommand(argv);
    assert.equal(code, 1);
    assert.equal(stderr, '');
    const { error } = JSON.parse(stdout) as { error: Record<string, string> };
    assert.deepEqual(Object.keys(error), ['code', 'message', 'next']);
    assert.equal(error.code, 'ERR_EM_USAGE');
  }
});

test('a stack is printed only when it is asked for', async () => {
  const { stderr } = await runCommand(['joural'], { env: { EFFECTMATCH_DEBUG: '1' } });
  assert.match(stderr, /^error ERR_EM_USAGE/);
  assert.match(stderr, /\n {4}at /);
});

test('bash completes verbs and the flags of a verb from the script that is printed', async () => {
  const { code, stdout } = await runCommand(['completion', 'bash']);
  assert.equal(code, 0);
  const complete = (...words: string[]) => {
    const script = `${stdout}\nCOMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; _effectmatch; echo "\${COMPREPLY[@]}"`;
    return spawnSync('bash', ['-c', script], { encoding: 'utf8' }).stdout.trim();
  };
  assert.equal(complete('effectmatch', 're'), 'requests renew recover resolve');
  assert.equal(complete('effectmatch', 'approve', '--e'), '--expires');
  assert.equal(complete('effectmatch', 'verify', '--expi'), '');
  const fish = await runCommand(['completion', 'fish']);
  assert.match(fish.stdout, /-n '__fish_seen_subcommand_from approve' -l expires -r -d /);
  assert.equal((await runCommand(['completion', 'tcsh'])).code, 1);
});

test('an older Node gets a sentence and exit code 1', (t) => {
  const older = findOlderNode();
  if (older === undefined)
    return t.skip('no Node older than 24.12 is installed beside the one of this project');
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-guard-'));
  try {
    // The entry has no types, so under this name it is what the build makes of it; nothing it would
    // import is there.
    const file = join(folder, 'main.mjs');
    copyFileSync(MAIN, file);
    const plain = spawnSync(older, [file, 'demo'], { encoding: 'utf8' });
    assert.equal(plain.status, 1);
    assert.match(
      plain.stderr,
      /^error ERR_EM_NODE_VERSION: EffectMatch needs Node 24\.12 or newer/,
    );
    assert.match(plain.stderr, /\nnext: install Node 24\.12/);
    const json = spawnSync(older, [file, 'demo', '--json'], { encoding: 'utf8' });
    assert.equal(json.status, 1);
    assert.equal(JSON.parse(json.stdout).error.code, 'ERR_EM_NODE_VERSION');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
