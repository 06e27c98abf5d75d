// Goal: another application in the database keeps working while tables of it are protected, and
// nothing of the protection is left once it is removed. Method: one script that uses what
// protection is tempted to take away, run by several roles before, during and after, with equal
// results; and all rights of the database before and after.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { type PostgresOptions, planProvisioning } from '../../../../src/adapters/postgres/index.ts';
import { quoteName } from '../../../../src/postgres/identifier.ts';
import { freshDatabase, type TestDatabase } from '../../../postgres/server.ts';

/** What applications do besides reading and writing tables, with the answer of each statement. */
const SCRIPT = [
  'create temporary table scratch (id int)',
  'insert into scratch values (1)',
  'select count(*)::int as n from scratch',
  'select pg_advisory_lock(42)::text as locked',
  'select pg_advisory_unlock(42) as unlocked',
  'select pg_try_advisory_lock(43) as tried',
  'select pg_advisory_unlock_all()::text as unlocked_all',
  'listen news',
  "select pg_notify('news', 'x')::text as notified",
  "notify news, 'y'",
  "select set_config('app.user', 'bob', false) as set",
  "select current_setting('app.user') as read",
  'select lo_unlink(lo_create(0)) as unlinked',
  "select query_to_xml('select 1 as a', true, false, '')::text as xml",
  'select setseed(0.5)::text as seeded',
  'do $$ begin perform 1; end $$',
  "insert into other.thing (what) values ('x')",
  'select what, noted from other.thing order by id desc limit 1',
  'select pg_sleep(0)::text as slept',
];

const SCHEMA = `
  create schema other; create table other.thing (id serial primary key, what text, noted text);
  create function other.note() returns trigger language plpgsql as $$ begin
    new.noted := new.what || '!'; perform pg_notify('news', new.what); return new; end $$;
  create trigger note before insert on other.thing for each row execute function other.note();
  create schema app; create table app.invoice (id int primary key, status text);
  insert into app.invoice values (1, 'pending')`;

async function runScript(db: TestDatabase, role: string): Promise<readonly string[]> {
  const client = new pg.Client({ connectionString: db.url(role) });
  await client.connect();
  const answers: string[] = [];
  for (const sql of SCRIPT) {
    const answer = await client.query(sql).then(
      ({ rows }) => JSON.stringify(rows),
      (error: { code?: string }) => `failed ${error.code}`,
    );
    answers.push(`${sql}: ${answer}`);
  }
  await client.end();
  return answers;
}

/** A role of the other application. */
async function createOther(db: TestDatabase, name: string): Promise<string> {
  const role = db.role(name);
  const sql = quoteName(role);
  await db.run(`create role ${sql} login; grant usage on schema other to ${sql};
    grant select, insert on other.thing to ${sql}; grant usage on sequence other.thing_id_seq to ${sql}`);
  return role;
}

/** Every right in the database, one per line, defaults written out. */
async function readRights(db: TestDatabase): Promise<readonly string[]> {
  const acl = (
    kind: string,
    name: string,
    list: string,
    letter: string,
    owner: string,
    of: string,
  ) =>
    `select concat('${kind} ', ${name}, ': ', a.privilege_type, ' to ', case a.grantee when 0 then 'PUBLIC' else pg_get_userbyid(a.grantee) end, ' grantable ', a.is_grantable) as right
     from ${of} as o, aclexplode(coalesce(${list}, acldefault('${letter}', ${owner}))) as a`;
  const suffix = "split_part(current_database(), '_', 2)";
  const rows = await db.run(`select right_text from (
    ${acl('function', 'oid::regprocedure', 'proacl', 'f', 'proowner', 'pg_proc')} union all
    ${acl('database', 'datname', 'datacl', 'd', 'datdba', '(select * from pg_database where datname = current_database())')} union all
    ${acl('schema', 'nspname', 'nspacl', 'n', 'nspowner', "(select * from pg_namespace where nspname !~ '^pg_(toast_)?temp_')")} union all
    ${acl('language', 'lanname', 'lanacl', 'l', 'lanowner', 'pg_language')} union all
    ${acl('relation', 'oid::regclass', 'relacl', 'r', 'relowner', "(select * from pg_class where relkind in ('r', 'p', 'v', 'm', 'f'))")} union all
    ${acl('sequence', 'oid::regclass', 'relacl', 's', 'relowner', "(select * from pg_class where relkind = 'S')")} union all
    ${acl('type', 'oid::regtype', 'typacl', 'T', 'typowner', 'pg_type')} union all
    select concat('default ', defaclrole::regrole, ' ', defaclobjtype, ' ', defaclacl) from pg_default_acl union all
    select concat('setting ', setdatabase, ' ', setrole::regrole, ' ', setconfig) from pg_db_role_setting
      where setdatabase = (select oid from pg_database where datname = current_database()) union all
    select concat('owner of ', oid::regclass, ': ', relowner::regrole) from pg_class where relkind in ('r', 'p', 'v', 'm', 'f', 'S') union all
    -- Other tests make roles on the same server.
    select concat('role ', rolname) from pg_roles where rolname like '%' || ${suffix} || '%' union all
    select concat('member ', member::regrole, ' of ', roleid::regrole, ' ', admin_option) from pg_auth_members
      where member::regrole::text like '%' || ${suffix} || '%' union all
    select concat('trigger ', tgname, ' on ', tgrelid::regclass, ' ', tgenabled) from pg_trigger union all
    select concat('attribute ', attrelid::regclass, '.', attname, ' ', attacl) from pg_attribute where attacl is not null
  ) as rights (right_text) order by 1`);
  return rows.map(({ right_text }) => String(right_text));
}

