// Goal: approvals may depend on rows of tables with row security, and no policy decides what
// trusted logins read. Method: policies that hide, write or signal; provisioned with and without a
// superuser, on a real server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planProvisioning } from '../../../src/adapters/postgres/index.ts';
import { row, update } from '../../../src/index.ts';
import { type ProtectedDatabase, protectedDatabase } from '../../postgres/protected.ts';
import { runApproved, tellEnd } from './approve.ts';

const SCHEMA = `
  create table invoice (id integer primary key, status text not null);
  create table vendor (id integer primary key, blocked boolean not null);
  insert into invoice values (1, 'pending');
  insert into vendor values (7, false), (8, true);
  alter table invoice enable row level security;
  create policy pending on invoice using (status in ('pending', 'paid'));
  alter table vendor enable row level security;
  alter table vendor force row level security;
  create policy closed on vendor using (false);`;
const REGISTERED = { relations: ['invoice'], reads: ['vendor'] };

const PAY = {
  effects: [update('invoice', { id: 1 }, { status: ['pending', 'paid'] })],
  action: { sql: "update invoice set status = 'paid' where id = 1" },
};
const DEPENDS = {
  requires: [
    row('invoice', { id: 1 }, { status: 'pending' }),
    row('vendor', { id: 7 }, { blocked: false }),
  ],
};

test('an approval that depends on rows with row security commits', async () => {
  await using place = await protectedDatabase(SCHEMA, REGISTERED);
  assert.equal(tellEnd(await runApproved(place, { ...PAY, ...DEPENDS })), 'committed');
});

test('it is refused when such a row is not as the approval requires', async () => {
  await using place = await protectedDatabase(SCHEMA, REGISTERED);
  const requires = [row('vendor', { id: 8 }, { blocked: false })];
  await assert.rejects(
    runApproved(place, { ...PAY, requires }),
    /vendor .*must be .*it is {"blocked":true}/,
  );
});

test('agents see what the policies let them see', async () => {
  await using place = await protectedDatabase(SCHEMA, REGISTERED);
  await place.db.run('drop policy pending on invoice; create policy none on invoice using (false)');
  assert.match(tellEnd(await runApproved(place, PAY)), /^rejected at comparison \(DIVERGED\)/);
});

async function takeAway({ db }: ProtectedDatabase): Promise<void> {
  for (const role of ['em_control', 'em_owner'])
    await db.run(`alter role "${db.role(role)}" nobypassrls`);
}

for (const what of ['requires', 'watch'] as const) {
  test(`without the right to read past policies, ${what} is refused before anything is signed`, async () => {
    await using place = await protectedDatabase(SCHEMA, REGISTERED);
    await takeAway(place);
    const depends =
      what === 'requires'
        ? { requires: [row('vendor', { id: 7 }, { blocked: false })] }
        : { watch: [{ target: 'vendor', key: { id: 7 } }] };
    await assert.rejects(runApproved(place, { ...PAY, ...depends }), {
      code: 'ERR_EM_MANIFEST_INVALID',
      message:
        /vendor.* has row security.*ALTER ROLE "em_control_\w+" BYPASSRLS; ALTER ROLE "em_owner_\w+" BYPASSRLS/,
    });
    assert.equal(tellEnd(await runApproved(place, PAY)), 'committed');
  });
}

test('provisioning asks for this right where a table has row security, and nowhere else', async () => {
  await using place = await protectedDatabase(SCHEMA, REGISTERED);
  const asked = async () =>
    (await planProvisioning(place.db.url(), place.options)).print().match(/ bypassrls;$/gm);
  assert.equal((await asked())?.length, 2);
  await place.db.run('alter table vendor disable row level security');
  assert.equal((await asked())?.length, 2);
  await place.db.run('alter table invoice disable row level security');
  assert.equal(await asked(), null);
});
