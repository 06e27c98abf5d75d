// Goal: a search path stored on a role or database decides what names mean to the application, and
// nothing else. Method: paths on every place that can have one, honest and hostile, through the
// whole runtime on a real server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planProvisioning } from '../../../src/adapters/postgres/index.ts';
import { update } from '../../../src/index.ts';
import { type ProtectedDatabase, protectedDatabase } from '../../postgres/protected.ts';
import { startServer } from '../../postgres/server.ts';
import { openBoundary, runApproved, tellEnd } from './approve.ts';

const SCHEMA = `
  create schema billing;
  create table billing.invoice (id integer primary key, status text not null);
  insert into billing.invoice values (1, 'pending');`;

/** Answers for the system's operators, and remembers whose rights it had. */
const LIAR = `
  create schema liar;
  create table liar.heard (who name);
  create function liar.says(text, text) returns boolean language plpgsql security definer
    set search_path = liar, pg_temp as $$ begin insert into heard values (session_user); return true; end $$;
  create operator liar.= (function = liar.says, leftarg = text, rightarg = text);
  create function liar.divides(integer, integer) returns integer language plpgsql security definer
    set search_path = liar, pg_temp as $$ begin insert into heard values (session_user); return 1; end $$;
  create operator liar./ (function = liar.divides, leftarg = integer, rightarg = integer);
  grant usage on schema liar to public;`;

const PAY = {
  effects: [update('billing.invoice', { id: 1 }, { status: ['pending', 'paid'] })],
  action: { sql: "update invoice set status = 'paid' where id = 1" },
};
const REGISTERED = { relations: ['billing.invoice'] };

/** New sessions have the path that is stored now; the old ones of the runtime are ended. */
const endSessions = ({ db }: ProtectedDatabase) =>
  db.run(`select pg_terminate_backend(pid, 5000) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`);

/**
 * What the functions and operators of the application were asked, and whether the row is as it was.
 */
async function assertUntouched({ db }: ProtectedDatabase): Promise<void> {
  assert.deepEqual(await db.run('select who from liar.heard'), []);
  assert.deepEqual(await db.run('select status from billing.invoice'), [{ status: 'pending' }]);
}

/** Everywhere a session of the execution login can get a path from. */
const PLACES: Readonly<Record<string, (place: ProtectedDatabase) => string>> = {
  'the execution login': ({ db }) => `role "${db.role('em_exec')}"`,
  'the execution login in this database': ({ db }) =>
    `role "${db.role('em_exec')}" in database "${db.name}"`,
  'the database': ({ db }) => `database "${db.name}"`,
};

for (const [what, name] of Object.entries(PLACES)) {
  test(`a search path of ${what} is in force for agents, and the operation commits`, async () => {
    await using place = await protectedDatabase(SCHEMA, REGISTERED);
    await place.db.run(`alter ${name(place)} set search_path = billing, public`);
    assert.equal(tellEnd(await runApproved(place, PAY)), 'committed');
  });

  test(`a search path of ${what} with others before pg_catalog is refused with what to do`, async () => {
    await using place = await protectedDatabase(SCHEMA, REGISTERED);
    const divert = async () => {
      await place.db.run(
        `${LIAR} alter ${name(place)} set search_path = liar, pg_catalog, billing`,
      );
      await endSessions(place);
    };
    const end = tellEnd(await runApproved(place, PAY, divert));
    assert.match(
      end,
      /^rejected at boundary .*setting search_path of .*before pg_catalog.*SET search_path = /s,
    );
    await assertUntouched(place);
    await assert.rejects(
      runApproved(place, PAY),
      openBoundary(/setting search_path of .*before pg_catalog/s),
    );
    await assertUntouched(place);
    const fix = /(ALTER (?:ROLE|DATABASE) [^;]* SET search_path = [^;]*)/.exec(end)?.[1] ?? '';
    await place.db.run(`drop schema liar cascade; ${fix}`);
    assert.equal(tellEnd(await runApproved(place, PAY)), 'committed');
  });
}

test('a search path of the whole server with others before pg_catalog is refused with what to do', async () => {
  await using server = await startServer();
  await using place = await protectedDatabase(SCHEMA, REGISTERED, {
    db: await server.createDatabase(),
  });
  const divert = async () => {
    await place.db.run(LIAR);
    await place.db.run('alter system set search_path = liar, pg_catalog, billing');
    await server.restart();
  };
  const end = tellEnd(await runApproved(place, PAY, divert));
  assert.match(
    end,
    /^rejected at boundary .*setting search_path of the server.*ALTER SYSTEM SET search_path = liar/s,
  );
  await assertUntouched(place);
  await assert.rejects(runApproved(place, PAY), openBoundary(/setting search_path of the server/));
  await assertUntouched(place);
  const [, fix = '', reload = ''] =
    /(ALTER SYSTEM SET [^;]*); (SELECT pg_catalog\.pg_reload_conf\(\))/.exec(end) ?? [];
  await place.db.run('drop schema liar cascade');
  await place.db.run(fix);
  await place.db.run(reload);
  assert.equal(tellEnd(await runApproved(place, PAY)), 'committed');
});

test('a search path of the control login has no effect on what it reads', async () => {
  await using place = await protectedDatabase(SCHEMA, REGISTERED);
  const control = `"${place.db.role('em_control')}"`;
  const operation = {
    ...PAY,
    action: { sql: "update billing.invoice set status = 'paid' where id = 1" },
  };
  const divert = async () => {
    await place.db.run(`${LIAR} alter role ${control} set search_path = liar, pg_catalog;
      drop operator liar./ (integer, integer);
      revoke execute on all functions in schema liar from public;
      grant execute on all functions in schema liar to ${control}`);
    await endSessions(place);
  };
  const end = tellEnd(await runApproved(place, operation, divert));
  assert.match(end, /^rejected at boundary .*SECURITY DEFINER function liar\.says/s);
  await assertUntouched(place);
  await assert.rejects(
    runApproved(place, operation),
    openBoundary(/SECURITY DEFINER function liar\.says/),
  );
  await assertUntouched(place);
});

test('an operation commits where the search path of the control login has operators that would fail it', async () => {
  await using place = await protectedDatabase(SCHEMA, REGISTERED);
  const control = `"${place.db.role('em_control')}"`;
  await place.db.run(`create schema liar;
    create function liar.fails(text, text) returns boolean language plpgsql
      as $$ begin raise exception 'asked'; end $$;
    create operator liar.= (function = liar.fails, leftarg = text, rightarg = text);
    revoke execute on function liar.fails(text, text) from public;
    grant usage on schema liar to ${control};
    grant execute on function liar.fails(text, text) to ${control};
    alter role ${control} set search_path = liar, pg_catalog`);
  const operation = {
    ...PAY,
    action: { sql: "update billing.invoice set status = 'paid' where id = 1" },
  };
  assert.equal(tellEnd(await runApproved(place, operation)), 'committed');
});

test('a search path of the database does not choose what the names of an administrator mean', async () => {
  await using place = await protectedDatabase(SCHEMA + LIAR, REGISTERED);
  await place.db.run(`
    create function liar.same(name, name) returns boolean language plpgsql
      as $$ begin insert into liar.heard values (current_user); return true; end $$;
    create operator liar.= (function = liar.same, leftarg = name, rightarg = name);
    alter database "${place.db.name}" set search_path = liar, pg_catalog`);
  await (await planProvisioning(place.db.url(), place.options)).apply();
  await place.db.run(`alter database "${place.db.name}" reset search_path`);
  assert.deepEqual(await place.db.run('select who from liar.heard'), []);
});