for (const boundary of ['server', 'managed'] as const)
  test(`${boundary}: another application runs as before, and removing leaves every right as it was`, async () => {
    await using db = await freshDatabase();
    await db.run(SCHEMA);
    const options: PostgresOptions = {
      boundary,
      owner: db.role('em_owner'),
      control: db.url(db.role('em_control')),
      execution: db.url(db.role('em_exec')),
      relations: ['app.invoice'],
    };
    const others = db.role('em_others');
    const ordinary = await createOther(db, 'ordinary');
    const owner = await createOther(db, 'app_owner');
    // The owner of everything, with a SECURITY DEFINER function that no operation reaches.
    await db.run(`alter schema app owner to ${quoteName(owner)}; alter schema other owner to ${quoteName(owner)};
      alter table app.invoice owner to ${quoteName(owner)}; alter table other.thing owner to ${quoteName(owner)};
      alter function other.note owner to ${quoteName(owner)};
      create function other.admin() returns void language plpgsql security definer set search_path = other as
        $$ begin perform pg_notify('news', 'z'); end $$;
      alter function other.admin owner to ${quoteName(owner)}; revoke all on function other.admin from public`);
    const rights = await readRights(db);
    const before = await runScript(db, ordinary);
    assert.deepEqual(await runScript(db, owner), before);
    assert.deepEqual(
      before.filter((answer) => answer.includes('failed')),
      [],
    );

    const plan = await planProvisioning(db.url(), options);
    assert.deepEqual(
      plan.changes?.filter(({ keeps }) => !keeps) ?? [],
      [],
      'no login is told that it loses anything',
    );
    const [, meanwhile] = await Promise.all([plan.apply(), runScript(db, ordinary)]);
    assert.deepEqual(meanwhile, before, 'while the database is provisioned');
    assert.deepEqual(await runScript(db, owner), before, 'the owner');
    const later = await createOther(db, 'later');
    if (boundary === 'server') await db.run(`grant ${quoteName(others)} to ${quoteName(later)}`);
    assert.deepEqual(await runScript(db, ordinary), before, 'a role that was there');
    assert.deepEqual(await runScript(db, later), before, 'a role made later');
    await (await planProvisioning(db.url(), options)).apply();
    assert.deepEqual(await runScript(db, ordinary), before, 'after provisioning again');

    await (await planProvisioning(db.url(), options, 'remove')).apply();
    assert.deepEqual(await runScript(db, ordinary), before, 'after removing');
    assert.deepEqual(await runScript(db, owner), before, 'the owner, after removing');
    assert.deepEqual(await runScript(db, later), before, 'a role made later, after removing');
    await db.run(`drop owned by ${quoteName(later)}; drop role ${quoteName(later)}`);
    assert.deepEqual(await readRights(db), rights);
  });

test('server: a role whose rights operations borrow loses them, and a dry run says so before', async () => {
  await using db = await freshDatabase();
  await db.run(SCHEMA);
  const [owner, ordinary] = [await createOther(db, 'lender'), await createOther(db, 'ordinary')];
  await db.run(`create function app.pay() returns void language sql security definer set search_path = app as
      $$ update invoice set status = 'paid' $$;
    alter function app.pay owner to ${quoteName(owner)}; grant usage on schema app to ${quoteName(owner)};
    grant update on app.invoice to ${quoteName(owner)}`);
  const options: PostgresOptions = {
    owner: db.role('em_owner'),
    control: db.url(db.role('em_control')),
    execution: db.url(db.role('em_exec')),
    relations: ['app.invoice'],
    entryPoints: ['app.pay'],
  };
  const rights = await readRights(db);
  const plan = await planProvisioning(db.url(), options);
  const changed = (await plan.rehearse?.()) ?? [];
  const changeOf = (login: string) => changed.find((change) => change.login === login);
  assert.deepEqual(await readRights(db), rights, 'a dry run changes nothing');
  assert.deepEqual(changeOf(ordinary), {
    login: ordinary,
    loses: ['EXECUTE ON FUNCTION app.pay()'],
    gains: [],
  });
  const lost = changeOf(owner)?.loses ?? [];
  assert.ok(lost.includes('EXECUTE ON FUNCTION pg_notify(text,text)'), String(lost));
  assert.ok(lost.includes('TEMPORARY ON DATABASE'));
  assert.deepEqual(
    plan.changes?.map(({ login, keeps }) => [login, keeps]).sort(),
    [
      [owner, false],
      [ordinary, true],
    ].sort(),
  );
  await plan.apply();
  const [row] = await db.run(
    `select has_function_privilege('${owner}', 'pg_notify(text, text)', 'execute') as lender,
       has_function_privilege('${ordinary}', 'pg_notify(text, text)', 'execute') as ordinary`,
  );
  assert.deepEqual(row, { lender: false, ordinary: true });
});
