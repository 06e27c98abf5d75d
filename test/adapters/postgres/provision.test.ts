// Goal: provisioning does what its login may do, says what it may not, and leaves owners able to
// run their tables. Method: a database owner without superuser on a real server, and the same
// database closed by a superuser afterwards.
import assert from 'node:assert/strict';
import { test } from 'node:test';
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
