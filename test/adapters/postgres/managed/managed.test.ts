// Goal: a login with ownership of its schema, CREATEROLE and CREATE on the database, and nothing
// more, protects its tables, and leaves everything else in the database as it was. Method: provision
// as exactly that login on real servers, then plan, approve, run and recover; read all rights before
// and after.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planProvisioning } from '../../../../src/adapters/postgres/index.ts';
import type { Step } from '../../../../src/contract/steps.ts';
import { approver, generateApprover } from '../../../../src/index.ts';
import { update } from '../../../../src/protocol/draft.ts';
import { createRuntime } from '../../../../src/runtime/runtime.ts';
import { testKeyring } from '../../../keyring.ts';
import { temporaryLedgers } from '../../../ledger/temporary.ts';
import {
  DEFAULT_VERSION,
  freshDatabase,
  isInstalled,
  type TestDatabase,
  VERSIONS,
} from '../../../postgres/server.ts';
import { type ManagedDatabase, managedDatabase } from './office.ts';

const KEY = generateApprover('approver');
const SCHEMA = `
  create table app.invoice (id int primary key, status text not null, amount numeric(10, 2) not null default 0);
  create table app.audit (id bigint generated always as identity primary key, invoice int, at timestamptz not null default now());
  create function app.note() returns trigger language plpgsql as $$ begin
    insert into app.audit (invoice) values (new.id); return null; end $$;
  create trigger note after update of amount on app.invoice for each row execute function app.note();
  insert into app.invoice values (1, 'pending', 35), (2, 'pending', 70);`;
const RELATIONS = ['app.invoice', 'app.audit'];
const TASK = { adapter: 'db', task: 't', planRevision: 1 };
const PAID = [update('app.invoice', { id: 1 }, { status: ['pending', 'paid'] })];
const PAY = { sql: "update app.invoice set status = lower('PAID') where id = $1", values: [1] };

function deploy(site: ManagedDatabase, ledgers = temporaryLedgers(), reached = (_: Step) => {}) {
  return createRuntime(
    {
      store: ledgers,
      keyring: testKeyring(),
      issuers: {
        approver: { key: KEY.publicKey, may: ['db'], sources: ['manifest', 'rehearsed'] },
      },
      adapters: { db: site.factory() },
    },
    { reached },
  );
}

for (const version of VERSIONS)
  test(`PostgreSQL ${version}: what a managed login provisions is approved, planned, run and recovered`, {
    skip: !isInstalled(version) && `PostgreSQL ${version} is not installed`,
  }, async () => {
    await using site = await managedDatabase(SCHEMA, { relations: RELATIONS }, { version });
    const ledgers = temporaryLedgers();
    let dies: Step | undefined;
    const reached = (step: Step) => {
      if (step === dies) throw new Error('the process died');
    };
    await using runtime = await deploy(site, ledgers, reached);
    const sign = approver(KEY).sign;

    const proposal = await runtime.prepare({ ...TASK, effects: PAID });
    assert.match(proposal.rendering, /Held behind a managed boundary/);
    const paid = await runtime.execute(sign(proposal, { expiresIn: '10m' }), PAY);
    assert.equal(paid.kind, 'committed', JSON.stringify(paid));

    const raise = { sql: 'update app.invoice set amount = amount + 1 where id = 2' };
    const plan = await runtime.plan({ ...TASK, action: raise });
    assert.match(plan.rendering, /\+ app\.audit/);
    const raised = await runtime.execute(sign(plan, { expiresIn: '10m' }), raise);
    assert.equal(raised.kind, 'committed', JSON.stringify(raised));

    const undo = [update('app.invoice', { id: 1 }, { status: ['paid', 'pending'] })];
    const dying = { sql: "update app.invoice set status = 'pending' where id = 1" };
    for (const [step, verdict] of [
      ['path:claimed', 'rejected'],
      ['path:promoted', 'committed'],
    ] as const) {
      const license = sign(await runtime.prepare({ ...TASK, effects: undo }), { expiresIn: '10m' });
      dies = step;
      await assert.rejects(runtime.execute(license, dying));
      dies = undefined;
      const [recovered] = await runtime.recover({ now: true });
      assert.ok(recovered?.kind === 'settled', JSON.stringify(recovered));
      assert.equal(recovered.terminal.kind, verdict);
    }
    const rows = await site.db.run('select status, amount from app.invoice order by id');
    assert.deepEqual(rows, [
      { status: 'pending', amount: '35.00' },
      { status: 'pending', amount: '71.00' },
    ]);
  });

