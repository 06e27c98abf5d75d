import type { EscapeCase } from '../case.ts';
import { ACT, boundary, drifted, opened, PAID, PAY } from './shop.ts';

/** Behind the managed boundary the statement gate closes what these leave open. */
const GATED = { managedCommits: true } as const;

/** The same payment by a statement that reaches what is open: others are not refused for it. */
const payBy = (condition: string) => ({ action: { sql: `${PAY.sql} and ${condition}` } });

export const OPENED: readonly EscapeCase[] = [
  opened('grant temporary on database {db} to public', 'TEMPORARY', GATED),
  opened('grant pg_write_server_files to {exec}', 'pg_write_server_files'),
  opened('grant pg_execute_server_program to {exec}', 'pg_execute_server_program'),
  opened('alter role {exec} superuser', 'SUPERUSER'),
  opened('alter role {exec} replication', 'REPLICATION'),
  opened('grant {app} to {exec}', 'membership'),
  opened(
    'grant insert on app.hidden to {exec}',
    'app.hidden',
    payBy('not exists (select from app.hidden)'),
  ),
  opened(
    'grant insert on app.hidden to public',
    'app.hidden',
    payBy('not exists (select from app.hidden)'),
  ),
  opened(
    'grant execute on function pg_catalog.pg_notify(text, text) to {exec}',
    'pg_notify',
    GATED,
  ),
  opened(
    'grant execute on function pg_catalog.pg_read_file(text) to public',
    'pg_read_file',
    GATED,
  ),
  opened('grant execute on function pg_catalog.lo_export(oid, text) to {exec}', 'lo_export', GATED),
  opened(
    'create extension dblink schema app; grant usage on schema app to public',
    'dblink',
    // A name in a string counts as a call. The gate reads the statement, and there is none.
    { ...payBy("status <> 'dblink'"), ...GATED },
  ),
  opened(
    'create extension postgres_fdw; create server elsewhere foreign data wrapper postgres_fdw; create foreign table app.far (id int) server elsewhere; grant insert on app.far to {exec}',
    'app.far',
    payBy('not exists (select from app.far)'),
  ),
  opened(
    `create function app.f() returns int language sql as 'select 1'`,
    'app.f()',
    payBy('app.f() = 1'),
  ),
  opened('alter function app.act() security definer', 'app.act()', { action: ACT }),
  opened(
    'alter function app.act() owner to postgres; alter function app.act() security definer set search_path = app',
    'superuser',
    { action: ACT },
  ),
  opened(
    'alter function app.act() set session_replication_role = replica',
    'session_replication_role',
    { action: ACT },
  ),
  opened('alter role {exec} set synchronous_commit = off', 'synchronous_commit'),
  opened('alter database {db} set session_replication_role = replica', 'session_replication_role'),
  opened('alter role {exec} set search_path = app, pg_catalog', 'before pg_catalog'),
  opened('grant set on parameter session_replication_role to {exec}', 'session_replication_role', {
    cleanup: 'revoke set on parameter session_replication_role from {exec}',
  }),
  opened('alter table app.invoice disable trigger effectmatch_record', 'effectmatch_record'),
  opened('alter table app.invoice enable trigger effectmatch_record', 'effectmatch_record'),
  opened('drop trigger effectmatch_record on app.invoice', 'effectmatch_record'),
  opened('grant usage on language plpgsql to public', 'LANGUAGE', GATED),
  opened('alter schema effectmatch owner to {app}', 'effectmatch', {
    expectation: { kind: 'refused', code: 'ERR_EM_ADAPTER_UNAVAILABLE', because: 'effectmatch' },
  }),
  opened('grant select on effectmatch.deployment to {exec}', 'effectmatch.deployment'),
  opened(
    `create or replace function effectmatch.record_row() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as 'begin return null; end'`,
    'record_row',
    {
      expectation: {
        kind: 'refused',
        code: 'ERR_EM_ADAPTER_REFUSED',
        because: 'observes-own-write',
      },
    },
  ),
  opened('create table app.child () inherits (app.bag)', '', {
    expectation: { kind: 'refused', code: 'ERR_EM_ADAPTER_REFUSED', because: 'inherit' },
  }),
  opened('create rule r as on update to app.invoice do also delete from app.bag', '', {
    expectation: { kind: 'refused', code: 'ERR_EM_ADAPTER_REFUSED', because: 'rule' },
  }),
  opened('alter table app.bag set unlogged', '', {
    expectation: { kind: 'refused', code: 'ERR_EM_ADAPTER_REFUSED', because: 'unlogged' },
  }),
  opened(
    `create function app.login() returns event_trigger language plpgsql as 'begin end'; revoke execute on function app.login() from public; create event trigger at_login on login execute function app.login()`,
    'at_login',
    { since: 17 },
  ),
  opened(
    `create function app.lie(app.bag) returns text language sql immutable as $$ select '' $$; revoke execute on function app.lie(app.bag) from public; create cast (app.bag as text) with function app.lie(app.bag)`,
    'cast',
  ),
];

