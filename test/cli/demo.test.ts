// Goal: the demo is true, finishes, and leaves nothing behind, however it ends.
// Method: the real command with a temporary folder of its own, so that everything it leaves can be seen.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { type ActStage, playAct } from '../../src/cli/demo/play.ts';
import { Sandbox } from '../../src/cli/demo/sandbox.ts';
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
      terminals.map(({ kind, reason, reconciled }) => reason ?? (reconciled ? `${kind} by recovery` : kind)),
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

test('the story of payments shows a naive retry paying twice, a stop, and a recovery by look-up', async () => {
  await inOwnFolder(async (env) => {
    const { code, stdout, stderr } = await runCommand(['demo', 'payments'], { env });
    assert.equal(stderr, '');
    assert.equal(code, 0);
    const lines = stdout.trimEnd().split('\n');
    assert.ok(lines.length <= 60 && lines.every((line) => line.length <= 100), stdout);
    assert.match(stdout, /two payments of 1299\.00/);
    assert.match(stdout, /INDETERMINATE: may be durable.*\n[\s\S]*halted \(indeterminate\)/);
    assert.match(stdout, /COMMITTED: what became durable is what was approved, as recovery established/);
    const told = await runCommand(['demo', 'payments', '--json'], { env });
    const { acts } = JSON.parse(told.stdout) as { acts: { terminals: { kind: string }[] }[] };
    const verdicts = acts.map(({ terminals }) => terminals.map(({ kind }) => kind));
    assert.deepEqual(verdicts, [[], ['indeterminate', 'committed'], ['diverged']]);
  });
});

test('a story that does not exist is refused, with the one that was probably meant', async () => {
  const { code, stderr } = await runCommand(['demo', 'payment']);
  assert.equal(code, 1);
  assert.match(stderr, /unknown story "payment"; did you mean "payments"\?/);
});

test('interrupted in the middle, also while a process of its own runs, the demo removes its folder', async () => {
  // After the second and the third of these lines the demo waits for a process that it has just started.
  for (const moment of ['1. A clean payment', '(everything was rolled back)', '(the commit itself was real)']) {
    await inOwnFolder(async (env) => {
      const { child, ended } = startCommand(['demo'], { env });
      let seen = '';
      child.stdout.on('data', (chunk: Buffer) => {
        seen += chunk;
        if (seen.includes(moment)) child.kill('SIGINT');
      });
      const { code, signal } = await ended;
      assert.equal(signal, null);
      assert.equal(code, 130);
      assert.doesNotMatch(seen, /acts, all as they should be/);
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

test('an act that comes out otherwise than told ends the demo with a fault', async () => {
  using sandbox = new Sandbox();
  const output = createOutput(process.stdout, { json: true, noColor: true });
  const act = { title: 'a lie', play: async (stage: ActStage) => stage.expect('the answer', 41, 42) };
  await assert.rejects(playAct(sandbox, 1, act, output), {
    code: 'ERR_EM_INVARIANT',
    message: 'act 1 came out wrong: the answer is 41 and should be 42',
  });
});

test('where no temporary folder can be made, the message says what to set', async () => {
  const { code, stderr } = await runCommand(['demo'], { env: { TMPDIR: join(tmpdir(), 'effectmatch', 'absent') } });
  assert.equal(code, 1);
  assert.match(stderr, /^error ERR_EM_USAGE: no folder can be made in .*\nnext: set TMPDIR/);
});