test('a login that is only a member of the owner of the tables provisions them too', async () => {
  const db = await freshDatabase();
  const [team, customer] = [db.role('team'), db.role('customer')];
  const handOver = `reset role; create role ${team}; grant ${team} to ${customer}; grant all on schema app to ${team};
    alter table app.invoice owner to ${team}; alter table app.audit owner to ${team}; alter schema app owner to ${team}`;
  await using site = await managedDatabase(
    `${SCHEMA} ${handOver}`,
    { relations: RELATIONS },
    { db },
  );
  await using runtime = await deploy(site);
  const proposal = await runtime.prepare({ ...TASK, effects: PAID });
  const paid = await runtime.execute(approver(KEY).sign(proposal, { expiresIn: '10m' }), PAY);
  assert.equal(paid.kind, 'committed', JSON.stringify(paid));
});

test('every outlet says whether rights, the gate or the provider closes it', async () => {
  await using site = await managedDatabase(SCHEMA, { relations: RELATIONS });
  const context = { name: 'db', clock: { now: Date.now }, reached: () => {}, leaseMs: 30_000 };
  const adapter = await site.factory().open(context as never);
  try {
    const { outlets } = await adapter.survey();
    const closers = outlets.filter(({ disposition }) => disposition === 'denied');
    for (const { outlet, by } of closers) assert.match(by, /^(rights|gate|provider): /, outlet);
    const byOf = (outlet: string) => closers.find((one) => one.outlet.startsWith(outlet))?.by ?? '';
    assert.match(byOf('built-in that signals other sessions'), /^gate: .*pg_notify/);
    assert.match(byOf('TEMPORARY ON DATABASE'), /^gate: /);
    assert.match(byOf('role attribute SUPERUSER'), /^rights: /);
    assert.match(byOf('setting shared_preload_libraries'), /^provider: /);
    assert.equal(outlets.filter(({ disposition }) => disposition === 'unclassified').length, 0);
    assert.equal(adapter.identity.kind, `postgresql ${DEFAULT_VERSION} managed`);
  } finally {
    await adapter.close();
  }
});

test('a table that was added to the configuration asks for provisioning in one line, and for nothing else', async () => {
  const schema = `${SCHEMA} create table app.added (id int primary key);`;
  await using site = await managedDatabase(schema, { relations: RELATIONS });
  const added = {
    ...site,
    factory: () => site.factory({ relations: [...RELATIONS, 'app.added'] }),
  };
  await using runtime = await deploy(added);
  const { outlets } = await runtime.survey('db');
  const open = outlets.filter(({ disposition }) => disposition === 'unclassified');
  assert.deepEqual(open, [
    {
      outlet: 'recorders on app.added',
      disposition: 'unclassified',
      by: 'It is registered, and nothing records its writes yet; run `effectmatch provision`',
      behind: 'relation app.added',
    },
  ]);
  await runtime.plan({ ...TASK, action: PAY });
});

/** Every right in the database that belongs to a role other than ours, in the server's words. */
async function readRights(db: TestDatabase) {
  const [row] = await db.run(`select json_build_object(
    'functions', (select json_agg(concat(oid::regprocedure, ' ', proacl) order by oid) from pg_proc where pronamespace <> (select coalesce((select oid from pg_namespace where nspname = 'effectmatch'), 0))),
    'database', (select datacl::text from pg_database where datname = current_database()),
    'schemas', (select json_agg(concat(nspname, ' ', nspacl) order by oid) from pg_namespace where nspname <> 'effectmatch'),
    'languages', (select json_agg(concat(lanname, ' ', lanacl) order by oid) from pg_language),
    'tables', (select json_agg(concat(oid::regclass, ' ', relacl) order by oid) from pg_class where relkind in ('r', 'v', 'S') and relnamespace::regnamespace::text <> 'effectmatch'),
    'triggers', (select json_agg(tgname order by oid) from pg_trigger where not tgisinternal),
    'memberships', (select json_agg(concat(roleid::regrole, ' ', member::regrole) order by 1) from pg_auth_members
      -- Other tests make roles on the same server.
      where concat(roleid::regrole, ' ', member::regrole) like '%' || split_part(current_database(), '_', 2) || '%')) as rights`);
  return row?.rights as Readonly<Record<string, unknown>>;
}