/**
 * Each says what the gate must name: the object, and where there is a before and an after, both.
 */
export const DRIFTED: readonly EscapeCase[] = [
  drifted(
    'grant temporary on database {db} to public',
    'for PUBLIC granted by postgres: not there → there',
  ),
  drifted(
    'grant temporary on database {db} to public; revoke temporary on database {db} from public',
    'its row in pg_database was written',
  ),
  drifted(
    'grant pg_execute_server_program to {exec}',
    'in pg_execute_server_program granted by postgres: not there → there',
  ),
  drifted(
    'alter role {exec} set synchronous_commit = off',
    'setting synchronous_commit of em_exec',
  ),
  drifted(
    'grant execute on function app.act() to public',
    'EXECUTE ON FUNCTION app.act() for PUBLIC',
  ),
  drifted(
    'alter function app.act() set search_path = app',
    'function app.act(): config null → ["search_path=app"]',
  ),
  drifted(
    'alter function app.act() set search_path = app; alter function app.act() reset search_path',
    'function app.act(): its row in pg_proc was written',
  ),
  drifted('grant insert on app.hidden to {exec}', 'INSERT ON TABLE app.hidden for em_exec'),
  drifted(
    'grant execute on function pg_catalog.pg_notify(text, text) to public',
    'function pg_notify(text,text): its row in pg_proc was written',
  ),
  drifted(
    `create function app.gone() returns int language sql as 'select 1'; drop function app.gone()`,
    'rows of pg_proc were written and taken back',
  ),
  drifted('create extension dblink schema public', 'extension dblink: not there → there'),
  drifted(
    'alter table app.bag disable trigger effectmatch_record; alter table app.bag enable always trigger effectmatch_record',
    'trigger effectmatch_record on table app.bag: its row in pg_trigger was written',
  ),
  drifted(
    'alter table app.bag disable trigger effectmatch_record',
    'trigger effectmatch_record on app.bag: enabled "A" → "D"',
  ),
  drifted('alter role {exec} createdb', 'createdb false → true'),
  drifted(
    'alter table app.hidden add column more int',
    'column more of app.hidden: not there → there',
  ),
  drifted(`alter database {db} set work_mem = '8MB'`, 'setting work_mem of all roles'),
  drifted('select pg_reload_conf(); select pg_sleep(0.1)', 'read its configuration files again'),
  // The stated limit: what was added to a catalogue of the whole server and removed again leaves no
  // version.
  drifted(
    'grant pg_execute_server_program to {exec}; revoke pg_execute_server_program from {exec}',
    '',
    {
      name: 'limit: a membership that came and went while held leaves no trace, and no effect',
      expectation: { kind: 'committed' },
    },
  ),
  drifted(
    'alter role {exec} set synchronous_commit = off; alter role {exec} reset synchronous_commit',
    '',
    {
      name: 'limit: a setting of a role that came and went while held leaves no trace, and no effect',
      expectation: { kind: 'committed' },
    },
  ),
  {
    name: 'after approval: TEMP granted',
    approvedThen: 'grant temporary on database {db} to public',
    action: PAY,
    approved: PAID,
    expectation: boundary('TEMPORARY'),
    ...GATED,
  },
];
