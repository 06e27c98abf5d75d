// Goal: what others say ends in a verdict that can be stored, and says nothing that must not be
// stored. Method: a real SQLite file behind the public API; the ledger's files are searched as
// bytes.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { sqlite } from '../../src/adapters/sqlite/index.ts';
import { digestText } from '../../src/crypto/digest.ts';
import {
  approver,
  createRuntime,
  generateApprover,
  type Proposal,
  row,
  update,
} from '../../src/index.ts';
import { renderLicense } from '../../src/protocol/render-license.ts';

const SECRET = 'Zwetschgenkuchen';

async function clinic(values: 'plain' | 'digest') {
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-clinic-'));
  const file = join(folder, 'clinic.db');
  const db = new DatabaseSync(file);
  db.exec('create table patient (id integer primary key, name text not null, ward text not null)');
  db.prepare('insert into patient values (1, ?, ?)').run(SECRET, 'A');
  const key = generateApprover('ward-team');
  const runtime = await createRuntime({
    store: join(folder, 'ledger.db'),
    keyring: join(folder, 'keys.json'),
    issuers: { 'ward-team': { key: key.publicKey, may: ['clinic'] } },
    adapters: { clinic: sqlite({ file, relations: ['patient'], values }) },
  });
  const sign = (proposal: Proposal) => approver(key).sign(proposal, { expiresIn: '10m' });
  const approve = async () =>
    sign(
      await runtime.prepare({
        adapter: 'clinic',
        task: 'move patient',
        planRevision: 1,
        effects: [update('patient', { id: 1 }, { ward: ['A', 'B'] })],
        requires: [row('patient', { id: 1 }, { name: SECRET })],
        action: { sql: MOVE },
      }),
    );
  const stored = () => {
    const ledger = readdirSync(folder).filter((name) => name.startsWith('ledger.db'));
    return ledger.map((name) => readFileSync(join(folder, name), 'latin1')).join('');
  };
  const close = async () => {
    await runtime.close();
    db.close();
    rmSync(folder, { recursive: true });
  };
  return { db, runtime, approve, sign, stored, [Symbol.asyncDispose]: close };
}

const MOVE = "update patient set ward = 'B' where id = 1";

test('with digested values a broken precondition names columns, and the ledger holds no value and no way to try one', async () => {
  await using deployed = await clinic('digest');
  const committed = await deployed.runtime.execute(await deployed.approve(), { sql: MOVE });
  assert.equal(committed.kind, 'committed');
  deployed.db.exec("update patient set ward = 'A' where id = 1");
  const license = await deployed.approve();
  deployed.db.prepare('update patient set name = ?').run(`${SECRET} with cream`);
  const refused = await deployed.runtime.execute(license, { sql: MOVE });
  assert.equal(refused.kind === 'rejected' && refused.reason, 'precondition-broken');
  const text = deployed.stored();
  assert.ok(!text.includes(SECRET), 'a value is in the ledger');
  assert.ok(!text.includes(license.approved.salt), 'the salt of an approval is in the ledger');
  const rendering = renderLicense(license.license, license.approved);
  const unsalted = digestText('effectmatch/rendering/v1', rendering);
  assert.ok(!text.includes(unsalted), 'a digest that can be tried is in the ledger');
});

test('with plain values the same refusal says what was found', async () => {
  await using deployed = await clinic('plain');
  const license = await deployed.approve();
  deployed.db.prepare('update patient set name = ?').run('Apfelstrudel');
  const refused = await deployed.runtime.execute(license, { sql: MOVE });
  assert.equal(refused.kind, 'rejected');
  assert.match(refused.kind === 'rejected' ? refused.detail : '', /Apfelstrudel/);
});

test('an error text that is cut in the middle of a character still ends in a verdict', async () => {
  await using deployed = await clinic('plain');
  for (const lead of ['', 'x', 'xx', 'xxx']) {
    const sql = `select * from patient where "${lead}${'😀'.repeat(2000)}" = 1`;
    const proposal = await deployed.runtime.prepare({
      adapter: 'clinic',
      task: 'look',
      planRevision: 1,
      effects: [],
    });
    const license = deployed.sign(proposal);
    const terminal = await deployed.runtime.execute(license, { sql });
    assert.equal(terminal.kind === 'rejected' && terminal.reason, 'action-failed');
    assert.ok(terminal.kind === 'rejected' && terminal.detail.isWellFormed());
  }
});
