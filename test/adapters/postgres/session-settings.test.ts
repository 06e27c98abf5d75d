// Goal: an action runs under exactly the session settings that the approver signed, so row security
// and audit triggers know for whom it runs, and nothing an action does changes them unnoticed.
// Method: a policy and an audit trigger that read app.actor, through a whole runtime on a real
// server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  approver,
  createRuntime,
  defineOperation,
  generateApprover,
  insert,
  type PrepareRequest,
  type Runtime,
  type StandardSchema,
  update,
} from '../../../src/index.ts';
import { testKeyring } from '../../keyring.ts';
import { temporaryLedgers } from '../../ledger/temporary.ts';
import { type ProtectedDatabase, protectedDatabase } from '../../postgres/protected.ts';
import { tellEnd } from './approve.ts';

const SCHEMA = `
  create table invoice (id integer primary key, owner text not null, status text not null);
  create table audit (invoice integer not null, actor text, primary key (invoice));
  insert into invoice values (1, 'alice', 'pending'), (2, 'alice', 'pending');
  alter table invoice enable row level security;
  create policy own on invoice using (owner = current_setting('app.actor', true));
  create function note() returns trigger language plpgsql as $$
    begin
      insert into public.audit values (new.id, current_setting('app.actor', true));
      return new;
    end $$;
  create trigger noted after update on invoice for each row execute function note();`;
const REGISTERED = { relations: ['invoice', 'audit'] };
const KEY = generateApprover('approver');

const pay = (id: number) => ({ sql: `update invoice set status = 'paid' where id = ${id}` });
const paid = (id: number, actor: string) => [
  update('invoice', { id }, { status: ['pending', 'paid'] }),
  insert('audit', { invoice: id, actor }),
];

const anyInput: StandardSchema<number> = {
  '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value: value as number }) },
};
const payInvoice = defineOperation({
  name: 'pay',
  adapter: 'db',
  input: anyInput,
  approve: (id) => ({ effects: paid(id, 'alice'), set: { 'app.actor': 'alice' } }),
  action: (id) => pay(id),
});

async function openRuntime(place: ProtectedDatabase, values: 'plain' | 'digest' = 'plain') {
  return await createRuntime({
    store: temporaryLedgers(),
    keyring: testKeyring(),
    issuers: {
      approver: {
        key: KEY.publicKey,
        may: ['db'],
        sources: ['manifest', 'contract', 'rehearsed'],
      },
    },
    adapters: { db: place.factory({ values }) },
    operations: { pay: payInvoice },
  });
}

const STATED = { adapter: 'db', task: 'pay', planRevision: 1 } as const;

async function run(runtime: Runtime, request: Omit<PrepareRequest, keyof typeof STATED>, id = 1) {
  const proposal = await runtime.prepare({ ...STATED, ...request });
  const license = approver(KEY).sign(proposal, { expiresIn: '10m' });
  return await runtime.execute(license, pay(id));
}

async function readAudit({ db }: ProtectedDatabase): Promise<string> {
  const rows = await db.run('select invoice, actor from audit order by 1');
  return rows.map(({ invoice, actor }) => `${invoice} ${actor}`).join();
}

test('a policy and an audit trigger see the setting that was signed, and the next session does not', async () => {
  await using place = await protectedDatabase(SCHEMA, REGISTERED);
  await using runtime = await openRuntime(place);
  const set = { 'app.actor': 'alice' };
  const first = await run(runtime, { effects: paid(1, 'alice'), set });
  assert.equal(tellEnd(first), 'committed');
  const unset = await run(runtime, { effects: paid(2, 'alice') }, 2);
  assert.match(tellEnd(unset), /^rejected at comparison \(DIVERGED\)/);
  const other = { 'app.actor': 'bob' };
  const bob = await run(runtime, { effects: paid(2, 'alice'), set: other }, 2);
  assert.match(tellEnd(bob), /^rejected at comparison \(DIVERGED\)/);
  assert.equal(await readAudit(place), '1 alice');
});

test('the approver reads the settings, and an outcome with other settings is another outcome', async () => {
  await using place = await protectedDatabase(SCHEMA, REGISTERED);
  await using runtime = await openRuntime(place);
  const prepare = (actor: string) =>
    runtime.prepare({ ...STATED, effects: paid(1, 'alice'), set: { 'app.actor': actor } });
  const proposal = await prepare('alice "root"');
  assert.match(proposal.rendering, /^sets {6}app\.actor = "alice \\"root\\"" for the session$/m);
  const license = approver(KEY).sign(proposal, { expiresIn: '10m' });
  const approved = { ...license.approved, settings: { 'app.actor': 'alice' } };
  const terminal = await runtime.execute({ ...license, approved }, pay(1));
  assert.match(tellEnd(terminal), /^rejected at authority \(approved-mismatch\)/);
});

