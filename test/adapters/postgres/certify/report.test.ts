// Goal: a certificate means the same on every server that is set up alike, and the report says what
// is missing. Method: two servers of one version with the same set-up; declared restrictions
// changed; a control login without grants.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startServer } from '../../../postgres/server.ts';
import { openSite } from './site.ts';

test('the same configuration has the same digests on two servers, and a change shows in the right one', async () => {
  await using first = await startServer();
  await using second = await startServer();
  await using one = await openSite({ server: first, fixedNames: true });
  // Other object ids on the second server.
  await using other = await second.createDatabase();
  await other.run('create table shifts_object_ids (id int primary key)');
  await using two = await openSite({ server: second, fixedNames: true });
  const [a, b] = [await one.survey(), await two.survey()];
  assert.deepEqual(b, a);
  assert.equal(
    (await one.survey({ restrictions: ['another firewall'] })).configuration,
    a.configuration,
  );
  assert.notEqual(
    (await one.survey({ restrictions: ['another firewall'] })).enforcement,
    a.enforcement,
  );
  await two.apply([`comment on table app.hidden is 'no matter'`]);
  assert.equal((await two.survey()).configuration, a.configuration);
  await two.apply(['alter table app.hidden add column more int']);
  assert.notEqual((await two.survey()).configuration, a.configuration);
  await two.apply(['alter role {exec} connection limit 3']);
  assert.notEqual((await two.survey()).credentials, a.credentials);
});

test('a problem names object, reason and statement, and the survey what only the deployment can promise', async () => {
  await using site = await openSite();
  await site.apply(['grant temporary on database {db} to public']);
  const { problems, declared } = await site.survey();
  assert.equal(problems.length, 1);
  const [{ outlet, object, why, fix } = { outlet: '', object: '', why: '', fix: [] }] = problems;
  assert.match(outlet, /^TEMPORARY ON DATABASE/);
  assert.equal(object, site.db.name);
  assert.match(why, /may create temporary tables/);
  assert.deepEqual(fix, [`REVOKE TEMPORARY ON DATABASE ${site.db.name} FROM PUBLIC`]);
  assert.deepEqual(declared, ['no outbound network from the database host']);
});

test('a function that was read by a person passes until it changes', async () => {
  await using site = await openSite();
  const dynamic = (table: string) =>
    `create or replace function app.on_paid() returns trigger language plpgsql as $$ begin execute format('insert into app.%I (body) values ($1)', '${table}') using new.id; return null; end $$`;
  await site.apply([dynamic('note')]);
  const [problem] = (await site.survey()).problems;
  const digest = /digest ([0-9a-f]{32})/.exec(problem?.why ?? '')?.[1] ?? '';
  const reviews = [{ function: 'app.on_paid()', digest, by: 'dba@example.com' }];
  assert.deepEqual((await site.survey({ reviews })).problems, []);
  await site.apply([dynamic('hidden')]);
  assert.equal((await site.survey({ reviews })).problems.length, 1);
});

test('a clone of a certified database gives TEMP to everybody again, and the survey says so', async () => {
  await using site = await openSite();
  await site.control.close();
  await using server = await startServer();
  await using original = await openSite({ server, fixedNames: true });
  await original.control.close();
  await using clone = await server.createDatabase('clone', { template: original.db.name });
  const [row] = await clone.run(
    `select has_database_privilege('em_exec', 'clone', 'TEMP') as temp`,
  );
  assert.equal(row?.temp, true);
});
