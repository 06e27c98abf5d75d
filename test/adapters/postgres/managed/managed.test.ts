// Goal: a login with ownership of its schema, CREATEROLE and CREATE on the database, and nothing
// more, protects its tables. Method: provision as exactly that login on real servers, then prepare,
// approve, run, rehearse and recover, and attack the statement gate.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { approver, createRuntime, generateApprover } from '../../../../src/index.ts';
import { update } from '../../../../src/protocol/draft.ts';
import { testKeyring } from '../../../keyring.ts';
import { temporaryLedgers } from '../../../ledger/temporary.ts';
import { isInstalled, type Version } from '../../../postgres/server.ts';
import { managedDatabase } from './office.ts';

const KEY = generateApprover('approver');
const SCHEMA = `
  create table app.invoice (id int primary key, status text not null, amount numeric(10, 2) not null default 0);
  create table app.audit (id bigint generated always as identity primary key, invoice int, at timestamptz not null default now());
  create function app.note() returns trigger language plpgsql as $$ begin
    insert into app.audit (invoice) values (new.id); return null; end $$;
  create trigger note after update of amount on app.invoice for each row execute function app.note();
  insert into app.invoice values (1, 'pending', 35), (2, 'pending', 70);`;

for (const version of [17, 15] as const satisfies readonly Version[])
  test(`PostgreSQL ${version}: what a managed login provisions can be approved, run and recovered`, {
    skip: !isInstalled(version) && `PostgreSQL ${version} is not installed`,
  }, async () => {
    await using site = await managedDatabase(
      SCHEMA,
      { relations: ['app.invoice', 'app.audit'] },
      { version },
    );
    await using runtime = await createRuntime({
      store: temporaryLedgers(),
      keyring: testKeyring(),
      issuers: {
        approver: { key: KEY.publicKey, may: ['db'], sources: ['manifest', 'rehearsed'] },
      },
      adapters: { db: site.factory() },
    });
    const effects = [update('app.invoice', { id: 1 }, { status: ['pending', 'paid'] })];
    const proposal = await runtime.prepare({ adapter: 'db', task: 't', planRevision: 1, effects });
    assert.match(proposal.rendering, /managed boundary/);
    const license = approver(KEY).sign(proposal, { expiresIn: '10m' });
    const terminal = await runtime.execute(license, {
      sql: "update app.invoice set status = lower('PAID') where id = $1",
      values: [1],
    });
    assert.equal(terminal.kind, 'committed', JSON.stringify(terminal));
    const rows = await site.db.run('select status from app.invoice order by id');
    assert.deepEqual(
      rows.map(({ status }) => status),
      ['paid', 'pending'],
    );
  });
