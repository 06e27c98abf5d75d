// Goal: provisioning does what its login may do, says what it may not, and leaves owners able to
// run their tables; a deadlock with a vacuum does not end it. Method: a database owner without
// superuser on a real server, the same database closed by a superuser afterwards, and a session that
// holds what a vacuum holds.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import { planProvisioning, postgres } from '../../../src/adapters/postgres/index.ts';
import { systemClock } from '../../../src/contract/clock.ts';
import { unobserved } from '../../../src/contract/steps.ts';
import { unclassified } from '../../../src/protocol/boundary.ts';
import { freshDatabase } from '../../postgres/server.ts';

test('an owner without superuser provisions what it can, and the survey names what is left for a superuser', async () => {
  await using db = await freshDatabase();
  const owner = db.role('app_owner');
  await db.run(
    `create role "${owner}" login createrole; alter database "${db.name}" owner to "${owner}"`,
  );
  await db.run(`set session authorization "${owner}"; create schema app; create table app.invoice (id int primary key, status text);
    create table app.event (at date not null, what text) partition by range (at);
    create table app.event_1 partition of app.event for values from ('2026-01-01') to ('2027-01-01')`);
  const options = {
    owner: db.role('em_owner'),
    control: db.url(db.role('em_control')),
    execution: db.url(db.role('em_exec')),
    relations: ['app.invoice', 'app.event'],
  };
  const provisioning = await planProvisioning(db.url(owner), options);
  const leftOut = await provisioning.apply();
  assert.ok(leftOut.length > 0, 'built-in functions belong to the superuser');
  assert.ok(leftOut.every(({ needs }) => needs.endsWith('superuser')));
  assert.deepEqual(await provisioning.apply(), leftOut, 'it can be repeated');

  // The control login cannot read the versions of roles yet, and says which right it lacks and who
  // can give it.
  await assert.rejects(open(), {
    code: 'ERR_EM_ADAPTER_REFUSED',
    message:
      /a superuser .* run `effectmatch provision`, or set boundary: 'managed' .*(pg_authid|pg_user_mapping|pg_subscription)/,
  });

  const closing = await planProvisioning(db.url(), options);
  assert.deepEqual(await closing.apply(), []);
  const adapter = await open();
  assert.deepEqual(unclassified(await adapter.survey()), []);

  await db.run(`set session authorization "${owner}";
    create table app.event_2 partition of app.event for values from ('2027-01-01') to ('2028-01-01');
    create table app.event_3 (what text, at date not null);
    alter table app.event attach partition app.event_3 for values from ('2028-01-01') to ('2029-01-01')`);
  const [recorders] = await db.run(
    `select count(*)::int as n from pg_trigger where tgname = 'effectmatch_record' and tgrelid::regclass::text like '%event_%'`,
  );
  assert.equal(recorders?.n, 3, 'every partition has its recorder, whoever added it');
  await adapter.close();

  function open() {
    return postgres(options).open({ name: 'books', clock: systemClock, reached: unobserved });
  }
});

test('a provisioning that is the victim of a deadlock starts again', async () => {
  await using db = await freshDatabase();
  await db.run('create table account (id int primary key)');
  const plan = await planProvisioning(db.url(), {
    owner: db.role('em_owner'),
    control: db.url(db.role('em_control')),
    execution: db.url(db.role('em_exec')),
    relations: ['account'],
  });
  // A vacuum holds this lock while it waits for the table's row in pg_class.
  const vacuum = new pg.Client({ connectionString: db.url() });
  await vacuum.connect();
  await vacuum.query(`set deadlock_timeout = '1h'`);
  await vacuum.query('begin; lock table account in share update exclusive mode');

  const done: string[] = [];
  const applied = plan.apply((statement) => done.push(statement));
  const waiting = () =>
    db.run(`select from pg_stat_activity where application_name = 'effectmatch provision'
      and datname = current_database() and wait_event_type = 'Lock'`);
  while ((await waiting()).length === 0) await setTimeout(10);
  await vacuum.query('grant select on account to public; commit');
  await vacuum.end();

  assert.deepEqual(await applied, []);
  const recorders = await db.run(`select from pg_trigger where tgname = 'effectmatch_record'`);
  assert.ok(recorders.length > 0);
  assert.equal(done.filter((statement) => statement === done[0]).length, 2, 'it began twice');
});
