// Goal: recovery and waiting from the command line tell what was settled, what was left alone and what
// needs a person. Method: real processes that are killed between claim and verdict, then the real command,
// with its exit codes.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createRuntime } from '../../src/index.ts';
import { Office, runCommand, startCommand } from './command.ts';
import { paying, proposePayment } from './payments.ts';

/** Signs a payment and has a process execute it that kills itself at the step. */
async function killAt(office: Office, id: number, step: string): Promise<void> {
  {
    await using runtime = await createRuntime(office.config);
    const license = office.approver.sign(await proposePayment(runtime, id), { expiresIn: '1h' });
    writeFileSync(office.path('license.json'), JSON.stringify(license));
  }
  const worker = fileURLToPath(new URL('./dying-worker.ts', import.meta.url));
  const child = spawn(process.execPath, [worker, office.folder, String(id), step], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [, signal] = await once(child, 'close');
  assert.equal(signal, 'SIGKILL');
}

const recover = (office: Office, ...args: string[]) =>
  runCommand(['recover', ...args], { cwd: office.folder });

/** The lease of the test is ten minutes: what is left of it is counted in seconds. */
const LEASED =
  /^running .*\n {2}its lease is live for (?:600|5\d\d) s, and longer if it is renewed$/gm;

test('attempts are left alone while they may be alive, and then settled by what the backend says', async () => {
  using office = new Office();
  office.writeConfig({ leaseMs: '600_000' });
  await killAt(office, 1, 'path:promoted');
  await killAt(office, 2, 'path:staged');

  const early = await recover(office);
  assert.equal(early.code, 5, early.stderr);
  assert.equal(early.stdout.match(LEASED)?.length, 2, early.stdout);
  assert.match(early.stdout, /^next: run `effectmatch recover` again later; --now does not wait/m);

  const settled = await recover(office, '--now');
  assert.equal(settled.code, 0, settled.stderr);
  const lines = settled.stdout.trimEnd().split('\n');
  assert.equal(lines.length, 4);
  assert.match(lines[0] ?? '', /^settled {5}occ_[0-9a-f]{40} {2}invoice-1$/);
  assert.equal(lines[1], '  committed');
  assert.match(lines[2] ?? '', /^settled {5}occ_[0-9a-f]{40} {2}invoice-2$/);
  assert.equal(lines[3], '  rejected (interrupted: nothing became durable)');

  const again = await recover(office, '--json');
  assert.equal(again.code, 0);
  assert.deepEqual(JSON.parse(again.stdout), { recovered: [] });
  assert.match((await recover(office)).stdout, /^nothing to recover/);
});

test('an attempt whose backend is not configured here needs a person: exit code 4', async () => {
  using office = new Office();
  await killAt(office, 1, 'path:promoted');
  office.writeConfig({ issuers: '{}', adapters: '{}' });
  const ended = await recover(office, '--now');
  assert.equal(ended.code, 4, ended.stderr);
  assert.match(
    ended.stdout,
    /^unresolved {2}occ_[0-9a-f]{40} {2}invoice-1\n {2}adapter "books" is not configured here$/m,
  );
});

test('an attempt whose license another machine used is settled with the words that it was committed there', async () => {
  using office = new Office();
  await killAt(office, 1, 'path:claimed');
  {
    await using there = await createRuntime({
      ...office.config,
      store: office.path('other-machine.db'),
    });
    const terminal = await there.execute(
      readFileSync(office.path('license.json'), 'utf8'),
      paying(1),
    );
    assert.equal(terminal.kind, 'committed');
  }
  const { code, stdout, stderr } = await recover(office, '--now');
  assert.equal(code, 0, stderr);
  assert.match(
    stdout,
    /rejected \(decided-elsewhere: execution exe_[0-9a-f]{32} committed this occurrence; /,
  );
  assert.doesNotMatch(stdout, /nothing became durable/);
});

test('two watchers settle what is left once its lease has run out, and end with Ctrl-C', async () => {
  using office = new Office();
  office.writeConfig({ leaseMs: '1000' });
  await killAt(office, 1, 'path:promoted');
  const watchers = [1, 2].map(() =>
    startCommand(['recover', '--watch', '--every', '1'], { cwd: office.folder }),
  );
  const printed = watchers.map(() => '');
  for (const [index, { child }] of watchers.entries())
    child.stdout.on('data', (chunk) => {
      printed[index] += String(chunk);
    });
  await using runtime = await createRuntime(office.config);
  const { ledgers } = runtime;
  const isSettled = async () => (await ledgers.journal()).some(({ kind }) => kind === 'terminal');
  const end = performance.now() + 30_000;
  // A watcher that is still starting would end at once when it is interrupted.
  const areWatching = () => printed.every((lines) => lines.startsWith('watching'));
  while (!(areWatching() && (await isSettled())) && performance.now() < end) await sleep(50);
  await sleep(100);
  for (const { child } of watchers) child.kill('SIGINT');
  const ends = await Promise.all(watchers.map(({ ended }) => ended));
  assert.deepEqual(
    ends.map(({ code }) => code),
    [0, 0],
  );
  const lines = printed.join('');
  assert.match(lines, /^watching, every 1 s; end it with Ctrl-C\n/);
  assert.match(lines, /^settled {5}occ_[0-9a-f]{40} {2}invoice-1\n {2}committed$/m);
  const terminals = (await ledgers.journal()).filter(({ kind }) => kind === 'terminal');
  assert.equal(terminals.length, 1, 'one verdict');
});

test('wait returns the verdict about a license or an occurrence with its exit code, and executes nothing', async () => {
  using office = new Office();
  office.writeConfig({ leaseMs: '1000' });
  const wait = (...args: string[]) => runCommand(['wait', ...args], { cwd: office.folder });
  const proposed = async (id: number) => {
    await using runtime = await createRuntime(office.config);
    const license = office.approver.sign(await proposePayment(runtime, id), { expiresIn: '1h' });
    writeFileSync(office.path(`license-${id}.json`), JSON.stringify(license));
    return license;
  };
  const rejected = await proposed(3);
  const early = await wait('license-3.json', '--for', '0');
  assert.equal(early.code, 5, early.stderr);
  assert.match(early.stdout, /^occ_[0-9a-f]{40} has no verdict yet\nnext: effectmatch show occ_/);
  await killAt(office, 1, 'path:promoted');
  {
    await using runtime = await createRuntime({ ...office.config, leaseMs: 1000 });
    const terminal = await runtime.execute(rejected, paying(2));
    assert.equal(terminal.kind, 'rejected');
    const prefix = terminal.occurrence.slice(0, 12);
    const { code, stdout, stderr } = await wait(prefix, '--json');
    assert.equal(code, 2, stderr);
    const { occurrence, terminal: told } = JSON.parse(stdout);
    assert.deepEqual([occurrence, told.kind], [terminal.occurrence, 'rejected']);
  }
  const settled = await wait('license.json', '--for', '20');
  assert.equal(settled.code, 0, settled.stdout + settled.stderr);
  assert.match(settled.stdout, /^committed: what became durable/);
  const unknown = await wait('occ_0000');
  assert.equal(unknown.code, 1);
  writeFileSync(office.path('note.txt'), 'not a license');
  const wrong = await wait('note.txt');
  assert.match(wrong.stderr, /ERR_EM_RECORD_INVALID[\s\S]*next: name a license, an occurrence/);
});
