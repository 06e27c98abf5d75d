// Goal: recovery from the command line tells what it settled, what it left alone and what needs a
// person. Method: real processes that are killed between claim and verdict, then the real command,
// with its exit codes.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createRuntime } from '../../src/index.ts';
import { Office, runCommand } from './command.ts';
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
