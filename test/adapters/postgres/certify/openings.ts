/**
 * One way to open a closed boundary: SQL as superuser, and the outlet that must then be reported.
 */
export interface Opening {
  readonly name: string;
  readonly sql: string;
  readonly outlet: RegExp;
  /** Would hide or undo another opening: tried by itself. */
  readonly alone?: true;
  /** Restores what the fix took away from later tests. */
  readonly undo?: string;
  /** Only from this server version on. */
  readonly from?: number;
}

const fn = (name: string, body: string, more = '') =>
  `create function app.${name}() returns trigger language plpgsql ${more} as $$ begin ${body}; return null; end $$; alter function app.${name}() owner to {app}; revoke execute on function app.${name}() from public`;
const onInvoice = (name: string) =>
  `create trigger ${name} after update on app.invoice for each row execute function app.${name}()`;
const entry = (name: string, body: string, more = '') =>
  `create function app.${name}() returns void language plpgsql ${more} as $$ begin ${body}; end $$; alter function app.${name}() owner to {app}; revoke execute on function app.${name}() from public`;

/** An immutable function that calls one that writes. */
const later = (name: string) =>
  `create function app.writes_${name}() returns void language plpgsql as $$ begin insert into app.hidden values (1, 'x'); end $$;
  revoke execute on function app.writes_${name}() from public;
  create function app.later_${name}(text) returns text language plpgsql immutable as $$ begin perform app.writes_${name}(); return $1; end $$;
  alter function app.writes_${name}() owner to {app}; alter function app.later_${name}(text) owner to {app}`;

/**
 * Each of these was tried against a closed database. `{exec}`, `{owner}`, `{app}`, `{control}`,
 * `{db}` are quoted names.
 */
