// Goal: the demo is true, finishes, and leaves nothing behind, however it ends.
// Method: the real command with its own TMPDIR, so that everything it leaves can be seen.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Scene } from '../../src/cli/demo/scene.ts';
import { createOutput } from '../../src/cli/output.ts';
import { MAIN, runCommand, startCommand } from './command.ts';

/** Runs with TMPDIR set to a fresh folder, which must be empty afterwards. */
async function inOwnFolder(run: (env: { TMPDIR: string }) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-demo-test-'));
  try {
    await run({ TMPDIR: folder });
    assert.deepEqual(readdirSync(folder), []);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test('the demo tells five acts in few enough lines to read, and removes its folder', async () => {
  await inOwnFolder(async (env) => {
    const { code, stdout, stderr } = await runCommand(['demo'], { env });
    assert.equal(stderr, '');
    assert.equal(code, 0);
    const lines = stdout.trimEnd().split('\n');
    assert.ok(lines.length <= 60, `${lines.length} lines`);
    assert.deepEqual(
      lines.filter((line) => line.length > 100),
      [],
    );
    assert.equal(lines.filter((line) => /^\d\. /.test(line)).length, 5);
    assert.ok(!stdout.includes('\u001b'), 'no colour outside a terminal');
    assert.match(stdout, /extra {4}\+ notification id=1/);
  });
});

test('as data, every act has the verdicts that the story needs', async () => {
  await inOwnFolder(async (env) => {
    const { code, stdout } = await runCommand(['demo', '--json'], { env });
    assert.equal(code, 0, stdout);
    interface Verdict {
      readonly kind: string;
      readonly reason?: string;
      readonly reconciled?: boolean;
    }
    const { acts } = JSON.parse(stdout) as { acts: { terminals: Verdict[] }[] };
    const verdicts = acts.map(({ terminals }) =>
      terminals.map(
        ({ kind, reason, reconciled }) => reason ?? (reconciled ? `${kind} by recovery` : kind),
      ),
    );
    assert.deepEqual(verdicts, [
      ['committed'],
      ['diverged'],
      ['precondition-broken'],
      ['committed', 'spent'],
      ['committed by recovery'],
    ]);
  });
});

test('interrupted in the middle, even while its other process runs, the demo removes its folder', async () => {
  // After the last of these lines the demo waits for the process that it has just started.
  for (const moment of [
    '1. The payment does',
    '(everything was rolled back)',
    'a separate process pays',
  ]) {
    await inOwnFolder(async (env) => {
      const { child, ended } = startCommand(['demo'], { env });
      let seen = '';
      child.stdout.on('data', (chunk: Buffer) => {
        const isKnown = seen.includes(moment);
        seen += chunk;
        // Once only: a second signal would end the demo before it has removed its folder.
        if (!isKnown && seen.includes(moment)) child.kill('SIGINT');
      });
      const { code, signal } = await ended;
      assert.equal(signal, null);
      assert.equal(code, 130);
      assert.doesNotMatch(seen, /All 5 ended/);
    });
  }
});

test('a reader that leaves early does not make the demo fail or leave anything', async () => {
  await inOwnFolder(async (env) => {
    const child = spawn(process.execPath, [MAIN, 'demo'], {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    child.stdout.once('data', () => child.stdout.destroy());
    const [code] = await once(child, 'exit');
    assert.equal(code, 0);
  });
});

test('a demo that ends differently than it says stops with an error', () => {
  const scene = new Scene(tmpdir(), createOutput(process.stdout, { json: true, noColor: true }));
  scene.act('a lie');
  assert.throws(() => scene.expect('the answer', 41, 42), {
    code: 'ERR_EM_INVARIANT',
    message: 'act 1 of the demo, the answer: 41, expected 42',
  });
});

test('if no temporary folder can be created, the message says what to set', async () => {
  const { code, stderr } = await runCommand(['demo'], {
    env: { TMPDIR: join(tmpdir(), 'effectmatch', 'absent') },
  });
  assert.equal(code, 1);
  assert.match(stderr, /^error ERR_EM_USAGE: cannot create a folder in .*\nnext: set TMPDIR/);
});
