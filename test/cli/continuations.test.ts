// Goal: work that was released and never completed can be found without reading the journal row by
// row. Method: a real payment whose dependent work throws, read by the real command.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRuntime, update } from '../../src/index.ts';
import { Office, runCommand } from './command.ts';

test('the command lists what is open, oldest first, and says so when nothing is', async () => {
  using office = new Office();
  await using runtime = await createRuntime(office.config);
  const call = (...args: string[]) =>
    runCommand(['continuations', ...args], { cwd: office.folder });
  const proposal = await runtime.prepare({
    adapter: 'books',
    task: 'invoice-1',
    planRevision: 1,
    effects: [update('invoice', { id: 1 }, { status: ['pending', 'paid'] })],
    continuations: ['reconcile', 'notify'],
  });
  const license = await office.approver.sign(proposal, { expiresIn: '10m' });
  const action = { sql: "update invoice set status = 'paid' where id = 1" };
  const terminal = await runtime.execute(license, action);
  assert.equal(
    (await call()).stdout,
    'nothing is open: all work that was released has completed\n',
  );
  await runtime.continuation(terminal, 'notify').release(() => {});
  await assert.rejects(
    runtime.continuation(terminal, 'reconcile').release(() => {
      throw new Error('interrupted');
    }),
  );
  const { code, stdout } = await call();
  assert.equal(code, 0);
  assert.match(
    stdout,
    new RegExp(`^since \\S+Z  ${terminal.occurrence}  reconcile  invoice-1\\n$`),
  );
  const shown = await runCommand(['show', terminal.occurrence], { cwd: office.folder });
  assert.match(shown.stdout, /Z {2}released {2}reconcile {2}\(not completed\)\n/);
  assert.match(shown.stdout, /Z {2}released {2}notify\n/);
  const { continuations } = JSON.parse((await call('--json')).stdout);
  const { occurrence, lineage } = terminal;
  const { releasedAt } = continuations[0];
  assert.deepEqual(continuations, [
    { occurrence, lineage, continuation: 'reconcile', task: 'invoice-1', releasedAt },
  ]);
  assert.ok(Math.abs(Date.parse(releasedAt) - Date.now()) < 60_000);
});
