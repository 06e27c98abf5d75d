import type { EscapeCase } from '../case.ts';
import { boundary, drifted, opened, PAID, PAY } from './shop.ts';

export const OPENED: readonly EscapeCase[] = [
  opened('grant temporary on database {db} to public', 'TEMPORARY'),
  opened('grant pg_write_server_files to {exec}', 'pg_write_server_files'),
  opened('grant pg_execute_server_program to {exec}', 'pg_execute_server_program'),
  opened('alter role {exec} superuser', 'SUPERUSER'),
  opened('alter role {exec} replication', 'REPLICATION'),
  opened('grant {app} to {exec}', 'membership'),
  opened('grant insert on app.hidden to {exec}', 'app.hidden'),
  opened('grant insert on app.hidden to public', 'app.hidden'),
  opened('grant execute on function pg_catalog.pg_notify(text, text) to {exec}', 'pg_notify'),
  opened('grant execute on function pg_catalog.pg_read_file(text) to public', 'pg_read_file'),
  opened('grant execute on function pg_catalog.lo_export(oid, text) to {exec}', 'lo_export'),
  opened('create extension dblink schema app; grant usage on schema app to public', 'dblink'),
  opened(
    'create extension postgres_fdw; create server elsewhere foreign data wrapper postgres_fdw; create foreign table app.far (id int) server elsewhere; grant insert on app.far to {exec}',
    'app.far',
  ),
  opened(`create function app.f() returns int language sql as 'select 1'`, 'app.f()'),
  opened('alter function app.act() security definer', 'app.act()'),
  opened(
    'alter function app.act() owner to postgres; alter function app.act() security definer set search_path = app',
    'superuser',
  ),
  opened('alter function app.act() set session_replication_role = replica', 'session_replication_role'),
  opened('alter role {exec} set synchronous_commit = off', 'synchronous_commit'),
  opened('alter database {db} set session_replication_role = replica', 'session_replication_role'),
  opened('alter role {exec} set search_path = app', 'search_path'),
  opened('grant set on parameter session_replication_role to {exec}', 'session_replication_role', {
    cleanup: 'revoke set on parameter session_replication_role from {exec}',
  }),
  opened('alter table app.invoice disable trigger effectmatch_record', 'effectmatch_record'),
  opened('alter table app.invoice enable trigger effectmatch_record', 'effectmatch_record'),
  opened('drop trigger effectmatch_record on app.invoice', 'effectmatch_record'),
  opened('grant usage on language plpgsql to public', 'LANGUAGE'),
  opened('alter schema effectmatch owner to {app}', 'effectmatch', {
    expectation: { kind: 'refused', code: 'ERR_EM_ADAPTER_UNAVAILABLE' },
  }),
  opened('grant select on effectmatch.deployment to {exec}', 'effectmatch.deployment'),
  opened(
    `create or replace function effectmatch.record_row() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as 'begin return null; end'`,
    'record_row',
    { expectation: { kind: 'refused', code: 'ERR_EM_ADAPTER_REFUSED' } },
  ),
  opened('create table app.child () inherits (app.bag)', '', {
    expectation: { kind: 'refused', code: 'ERR_EM_ADAPTER_REFUSED' },
  }),
  opened('create rule r as on update to app.invoice do also delete from app.bag', '', {
    expectation: { kind: 'refused', code: 'ERR_EM_ADAPTER_REFUSED' },
  }),
  opened('alter table app.bag set unlogged', '', { expectation: { kind: 'refused', code: 'ERR_EM_ADAPTER_REFUSED' } }),
  opened(
    `create function app.login() returns event_trigger language plpgsql as 'begin end'; revoke execute on function app.login() from public; create event trigger at_login on login execute function app.login()`,
    'at_login',
    { from: 17 },
  ),
  opened(
    `create function app.lie(app.bag) returns text language sql immutable as $$ select '' $$; revoke execute on function app.lie(app.bag) from public; create cast (app.bag as text) with function app.lie(app.bag)`,
    'cast',
  ),
];

export const DRIFTED: readonly EscapeCase[] = [
  drifted('grant temporary on database {db} to public'),
  drifted('grant temporary on database {db} to public; revoke temporary on database {db} from public'),
  drifted('grant pg_execute_server_program to {exec}'),
  drifted('grant pg_execute_server_program to {exec}; revoke pg_execute_server_program from {exec}'),
  drifted('alter role {exec} set synchronous_commit = off'),
  drifted('alter role {exec} set synchronous_commit = off; alter role {exec} reset synchronous_commit'),
  drifted('grant execute on function app.act() to public'),
  drifted('alter function app.act() set search_path = app'),
  drifted('alter function app.act() set search_path = app; alter function app.act() reset search_path'),
  drifted('grant insert on app.hidden to {exec}'),
  drifted('grant execute on function pg_catalog.pg_notify(text, text) to public'),
  drifted(`create function app.gone() returns int language sql as 'select 1'; drop function app.gone()`),
  drifted('create extension dblink schema public'),
  drifted(
    'alter table app.bag disable trigger effectmatch_record; alter table app.bag enable always trigger effectmatch_record',
  ),
  {
    name: 'after approval: TEMP granted',
    approvedThen: 'grant temporary on database {db} to public',
    action: PAY,
    approved: PAID,
    expectation: boundary('TEMPORARY'),
  },
];