test('nothing is taken from any other role, and removing leaves the rights as they were', async () => {
  await using site = await managedDatabase(SCHEMA, { relations: RELATIONS });
  const remove = async () =>
    (await planProvisioning(site.db.url(site.customer), site.options, 'remove')).apply();
  await remove();
  const before = await readRights(site.db);
  await (await planProvisioning(site.db.url(site.customer), site.options)).apply();
  const during = await readRights(site.db);
  for (const kind of ['functions', 'database', 'languages'])
    assert.deepEqual(during[kind], before[kind], kind);
  await remove();
  const after = await readRights(site.db);
  assert.deepEqual(
    { ...after, schemas: strip(after.schemas), tables: strip(after.tables) },
    { ...before, schemas: strip(before.schemas), tables: strip(before.tables) },
  );
});

test('removing keeps the markers, and what they say is known when the database is provisioned again', async () => {
  await using site = await managedDatabase(SCHEMA, { relations: RELATIONS });
  const provisionAs = async (what: 'provision' | 'remove' | 'remove-markers') =>
    (await planProvisioning(site.db.url(site.customer), site.options, what)).apply();
  const ledgers = temporaryLedgers();
  const pay = async () => {
    await using runtime = await deploy(site, ledgers);
    const proposal = await runtime.prepare({ ...TASK, effects: PAID });
    return approver(KEY).sign(proposal, { expiresIn: '10m' });
  };
  const license = await pay();
  const executeOnce = async (store = ledgers) => {
    await using runtime = await deploy(site, store);
    return await runtime.execute(license, PAY);
  };
  assert.equal((await executeOnce()).kind, 'committed');
  const left = async () =>
    await site.db.run(`select c.relname from pg_class c where c.relnamespace = to_regnamespace('effectmatch')
      and c.relkind = 'r' order by 1`);
  const ours = async () =>
    await site.db.run(
      `select rolname from pg_roles where rolname in ('${site.db.role('em_owner')}', '${site.db.role('em_control')}', '${site.db.role('em_exec')}')`,
    );
  await provisionAs('remove');
  assert.deepEqual(await left(), [{ relname: 'deployment' }, { relname: 'marker' }]);
  assert.deepEqual(await ours(), [{ rolname: site.db.role('em_owner') }]);
  const [{ grants = '' } = {}] = await site.db.run(
    `select count(*) as grants from pg_class c, aclexplode(c.relacl) a
     where a.grantee = (select oid from pg_roles where rolname = '${site.db.role('em_owner')}') and c.relnamespace <> 'effectmatch'::regnamespace`,
  );
  assert.equal(String(grants), '0');

  await provisionAs('provision');
  // Even a ledger that knows nothing of it: the marker decides.
  await site.db.run("update app.invoice set status = 'pending' where id = 1");
  const again = await executeOnce(temporaryLedgers());
  assert.ok(again.kind === 'rejected', JSON.stringify(again));
  const rows = await site.db.run('select status from app.invoice where id = 1');
  assert.deepEqual(rows, [{ status: 'pending' }]);
  await provisionAs('remove-markers');
  assert.deepEqual([await left(), await ours()], [[], []]);
});

/** An access list that was once written shows the owner's own rights, which an unwritten one implies. */
function strip(list: unknown): unknown {
  return (list as readonly string[]).map((text) => text.replace(/\{(\S+)=\w+\/\1\}$/, ''));
}