test('a value arrives as it was written, whatever characters it has', async () => {
  await using place = await protectedDatabase(SCHEMA, REGISTERED);
  await using runtime = await openRuntime(place);
  for (const actor of ["o'neil", '\\', "\\'; select 1 --", '$1 $$ %', 'ä\n\t€ 𝄞', '']) {
    await place.db.run('delete from audit');
    await place.db.run("update invoice set owner = $1, status = 'pending'", [actor]);
    await place.db.run('delete from audit');
    const terminal = await run(runtime, {
      effects: paid(1, actor),
      set: { 'app.actor': actor, 'app.user': 'x' },
    });
    assert.equal(tellEnd(terminal), 'committed', JSON.stringify(actor));
    assert.equal(await readAudit(place), `1 ${actor}`);
  }
});

test('an action that changes an approved setting is rejected, and nothing of it remains', async () => {
  await using place = await protectedDatabase(SCHEMA, REGISTERED);
  await place.db.run(`create or replace function note() returns trigger language plpgsql as $$
    begin
      insert into public.audit values (new.id, current_setting('app.actor', true));
      set local app.actor = 'mallory';
      return new;
    end $$;`);
  await using runtime = await openRuntime(place);
  const set = { 'app.actor': 'alice' };
  const terminal = await run(runtime, { effects: paid(1, 'alice'), set });
  assert.equal(
    tellEnd(terminal),
    'rejected at stage (setting-changed): the action changed the approved setting app.actor',
  );
  assert.equal(await readAudit(place), '');
});

test('names that are not settings of the application are refused before anything is signed', async () => {
  await using place = await protectedDatabase(SCHEMA, REGISTERED);
  await using runtime = await openRuntime(place);
  for (const name of [
    ...['effectmatch.stage', 'plpgsql.check_asserts', 'pg_stat_statements.track'],
    ...['search_path', 'role', 'App.Actor', 'app."x"', "app.x'", 'app.', `a.${'b'.repeat(63)}`],
  ]) {
    const set = { [name]: 'x' };
    await assert.rejects(
      runtime.prepare({ ...STATED, effects: paid(1, 'alice'), set }),
      { code: 'ERR_EM_MANIFEST_INVALID' },
      name,
    );
    await assert.rejects(
      runtime.plan({ ...STATED, action: pay(1), set }),
      { code: 'ERR_EM_MANIFEST_INVALID' },
      name,
    );
  }
});

test('a rehearsal runs under the settings, and its approval commits under them', async () => {
  await using place = await protectedDatabase(SCHEMA, REGISTERED);
  await using runtime = await openRuntime(place);
  const proposal = await runtime.plan({
    ...STATED,
    action: pay(1),
    set: { 'app.actor': 'alice' },
  });
  assert.match(proposal.rendering, /actor="alice"/);
  const license = approver(KEY).sign(proposal, { expiresIn: '10m' });
  assert.equal(tellEnd(await runtime.execute(license, pay(1))), 'committed');
});

test('an operation states settings, and its caller cannot choose them differently', async () => {
  await using place = await protectedDatabase(SCHEMA, REGISTERED);
  await using runtime = await openRuntime(place);
  const options = { task: 'pay', planRevision: 1 };
  await assert.rejects(runtime.propose('pay', 1, { ...options, set: { 'app.actor': 'bob' } }), {
    code: 'ERR_EM_OPERATION_FAILED',
    message: /sets app\.actor itself/,
  });
  const set = { 'app.request': 'r-1' };
  const proposal = await runtime.propose('pay', 1, { ...options, set });
  assert.deepEqual(proposal.approved.settings, { 'app.actor': 'alice', 'app.request': 'r-1' });
  const license = approver(KEY).sign(proposal, { expiresIn: '10m' });
  assert.equal(tellEnd(await runtime.execute(license, pay(1))), 'committed');
});

test('where values are stored as digests, the store keeps no value of a setting', async () => {
  await using place = await protectedDatabase(SCHEMA, REGISTERED);
  await using runtime = await openRuntime(place, 'digest');
  const set = { 'app.actor': 'alice' };
  const terminal = await run(runtime, { effects: paid(1, 'alice'), set });
  assert.equal(tellEnd(terminal), 'committed');
  const holder = await runtime.ledgers.holder(terminal.occurrence);
  const { settings } = JSON.parse(holder?.approvedText ?? '{}');
  assert.match(settings['app.actor'], /^digest [0-9a-f]+$/);
});
