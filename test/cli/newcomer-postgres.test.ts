// Goal: a newcomer reaches a protected commit, a refused hidden write and a verified receipt on their own PostgreSQL.
// Method: the commands that `init` prints, as real processes against a real server with a schema that has triggers.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { freshDatabase } from '../postgres/server.ts';
import { Desk } from './newcomer.ts';

const SHOP = `
  create table invoice (id integer primary key, status text not null, updated_at timestamptz);
  create table notification (id integer generated always as identity primary key,
    invoice integer references invoice on delete cascade, text text);
  create table audit (line text);
  create function touch() returns trigger language plpgsql as $$ begin new.updated_at := now(); return new; end $$;
  create trigger touch before update on invoice for each row execute function touch();
  create function notify_paid() returns trigger language plpgsql as $$
    begin insert into notification (invoice, text) values (new.id, 'paid'); return null; end $$;
  create trigger notify_paid after update of status on invoice for each row
    when (new.status = 'paid') execute function notify_paid();
  insert into invoice values (1, 'pending', null), (2, 'pending', null);`;

test('from a PostgreSQL database to a commit, a refusal and a receipt, by what the commands print', async () => {
  await using db = await freshDatabase();
  await db.run(SHOP);
  using desk = new Desk();
  const suffix = db.role('');
  const env = { EFFECTMATCH_ADMIN_URL: db.url() };
  const run = (...words: string[]) => desk.run(words, { env });

  const begun = await run('init', '--approver', 'alice', '--name', 'books', '--roles', suffix);
  assert.equal(begun.code, 0, begun.stderr);
  assert.match(begun.stdout, /effectmatch provision/);
  const config = desk.read('effectmatch.config.ts');
  assert.match(
    config,
    /\{ name: 'invoice', volatile: \['updated_at'\] \}, \/\/ key id; updated_at is set to the time by trigger touch; trigger notify_paid writes notification/,
  );
  assert.match(config, /'notification', \/\/ key id; changes with invoice \(foreign key\)/);
  assert.match(config, /'audit', \/\/ no key: rows compare whole/);
  assert.doesNotMatch(config, /postgres:\/\//, 'addresses stay out of the configuration');

  const early = await run('plan', '--sql', 'delete from notification');
  assert.equal(early.code, 1);
  assert.match(early.stderr, /ERR_EM_ADAPTER_(?:UNAVAILABLE|REFUSED)/);
  assert.match(early.stderr, /next: .*(?:login|provision)/);

  const provisioned = await run('provision');
  assert.equal(provisioned.code, 0, provisioned.stderr);
  const doctor = await run('doctor');
  assert.equal(doctor.code, 0, doctor.stdout + doctor.stderr);

  const pay = ['--sql', 'update invoice set status = $1 where id = $2', '--values', '["paid", 1]'];
  const planned = await run('plan', ...pay, '--out', 'proposal.json');
  assert.equal(planned.code, 0, planned.stderr);
  assert.match(planned.stdout, /~ invoice id=1 {2}status: "pending" -> "paid"/);
  assert.match(planned.stdout, /\+ notification id=<generated .*> {2}invoice=1, text="paid"/);
  assert.match(planned.stdout, /Not compared: invoice\.updated_at/);
  assert.deepEqual(await db.run('select status from invoice where id = 1'), [{ status: 'pending' }]);

  const approved = await run('approve', 'proposal.json', '--key', 'alice.key.json', '--yes', '--out', 'license.json');
  assert.equal(approved.code, 0, approved.stderr);
  const committed = await run('run', 'license.json', ...pay);
  assert.equal(committed.code, 0, committed.stdout + committed.stderr);
  assert.deepEqual(await db.run('select status from invoice where id = 1'), [{ status: 'paid' }]);

  const second = ['--sql', "update invoice set status = 'paid' where id = 2"];
  assert.equal((await run('plan', ...second, '--out', 'second.json')).code, 0);
  assert.equal((await run('approve', 'second.json', '--key', 'alice.key.json', '--yes', '--out', 'two.json')).code, 0);
  await db.run(`create or replace function notify_paid() returns trigger language plpgsql as $$
    begin insert into notification (invoice, text) values (new.id, 'paid'); insert into audit values ('hidden'); return null; end $$`);
  const refused = await run('run', 'two.json', ...second);
  assert.equal(refused.code, 2, refused.stdout + refused.stderr);
  assert.match(refused.stdout, /rejected at comparison \(diverged\)[\s\S]*extra +\+ audit/);
  assert.match(refused.stdout, /next: nothing was changed/);
  assert.deepEqual(await db.run('select status from invoice where id = 2'), [{ status: 'pending' }]);
  assert.deepEqual(await db.run('select * from audit'), []);

  assert.equal((await run('export', '--out', 'receipts.jsonl')).code, 0);
  const keys = await run('export', '--public-key');
  writeFileSync(desk.path('receipt.pub'), keys.stdout);
  const verified = await run('verify', 'receipts.jsonl', '--key', 'receipt.pub');
  assert.equal(verified.code, 0, verified.stderr);
});
