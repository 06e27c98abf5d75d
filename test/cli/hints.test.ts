// Goal: the next step that a command names is right in the state it is named in. Method: real
// commands in the states in which earlier versions gave a wrong one.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { adviseTerminal } from '../../src/cli/advice.ts';
import { saveApproverKey } from '../../src/crypto/approver.ts';
import { createRuntime, generateApprover, generated, insert } from '../../src/index.ts';
import { deploy, invoiceWorld, PAYMENT } from '../runtime/deploy.ts';
import { Office, runCommand } from './command.ts';

const ADD = 'insert into notification (invoice_id) values (1)';

test('a used license is not called good when it is run with other SQL', async () => {
  using office = new Office();
  const sign = async (occurrences: number) => {
    await using runtime = await createRuntime(office.config);
    const proposal = await runtime.prepare({
      adapter: 'books',
      task: `notify ${occurrences}`,
      planRevision: 1,
      effects: [insert('notification', { id: generated('n'), invoice_id: 1 })],
      action: { sql: ADD },
      occurrences,
    });
    const license = office.approver.sign(proposal, { expiresIn: '1h' });
    writeFileSync(office.path(`license-${occurrences}.json`), JSON.stringify(license));
  };
  for (const occurrences of [1, 2]) {
    await sign(occurrences);
    const run = (sql: string) =>
      runCommand(['run', `license-${occurrences}.json`, '--sql', sql], { cwd: office.folder });
    for (let use = 1; use <= occurrences; use += 1) assert.equal((await run(ADD)).code, 0);
    for (const other of ['delete from notification', 'not sql at all']) {
      const { stdout } = await run(other);
      assert.doesNotMatch(stdout, /good|unused/);
      assert.match(stdout, /do not repeat it|this attempt did not use the license/);
    }
  }
});

test('after diverged, nothing advises to recover: the verdict is known', async () => {
  const fact = { occurrence: 'occ_1', reason: 'diverged' } as unknown as Parameters<
    typeof adviseTerminal
  >[0];
  for (const kind of ['diverged', 'rejected'] as const) {
    for (const earlier of [false, true]) {
      const advice = adviseTerminal({ ...fact, kind } as typeof fact, earlier);
      assert.doesNotMatch(advice, /recover/);
    }
  }
});

test('after the approval of an HTTP request, no SQL is asked for', async () => {
  using office = new Office();
  await using deployed = await deploy(invoiceWorld());
  const key = generateApprover('alice');
  saveApproverKey(office.path('alice.key.json'), key);
  const approve = async (adapter: 'bank' | 'books') => {
    const proposal = await deployed.runtime.prepare({ ...PAYMENT, task: adapter, adapter });
    writeFileSync(office.path(`${adapter}.json`), JSON.stringify(proposal));
    const words = ['--key', 'alice.key.json', '--out', `${adapter}.license.json`, '--yes'];
    const ended = await runCommand(['approve', `${adapter}.json`, ...words], {
      cwd: office.folder,
    });
    assert.equal(ended.code, 0, ended.stderr);
    return ended.stdout;
  };
  const remote = await approve('bank');
  assert.match(remote, /next: effectmatch run bank\.license\.json --action action\.json\n/);
  assert.doesNotMatch(remote, /--sql/);
  assert.match(await approve('books'), /with --sql, --file or --action\n/);
});

test('plan names no license, because there is none yet', async () => {
  using office = new Office();
  for (const sql of ['not sql', 'select 1; select 2', 'update invoice set status = ?', 'vacuum']) {
    const { code, stdout, stderr } = await runCommand(['plan', '--sql', sql], {
      cwd: office.folder,
    });
    assert.equal(code, 1);
    assert.doesNotMatch(stdout + stderr, /license/);
  }
});