export const OPENINGS: readonly Opening[] = [
  {
    name: 'superuser',
    alone: true,
    sql: 'alter role {exec} superuser',
    outlet: /attribute SUPERUSER/,
  },
  { name: 'createrole', sql: 'alter role {exec} createrole', outlet: /attribute CREATEROLE/ },
  { name: 'createdb', sql: 'alter role {exec} createdb', outlet: /attribute CREATEDB/ },
  { name: 'replication', sql: 'alter role {exec} replication', outlet: /attribute REPLICATION/ },
  { name: 'bypassrls', sql: 'alter role {exec} bypassrls', outlet: /attribute BYPASSRLS/ },
  { name: 'inherit', sql: 'alter role {exec} inherit', outlet: /attribute INHERIT/ },
  {
    name: 'membership in the application owner',
    sql: 'grant {app} to {exec}',
    outlet: /^membership in/,
  },
  {
    name: 'membership with admin option',
    sql: 'grant {app} to {exec} with admin option',
    outlet: /^membership in/,
  },
  {
    name: 'file-writing predefined role',
    sql: 'grant pg_write_server_files to {exec}',
    outlet: /pg_write_server_files/,
  },
  {
    name: 'program-running predefined role',
    sql: 'grant pg_execute_server_program to {exec}',
    outlet: /pg_execute_server_program/,
  },
  {
    name: 'pg_write_all_data',
    sql: 'grant pg_write_all_data to {exec}',
    outlet: /pg_write_all_data/,
  },
  {
    name: 'pg_signal_backend',
    sql: 'grant pg_signal_backend to {exec}',
    outlet: /pg_signal_backend/,
  },
  { name: 'pg_maintain', sql: 'grant pg_maintain to {exec}', outlet: /pg_maintain/, from: 17 },
  {
    name: 'TEMP for PUBLIC, as a template clone has it',
    sql: 'grant temporary on database {db} to public',
    outlet: /TEMPORARY ON DATABASE/,
  },
  {
    name: 'TEMP for the login',
    sql: 'grant temporary on database {db} to {exec}',
    outlet: /TEMPORARY ON DATABASE/,
  },
  {
    name: 'CREATE on the database',
    sql: 'grant create on database {db} to {exec}',
    outlet: /CREATE ON DATABASE/,
  },
  {
    name: 'CREATE on public for PUBLIC',
    sql: 'grant create on schema public to public',
    outlet: /CREATE ON SCHEMA public/,
  },
  {
    name: 'CREATE on the application schema',
    sql: 'grant create on schema app to {exec}',
    outlet: /CREATE ON SCHEMA app/,
  },
  {
    name: 'INSERT on an unregistered table',
    sql: 'grant insert on app.hidden to {exec}',
    outlet: /INSERT ON TABLE app.hidden/,
  },
  {
    name: 'UPDATE on an unregistered table for PUBLIC',
    sql: 'grant update on app.hidden to public',
    outlet: /UPDATE ON TABLE app.hidden/,
  },
  {
    name: 'column privilege on an unregistered table',
    sql: 'grant update (what) on app.hidden to {exec}',
    outlet: /UPDATE ON COLUMN app.hidden/,
  },
  {
    name: 'column privilege with an awkward name',
    sql: 'create table app."odd (1)" ("a) b" int); grant insert ("a) b") on app."odd (1)" to {exec}',
    outlet: /INSERT ON COLUMN/,
  },
  {
    name: 'TRUNCATE on a registered table',
    sql: 'grant truncate on app.invoice to {exec}',
    outlet: /TRUNCATE ON TABLE app.invoice/,
  },
  {
    name: 'TRIGGER on a registered table',
    sql: 'grant trigger on app.invoice to {exec}',
    outlet: /TRIGGER ON TABLE/,
  },
  {
    name: 'REFERENCES on a registered table',
    sql: 'grant references on app.invoice to {exec}',
    outlet: /REFERENCES ON TABLE/,
  },
  {
    name: 'MAINTAIN on a registered table',
    sql: 'grant maintain on app.invoice to {exec}',
    outlet: /MAINTAIN ON TABLE/,
    from: 17,
  },
  {
    name: 'grant option on a registered table',
    sql: 'grant insert on app.invoice to {exec} with grant option',
    outlet: /INSERT ON TABLE app.invoice/,
  },
  {
    name: 'a grant by somebody other than the owner',
    sql: 'grant insert on app.hidden to {control} with grant option; set role {control}; grant insert on app.hidden to {exec}; reset role',
    outlet: /INSERT ON TABLE app.hidden/,
  },
  {
    name: 'reading the secret of the deployment',
    sql: 'grant select on effectmatch.deployment to {exec}',
    outlet: /SELECT ON TABLE effectmatch.deployment/,
  },
  {
    name: 'writing markers',
    sql: 'grant insert on effectmatch.marker to {exec}',
    outlet: /INSERT ON TABLE effectmatch.marker/,
  },
  {
    name: 'writing a catalogue',
    sql: 'grant update on pg_catalog.pg_description to {exec}',
    outlet: /UPDATE ON TABLE pg_catalog/,
  },
  {
    name: 'USAGE of a sequence nobody registered',
    sql: 'grant usage on sequence app.free to {exec}',
    outlet: /USAGE ON SEQUENCE app.free/,
  },
  {
    name: 'UPDATE (setval) of a registered sequence',
    sql: 'grant update on sequence app.note_id_seq to {exec}',
    outlet: /UPDATE ON SEQUENCE app.note_id_seq/,
  },
  {
    name: 'setval in the default of a domain',
    sql: "create domain app.ahead as bigint default setval('app.free', 9)",
    outlet: /^default of domain app.ahead/,
  },
  {
    name: 'setval in the check of a domain',
    sql: "create domain app.moves as bigint constraint moving check (setval('app.free', 9) > 0)",
    outlet: /^constraint moving/,
  },
  {
    name: 'setval in the condition of a trigger',
    sql: `${fn('conditional', 'null')}; create trigger conditional after update on app.invoice for each row when (setval('app.free', 9) > 0) execute function app.conditional()`,
    outlet: /^trigger conditional of app.invoice/,
  },
  {
    name: 'setval in the default of an argument',
    sql: "create function app.by_default(n bigint default setval('app.free', 9)) returns void language sql as 'select'; grant execute on function app.by_default(bigint) to {exec}",
    outlet: /^function app.by_default/,
  },
  {
    name: 'a function that reads what it is told',
    sql: `${entry('told', "perform table_to_xml(('app.' || 'hidden')::regclass, true, true, '')")}; grant execute on function app.told() to {exec}`,
    outlet: /^function app.told/,
  },
  {
    name: 'a registered sequence that cannot be read',
    sql: 'revoke all on sequence app.note_id_seq from {owner}',
    outlet: /^sequence "app"."note_id_seq"/,
  },
  {
    name: 'USAGE of a language',
    sql: 'grant usage on language plpgsql to public',
    outlet: /USAGE ON LANGUAGE plpgsql/,
  },
  {
    name: 'SET of a privileged parameter',
    sql: 'grant set on parameter session_replication_role to {exec}',
    outlet: /SET ON PARAMETER session_replication_role/,
  },
  {
    name: 'ALTER SYSTEM of a parameter',
    sql: 'grant alter system on parameter fsync to public',
    outlet: /ALTER SYSTEM ON PARAMETER fsync/,
  },
  {
    name: 'CREATE on a tablespace',
    sql: 'grant create on tablespace pg_default to {exec}',
    outlet: /CREATE ON TABLESPACE/,
  },
  ...[
    'pg_notify(text, text)',
    'lo_create(oid)',
    'lo_from_bytea(oid, bytea)',
    'set_config(text, text, boolean)',
    'query_to_xml(text, boolean, boolean, text)',
    'ts_stat(text)',
    'pg_terminate_backend(integer, bigint)',
    'pg_advisory_lock(bigint)',
    'pg_read_file(text)',
    'lo_export(oid, text)',
    'pg_export_snapshot()',
    'pg_switch_wal()',
    'pg_stat_reset()',
    'pg_create_physical_replication_slot(name, boolean, boolean)',
    'setseed(double precision)',
  ].map((signature) => ({
    name: `EXECUTE of ${signature}`,
    sql: `grant execute on function pg_catalog.${signature} to {exec}`,
    outlet: new RegExp(`built-in pg_catalog.${signature.split('(')[0]}`),
  })),
  {
    name: 'logical messages for PUBLIC',
    sql: `do $$ declare f regprocedure; begin for f in select oid from pg_proc where proname = 'pg_logical_emit_message' loop execute format('grant execute on function %s to public', f); end loop; end $$`,
    outlet: /pg_logical_emit_message/,
  },
  {
    name: 'a dangerous built-in in the hands of a lending role',
    sql: 'grant execute on function pg_catalog.pg_notify(text, text) to {app}',
    outlet: /built-in pg_catalog.pg_notify/,
  },
  {
    name: 'a lending role that may replicate',
    sql: 'alter role {app} replication',
    outlet: /rights of/,
  },
  {
    name: 'a lending role that writes files',
    sql: 'grant pg_write_server_files to {app}',
    outlet: /rights of/,
  },
  {
    name: 'a function for everybody',
    sql: `create function app.free_function() returns int language sql as 'select 1'`,
    outlet: /function app.free_function/,
  },
  {
    name: 'a function granted to the login',
    sql: `${entry('given', 'perform 1')}; grant execute on function app.given() to {exec}`,
    outlet: /function app.given/,
  },
  {
    name: 'a definer entry point of a superuser',
    alone: true,
    undo: 'alter function app.pay(int) security definer; alter function app.pay(int) owner to {app}',
    sql: `alter function app.pay(int) owner to postgres`,
    outlet: /rights of "postgres"/,
  },
  {
    name: 'a definer entry point without search_path',
    sql: `alter function app.pay(int) security definer; alter function app.pay(int) reset search_path`,
    outlet: /function app.pay/,
  },
  {
    name: 'a trigger function that notifies',
    sql: `${fn('tells', `notify changes`)}; ${onInvoice('tells')}`,
    outlet: /function app.tells/,
  },
  {
    name: 'a notification in a nested block',
    sql: `${fn('tells2', `if true then notify changes, 'x'; end if`)}; ${onInvoice('tells2')}`,
    outlet: /function app.tells2/,
  },
  {
    name: 'a notification behind a string with a backslash',
    sql: `${fn('tells3', `perform 'a\\'; notify changes; perform 'b'`)}; ${onInvoice('tells3')}`,
    outlet: /function app.tells3/,
  },
  {
    name: 'a notification in dynamic SQL',
    sql: `${fn('tells4', `execute 'noti' || 'fy changes'`)}; ${onInvoice('tells4')}`,
    outlet: /function app.tells4/,
  },
  {
    name: 'a notification in constant dynamic SQL',
    sql: `${fn('tells5', `execute 'notify changes'`)}; ${onInvoice('tells5')}`,
    outlet: /function app.tells5/,
  },
  {
    name: 'a notification two calls away',
    sql: `${entry('deep', 'notify changes')}; ${fn('calls', 'perform app.deep()')}; ${onInvoice('calls')}`,
    outlet: /function app.deep/,
  },
  {
    name: 'a holdable cursor in a trigger',
    sql: `${fn('holds', `execute 'declare c cursor with hold for select 1'`)}; ${onInvoice('holds')}`,
    outlet: /function app.holds/,
  },
  {
    name: 'a session setting in a trigger',
    sql: `${fn('sets', `set datestyle = 'German'`)}; ${onInvoice('sets')}`,
    outlet: /function app.sets/,
  },
  {
    name: 'constraints put off by a trigger',
    sql: `${fn('defers', `set constraints all deferred`)}; ${onInvoice('defers')}`,
    outlet: /function app.defers/,
  },
  {
    name: 'a privileged setting in function configuration',
    sql: `${fn('configured', 'perform 1', 'set session_replication_role = replica')}; ${onInvoice('configured')}`,
    outlet: /function app.configured/,
  },
  {
    name: 'asynchronous commit in function configuration',
    sql: `${fn('lazy', 'perform 1', 'set synchronous_commit = off')}; ${onInvoice('lazy')}`,
    outlet: /function app.lazy/,
  },
  {
    name: 'a definer trigger function of a superuser',
    alone: true,
    sql: `${fn('strong', 'perform 1', 'security definer set search_path = pg_catalog')}; alter function app.strong() owner to postgres; ${onInvoice('strong')}`,
    outlet: /rights of "postgres"/,
  },
  {
    name: 'a deferrable trigger that the execution login cannot force, on a table that a trigger writes',
    sql: `${fn('later2', 'perform 1')}; create schema cellar; create table cellar.outbox (id int); create constraint trigger later2 after insert on cellar.outbox deferrable for each row execute function app.later2(); ${fn('posts', 'insert into cellar.outbox values (1)')}; ${onInvoice('posts')}`,
    outlet: /trigger later2 on cellar.outbox/,
  },
  {
    name: 'a C function as trigger',
    sql: `create extension refint; create trigger native before insert on app.invoice for each row execute function check_primary_key('vendor', 'app.vendor', 'id')`,
    outlet: /check_primary_key/,
  },
  {
    name: 'a disabled recorder',
    sql: 'alter table app.invoice disable trigger effectmatch_record',
    outlet: /recorder effectmatch_record on app.invoice/,
  },
  {
    name: 'a recorder that replication switches off',
    alone: true,
    sql: 'alter table app.invoice enable trigger effectmatch_record',
    outlet: /recorder effectmatch_record on app.invoice/,
  },
  {
    name: 'a dropped recorder',
    sql: 'drop trigger effectmatch_record on app.note',
    outlet: /recorder effectmatch_record on app.note/,
  },
  {
    name: 'a dropped statement recorder',
    sql: 'drop trigger effectmatch_record_update on app.vendor',
    outlet: /recorder effectmatch_record_update on app.vendor/,
  },
  {
    name: 'a recorder with another condition',
    alone: true,
    sql: `drop trigger effectmatch_record on app.note; create trigger effectmatch_record after insert or update or delete on app.note for each row when (false) execute function effectmatch.record_row(); alter table app.note enable always trigger effectmatch_record`,
    outlet: /recorder effectmatch_record on app.note/,
  },
  {
    name: 'a recorder disabled on one partition',
    sql: 'alter table app.event_2026 disable trigger effectmatch_record',
    outlet: /recorder effectmatch_record on app.event_2026/,
  },
  {
    name: 'a dropped truncate guard',
    sql: 'drop trigger effectmatch_truncate on app.invoice',
    outlet: /recorder effectmatch_truncate/,
  },
  {
    name: 'a changed recorder function',
    sql: `create or replace function effectmatch.record_row() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as 'begin return null; end'`,
    outlet: /function effectmatch.record_row/,
  },
  {
    name: 'the function that tells the secret for the login',
    sql: 'grant execute on function effectmatch.describe() to {exec}',
    outlet: /function effectmatch.describe/,
  },
  {
    name: 'a stranger in our schema',
    sql: `create function effectmatch.extra() returns int language sql as 'select 1'`,
    outlet: /function effectmatch.extra/,
  },
  {
    name: 'a rule of the server that was replaced',
    sql: 'create or replace rule pg_settings_u as on update to pg_catalog.pg_settings do instead notify leak',
    outlet: /rule pg_settings_u/,
  },
  {
    name: 'a rule on a view of the server',
    sql: 'create rule extra as on insert to pg_catalog.pg_views do instead notify leak',
    outlet: /rule extra on pg_catalog\.pg_views/,
  },
  {
    name: 'a rule on a registered table',
    alone: true,
    sql: 'create rule redirect as on insert to app.invoice do also insert into app.hidden values (1)',
    outlet: /rule redirect/,
  },
  {
    name: 'an unlogged registered table',
    sql: 'alter table app.note set unlogged',
    outlet: /persistence of app.note/,
  },
  {
    name: 'an unlogged partition',
    sql: "create unlogged table app.event_2027 partition of app.event for values from ('2027-01-01') to ('2028-01-01')",
    outlet: /persistence of app.event_2027/,
  },
  {
    name: 'an inheritance child',
    sql: 'create table app.special_note (extra text) inherits (app.note)',
    outlet: /inheritance of app.note/,
  },
  {
    name: 'a table owned by the login',
    sql: 'create table app.mine (id int); alter table app.mine owner to {exec}',
    outlet: /ownership of table app.mine/,
  },
  {
    name: 'a registered table owned by the login',
    alone: true,
    sql: 'alter table app.note owner to {exec}',
    outlet: /ownership of/,
  },
  {
    name: 'a large object owned by the login',
    sql: 'select lo_create(4711); alter large object 4711 owner to {exec}',
    outlet: /ownership of large object 4711/,
  },
  {
    name: 'asynchronous commit on the role',
    sql: 'alter role {exec} set synchronous_commit = off',
    outlet: /setting synchronous_commit of role/,
  },
  {
    name: 'asynchronous commit on the database',
    sql: 'alter database {db} set synchronous_commit = off',
    outlet: /setting synchronous_commit of database/,
  },
  {
    name: 'replica role on the role in the database',
    sql: 'alter role {exec} in database {db} set session_replication_role = replica',
    outlet: /setting session_replication_role/,
  },
  {
    name: 'a search path on the role',
    sql: 'alter role {exec} set search_path = app, pg_catalog',
    outlet: /setting search_path/,
  },
  {
    name: 'a search path with other white space, as FROM CURRENT stores it',
    sql: `select set_config('search_path', E'app,\\tpg_catalog', false); alter database {db} set search_path from current; reset search_path`,
    outlet: /setting search_path of database/,
  },
  {
    name: 'preloaded libraries on the role',
    sql: `alter role {exec} set session_preload_libraries = 'auto_explain'`,
    outlet: /setting session_preload_libraries/,
  },
  {
    name: 'counters switched off on the database',
    sql: 'alter database {db} set track_counts = off',
    outlet: /setting track_counts of database/,
  },
  {
    name: 'isolation set on the role',
    sql: `alter role {exec} set default_transaction_isolation = 'repeatable read'`,
    outlet: /setting default_transaction_isolation/,
  },
  {
    name: 'a login event trigger',
    sql: `create function public.at_login() returns event_trigger language plpgsql as 'begin end'; revoke execute on function public.at_login() from public; create event trigger at_login on login execute function public.at_login()`,
    outlet: /event trigger at_login/,
    from: 17,
  },
  {
    name: 'an event trigger with the rights of a superuser',
    sql: `create function public.on_ddl() returns event_trigger language plpgsql security definer set search_path = pg_catalog as 'begin end'; revoke execute on function public.on_ddl() from public; create event trigger on_ddl on ddl_command_end execute function public.on_ddl()`,
    outlet: /rights of "postgres"/,
  },
  {
    name: 'an operator class whose function notifies',
    sql: `create function app.cmp(text, text) returns int language plpgsql immutable as 'begin notify leak; return 0; end'; revoke execute on function app.cmp(text, text) from public; create operator class app.odd for type text using btree as operator 1 <, operator 2 <=, operator 3 =, operator 4 >=, operator 5 >, function 1 app.cmp(text, text)`,
    outlet: /function app.cmp/,
  },
  { name: 'dblink for everybody', sql: 'create extension dblink schema public', outlet: /dblink/ },
  {
    name: 'a foreign table within reach',
    sql: `create extension postgres_fdw; create server elsewhere foreign data wrapper postgres_fdw; create foreign table app.far (id int) server elsewhere; alter foreign table app.far owner to postgres; grant insert on app.far to {exec}`,
    outlet: /app.far/,
  },
  {
    name: 'a user mapping for everybody',
    sql: 'create extension if not exists postgres_fdw; create server if not exists elsewhere foreign data wrapper postgres_fdw; create user mapping for public server elsewhere',
    outlet: /user mapping/,
  },
  {
    name: 'USAGE of a foreign server',
    sql: 'create extension if not exists postgres_fdw; create server if not exists elsewhere foreign data wrapper postgres_fdw; grant usage on foreign server elsewhere to {exec}',
    outlet: /USAGE ON FOREIGN SERVER/,
  },
  {
    name: 'USAGE of a foreign data wrapper',
    sql: 'create extension if not exists postgres_fdw; grant usage on foreign data wrapper postgres_fdw to public',
    outlet: /USAGE ON FOREIGN DATA WRAPPER/,
  },
  {
    name: 'a foreign table of a lending role',
    sql: `create extension if not exists postgres_fdw; create server if not exists elsewhere foreign data wrapper postgres_fdw; create foreign table app.far2 (id int) server elsewhere; alter foreign table app.far2 owner to {app}`,
    outlet: /foreign table app.far2/,
  },
  {
    name: 'a foreign server of a lending role',
    sql: 'create extension if not exists postgres_fdw; create server lent foreign data wrapper postgres_fdw; grant usage on foreign server lent to {app}',
    outlet: /^foreign server lent/,
  },
  {
    name: 'a foreign server that a lending role owns',
    sql: 'create extension if not exists postgres_fdw; create server its_own foreign data wrapper postgres_fdw; grant usage on foreign data wrapper postgres_fdw to {app}; alter server its_own owner to {app}',
    outlet: /^foreign server its_own/,
  },
  {
    name: 'a constant in the expression of a statistics object',
    sql: `create function app.steady(int) returns int language plpgsql immutable as 'begin return 1; end'; create statistics app.figures on ((id + app.steady(1))), status from app.invoice`,
    outlet: /constant call in app.figures of app.invoice/,
  },
  {
    name: 'an index compared by a function of the application',
    sql: `create function app.compare(int, int) returns int language sql immutable as 'select sign($1 - $2)::int'; revoke execute on function app.compare(int, int) from public; create operator class app.slow for type int4 using btree as operator 1 <, operator 2 <=, operator 3 =, operator 4 >=, operator 5 >, function 1 app.compare(int, int); create index by_hand on app.invoice (id app.slow)`,
    outlet: /comparison in app.by_hand of app.invoice/,
  },
  {
    name: 'an operator class that calls a dangerous built-in',
    sql: 'create operator class app.eats for type oid using hash as operator 1 =, function 1 pg_catalog.lo_unlink(oid)',
    outlet: /operator family app.eats/,
  },
  {
    name: 'a built-in with the rights of a superuser',
    sql: 'alter function pg_catalog.lpad(text, integer) security definer',
    outlet: /built-in pg_catalog.lpad\(text, integer\)/,
  },
  {
    name: 'a built-in with a setting of its own',
    sql: 'alter function pg_catalog.bit_length(text) set work_mem = 4096',
    outlet: /built-in pg_catalog.bit_length\(text\)/,
  },
  {
    name: 'a built-in that somebody replaced',
    sql: `create or replace function pg_catalog.rpad(text, integer) returns text language plpgsql immutable as 'begin return $1; end'`,
    outlet: /built-in pg_catalog.rpad\(text, integer\)/,
  },
  {
    name: 'a built-in that stands for other native code',
    sql: `create or replace function pg_catalog.log(numeric) returns numeric language internal immutable as 'pg_notify'`,
    outlet: /built-in pg_catalog.log\(numeric\)/,
  },
  {
    name: 'a foreign table behind a view',
    sql: 'create extension if not exists postgres_fdw; create server if not exists elsewhere foreign data wrapper postgres_fdw; create foreign table app.far3 (id int) server elsewhere; create view app.sees as select * from app.far3; grant select on app.sees to {exec}',
    outlet: /foreign table app.far3 beneath app.sees/,
  },
  {
    name: 'a trigger of the application on the markers',
    sql: `create function app.stranger() returns trigger language plpgsql as 'begin return null; end'; revoke execute on function app.stranger() from public; create trigger stranger after insert on effectmatch.marker for each row execute function app.stranger()`,
    outlet: /code on the evidence: trigger stranger on effectmatch.marker/,
  },
  {
    name: 'a check of the application on the markers',
    sql: `create function app.strange(text) returns boolean language sql immutable as 'select true'; revoke execute on function app.strange(text) from public; alter table effectmatch.marker add constraint strange check (app.strange(text))`,
    outlet: /code on the evidence: constraint strange on table effectmatch.marker/,
  },
  {
    name: 'a table that poses as records',
    sql: 'create table app.poses () inherits (effectmatch.record)',
    outlet: /code on the evidence: app.poses that inherits from it/,
  },
  {
    name: 'a foreign partition',
    sql: `create extension if not exists postgres_fdw; create server if not exists elsewhere foreign data wrapper postgres_fdw; create foreign table app.event_2028 partition of app.event for values from ('2028-01-01') to ('2029-01-01') server elsewhere; alter foreign table app.event_2028 owner to postgres`,
    outlet: /event_2028/,
  },
  {
    name: 'a cast on a registered row type',
    sql: `create function app.lies(app.note) returns text language sql immutable as $$ select 'nothing' $$; revoke execute on function app.lies(app.note) from public; create cast (app.note as text) with function app.lies(app.note)`,
    outlet: /cast from app.note to text/,
  },
  {
    name: 'a check that calls a notifying function',
    sql: `create function app.fine(text) returns boolean language plpgsql as $$ begin notify fine; return true; end $$; grant execute on function app.fine(text) to {exec}; alter table app.note add constraint fine check (app.fine(body))`,
    outlet: /function app.fine/,
  },
  {
    name: 'a default that calls a notifying function',
    sql: `create function app.dflt() returns text language plpgsql as $$ begin notify dflt; return ''; end $$; grant execute on function app.dflt() to {exec}; alter table app.note alter body set default app.dflt()`,
    outlet: /function app.dflt/,
  },
  {
    name: 'a policy that calls a notifying function',
    sql: `create function app.pol() returns boolean language plpgsql as $$ begin notify pol; return true; end $$; grant execute on function app.pol() to {exec}; create policy pol on app.note using (app.pol())`,
    outlet: /function app.pol/,
  },
  {
    name: 'an index expression that calls a notifying function',
    sql: `create function app.idx(text) returns text language plpgsql immutable as $$ begin notify idx; return ''; end $$; grant execute on function app.idx(text) to {exec}; create index idx on app.note (app.idx(body))`,
    outlet: /function app.idx/,
  },
  {
    name: 'a domain check that calls a notifying function',
    sql: `create function app.dom(numeric) returns boolean language plpgsql as $$ begin notify dom; return true; end $$; grant execute on function app.dom(numeric) to {exec}; alter domain app.money add constraint dom check (app.dom(value))`,
    outlet: /function app.dom/,
  },
  {
    name: 'an owner of the evidence that logs in',
    sql: 'alter role {owner} login',
    outlet: /role .* that owns the evidence/,
  },
  {
    name: 'an evidence schema that changed hands',
    alone: true,
    sql: 'alter schema effectmatch owner to {app}',
    outlet: /schema effectmatch/,
  },
  {
    name: 'statistics over a function that writes',
    sql: `${later('stats')}; create statistics app.late_stats on (app.later_stats(status)) from app.invoice`,
    outlet: /^maintenance of statistics app.late_stats/,
  },
  {
    name: 'an index over a function that writes',
    sql: `${later('index')}; create index late_index on app.invoice (app.later_index(status))`,
    outlet: /^maintenance of index app.late_index/,
  },
  {
    name: 'an index with a condition that writes',
    sql: `${later('where')}; create index late_where on app.note (id) where app.later_where(body) <> ''`,
    outlet: /^maintenance of index app.late_where/,
  },
  {
    name: 'a unique constraint whose column type is compared by a function that writes',
    sql: `${later('type')}; create type app.late_pair as (a text);
      create function app.late_cmp(app.late_pair, app.late_pair) returns int language plpgsql immutable as $$ begin perform app.later_type(($1).a); return 0; end $$;
      create function app.late_eq(app.late_pair, app.late_pair) returns boolean language sql immutable as 'select true';
      create operator app.==== (function = app.late_eq, leftarg = app.late_pair, rightarg = app.late_pair);
      create operator class app.late_ops default for type app.late_pair using btree as operator 3 app.====, function 1 app.late_cmp(app.late_pair, app.late_pair);
      revoke execute on function app.late_cmp(app.late_pair, app.late_pair), app.late_eq(app.late_pair, app.late_pair) from public;
      revoke execute on function app.later_type(text) from public`,
    outlet: /^maintenance of function 1 .*late_ops/,
  },
  {
    name: 'a materialized view over a function that writes',
    sql: `${later('view')}; revoke execute on function app.later_view(text) from public;
      create materialized view app.late_view as select app.later_view(status) from app.invoice with no data`,
    outlet: /^maintenance of materialized view app.late_view/,
  },
  {
    name: 'a check that writes and is not validated',
    sql: `${later('check')}; alter table app.invoice add constraint late_check check (app.later_check(status) <> '') not valid`,
    outlet: /^maintenance of constraint late_check/,
  },
  {
    name: 'a check of a domain that writes and is not validated',
    sql: `${later('domain')}; create domain app.late_domain as text; alter domain app.late_domain add constraint late_domain check (app.later_domain(value) <> '') not valid`,
    outlet: /^maintenance of constraint late_domain/,
  },
  {
    name: 'a registered table of an extension',
    sql: 'create extension if not exists lo schema public; alter extension lo add table app.note',
    outlet: /^extension of app.note/,
  },
];
