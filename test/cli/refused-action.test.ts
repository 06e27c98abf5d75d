// Goal: an action that is refused is shown as a verdict, with what to do, and is found again by
// show and journal. Method: the real command, on an action file that no SQLite adapter reads.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { createRuntime, update } from '../../src/index.ts';
import { Office, runCommand } from './command.ts';

test('run answers a refused action with a recorded rejection and exit code 2, and the license stays good', async () => {
  using office = new Office();
  const runtime = await createRuntime(office.config);
  const effects = [update('invoice', { id: 1 }, { status: ['pending', 'paid'] })];
  const proposal = await runtime.prepare({
    adapter: 'books',
    task: 'invoice-1',
    planRevision: 1,
    effects,
  });
  const license = await office.approver.sign(proposal, { expiresIn: '10m' });
  await runtime.close();
  const sql = "update invoice set status = 'paid' where id = 1";
  writeFileSync(office.path('license.json'), JSON.stringify(license));
  writeFileSync(office.path('bad.json'), JSON.stringify({ sql, force: true }));
  writeFileSync(office.path('good.json'), JSON.stringify({ sql }));
  const call = (...args: string[]) => runCommand(args, { cwd: office.folder });

  const refused = await call('run', 'license.json', '--action', 'bad.json');
  assert.equal(refused.code, 2, refused.stderr);
  assert.match(
    refused.stdout,
    /^rejected at action \(action-invalid\): .*unknown field "force".*it tried:/,
  );
  assert.match(
    refused.stdout,
    /next: nothing was changed, and this attempt did not use the license; correct the action/,
  );
  const listed = await call('journal', '--disposition', 'rejected', '--json');
  assert.match(listed.stdout, /"at": "action"/);
  const ran = await call('run', 'license.json', '--action', 'good.json');
  assert.equal(ran.code, 0, ran.stdout);
});
