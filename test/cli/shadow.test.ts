// Goal: `shadow` tells a team what `run` would decide, on its own database, and leaves database and
// licenses as they were. Method: the real commands on a real SQLite file whose trigger writes more
// than is approved; exports are verified by key alone.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Desk, SHOP } from './newcomer.ts';

const PAY = ['--sql', 'update invoice set status = ? where id = ?', '--values', '["paid", 1]'];

test('a shadow goes beside production: recorded, listed, exported and verified, and the license still commits', async () => {
  using desk = new Desk();
  desk.change(SHOP);
  assert.equal((await desk.run(['init', 'books.db', '--approver', 'alice'])).code, 0);
  const call = async (...words: string[]) => {
    const { code, stdout, stderr } = await desk.run(words);
    assert.equal(code, 0, stdout + stderr);
    return stdout;
  };
  const content = () => desk.query('select id, status, updated_at from invoice order by id');
  const before = content();

  const first = await call('shadow', ...PAY, '--task', 'look first');
  assert.match(
    first,
    /^nothing is approved to compare with; seen: 1 update of invoice, 1 insert of notification$/m,
  );
  assert.match(first, /^ {2}~ invoice id=1 {2}status: "pending" -> "paid"/m);
  assert.match(first, /Rolled back, and no verdict: no license was spent/);
  await call('plan', ...PAY, '--out', 'proposal.json');
  assert.match(
    await call('shadow', 'proposal.json', ...PAY),
    /^would commit: .*if the proposal is signed as it is/,
  );
  await call(
    'approve',
    'proposal.json',
    '--key',
    'alice.key.json',
    '--yes',
    '--out',
    'license.json',
  );
  const { shadow } = JSON.parse(await call('shadow', 'license.json', ...PAY, '--json'));
  assert.deepEqual([shadow.would, shadow.basis], ['commit', 'license']);
  assert.deepEqual(content(), before, 'the database is as it was');
  assert.deepEqual(desk.query('select * from notification'), []);

  const shown = await call('show', shadow.occurrence);
  assert.match(shown, /shadow: no verdict, nothing was spent[\s\S]*would commit/);
  const listed = await call('journal', '--kind', 'shadow');
  assert.equal(listed.trim().split('\n').length, 6);
  assert.match(
    listed,
    / shadow +occ_\w+ {2}look first\n +no verdict; nothing approved to compare with\n/,
  );
  assert.match(await call('recover', '--now'), /nothing/);

  await call('run', 'license.json', ...PAY);
  await call('export', '--public-key', '--out', 'receipts.pub');
  assert.match(await call('export', '--out', 'receipts.jsonl'), /^1 receipt written/);
  assert.match(await call('export', '--shadow', '--out', 'shadows.jsonl'), /^3 shadows written/);
  const payloads = readFileSync(desk.path('shadows.jsonl'), 'utf8').trim().split('\n');
  for (const line of payloads) {
    const statement = JSON.parse(Buffer.from(JSON.parse(line).payload, 'base64').toString());
    assert.equal(statement.predicateType, 'urn:effectmatch:shadow:v1');
  }
  const verified = await call('verify', 'shadows.jsonl', '--key', 'receipts.pub');
  assert.match(
    verified,
    /shadow occ_\w+: no verdict[\s\S]*Does not prove:\n {2}That anything was decided/,
  );
  const [event = ''] = (await call('export', '--shadow', '--format', 'cloudevents')).split('\n');
  assert.equal(JSON.parse(event).type, 'effectmatch.shadow.propose');
  assert.match(await call('journal', '--verify'), /^intact/);
});

test('what would be refused is told with its differences, and still ends with exit code 0', async () => {
  using desk = new Desk();
  desk.change(SHOP);
  assert.equal((await desk.run(['init', 'books.db', '--approver', 'alice'])).code, 0);
  assert.equal((await desk.run(['plan', ...PAY, '--out', 'proposal.json'])).code, 0);
  desk.change(`create trigger more after update of status on invoice when new.id = 1
    begin update invoice set status = 'late' where id = 3; end`);
  const { code, stdout } = await desk.run(['shadow', 'proposal.json', ...PAY]);
  assert.equal(code, 0, stdout);
  assert.match(
    stdout,
    /^would be rejected at comparison \(diverged\)[\s\S]*extra {4}~ invoice id=3/,
  );
  const denied = await desk.run(['shadow', '--sql', 'drop table invoice', '--json']);
  assert.equal(denied.code, 0, denied.stderr);
  assert.equal(JSON.parse(denied.stdout).shadow.would, 'reject');
  const confused = await desk.run(['shadow', 'proposal.json', ...PAY, '--task', 'x']);
  assert.equal(confused.code, 1);
  assert.match(confused.stderr, /--task cannot be combined with a file/);
});
