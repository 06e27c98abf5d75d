-- Roles, rights and hardening. Every statement can be repeated.

-- name: create_owner
-- Another database of the cluster may be provisioned at the same moment, and roles are shared.
do $effectmatch$
begin
  if not exists (select from pg_catalog.pg_roles where rolname = :'role') then
    create role :"role"
      nologin nosuperuser nocreatedb nocreaterole noreplication nobypassrls;
  end if;
exception when duplicate_object or unique_violation then null;
end
$effectmatch$;

-- name: create_control
do $effectmatch$
begin
  if not exists (select from pg_catalog.pg_roles where rolname = :'role') then
    create role :"role"
      login nosuperuser nocreatedb nocreaterole noreplication nobypassrls;
  end if;
exception when duplicate_object or unique_violation then null;
end
$effectmatch$;

-- name: create_execution
do $effectmatch$
begin
  if not exists (select from pg_catalog.pg_roles where rolname = :'role') then
    create role :"role"
      login noinherit nosuperuser nocreatedb nocreaterole noreplication nobypassrls;
  end if;
exception when duplicate_object or unique_violation then null;
end
$effectmatch$;

-- name: read_only
-- Outside the transaction that a stage opens for writing, this login writes nothing at all.
alter role :"execution" set default_transaction_read_only = on;

-- name: not_compiled
-- Compiling a statement takes longer than any statement of an operation.
alter role :"execution" set jit = off;

-- name: lend_owner
-- An administrator who is not a superuser must be able to act as the owner.
do $effectmatch$
begin
  if not (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then
    execute format('grant %I to %I', :'owner', current_user);
  end if;
end
$effectmatch$;

-- name: return_owner
-- Code that runs with the administrator's rights must not have those of the owner of the records.
do $effectmatch$
begin
  if not (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then
    execute format('revoke %I from %I', :'owner', current_user);
  end if;
end
$effectmatch$;

-- name: set_password
alter role :"role" password :'password';

-- name: connect
grant connect on database :"database" to :"control", :"execution";

-- name: connect_if_needed
-- On most servers every role may connect; granting it needs the owner of the database.
do $effectmatch$
declare
  r name;
begin
  foreach r in array array[:'control', :'execution']::name[] loop
    if not has_database_privilege(r, :'database', 'connect') then
      execute format('grant connect on database %I to %I', :'database', r);
      if not has_database_privilege(r, :'database', 'connect') then
        raise exception 'the role % may not connect to the database, and only the owner of the database can grant it', r;
      end if;
    end if;
  end loop;
end
$effectmatch$;

-- name: create_schema_for_owner
create schema if not exists effectmatch authorization :"owner";

-- name: let_owner_create
grant create on database :"database" to :"owner";

-- name: become_owner
set role :"owner";

-- name: create_schema
create schema if not exists effectmatch;

-- name: revoke_tables
revoke all on all tables in schema effectmatch from public;

-- name: use_schema
grant usage on schema effectmatch to :"control", :"execution";

-- name: use_markers
grant select, insert, delete on effectmatch.marker to :"control";

-- name: sweep_records
grant select, delete on effectmatch.record, effectmatch.stage to :"control";

-- name: read_probe
grant select on effectmatch.probe to :"control";

-- name: write_probe
grant insert on effectmatch.probe to :"execution";

-- name: leave_owner
reset role;

-- name: stop_owner_creating
revoke create on database :"database" from :"owner";

-- name: use_relation_schema
grant usage on schema :"schema" to :"owner", :"control", :"execution";

-- name: use_types
-- Values are cast to the types of the columns with the rights of the execution login.
do $effectmatch$
declare
  s name;
begin
  for s in
    select distinct tn.nspname
    from pg_catalog.pg_class as c
    join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
    join pg_catalog.pg_attribute as a on a.attrelid = c.oid
    join pg_catalog.pg_type as t on t.oid = a.atttypid
    join pg_catalog.pg_namespace as tn on tn.oid = t.typnamespace
    where n.nspname = :'schema' and c.relname = :'table'
      and a.attnum > 0 and not a.attisdropped and tn.nspname <> 'pg_catalog'
  loop
    execute format('grant usage on schema %I to %I', s, :'execution');
  end loop;
end
$effectmatch$;

-- name: write_relation
grant select, insert, update, delete on :"schema".:"table" to :"execution";

-- name: lock_relation
-- The right to update lets the trusted functions lock rows.
grant select, update on :"schema".:"table" to :"owner";

-- name: read_relation
grant select on :"schema".:"table" to :"control";

-- name: draw_sequence
grant usage on sequence :"schema".:"sequence" to :"execution";

-- name: read_sequence
grant select on sequence :"schema".:"sequence" to :"owner";

-- name: read_relation_schema
grant usage on schema :"schema" to :"owner", :"control";

-- name: use_execution_schema
grant usage on schema :"schema" to :"execution";

-- name: bypass_policies
alter role :"role" bypassrls;

-- name: revoke_temporary
-- What every role could do is given to the role of the others first: its rights are the record of
-- what is taken here, and removing gives them back.
do $effectmatch$
declare
  p text;
begin
  for p in
    select a.privilege_type
    from pg_catalog.pg_database as d,
      pg_catalog.aclexplode(coalesce(d.datacl, pg_catalog.acldefault('d', d.datdba))) as a
    where d.datname = :'database' and a.grantee = 0 and a.privilege_type in ('CREATE', 'TEMPORARY')
  loop
    execute format('grant %s on database %I to %I', p, :'database', :'others');
    execute format('revoke %s on database %I from public', p, :'database');
  end loop;
end
$effectmatch$;

-- name: revoke_public_schema
do $effectmatch$
begin
  if exists (
    select
    from pg_catalog.pg_namespace as n,
      pg_catalog.aclexplode(coalesce(n.nspacl, pg_catalog.acldefault('n', n.nspowner))) as a
    where n.nspname = 'public' and a.grantee = 0 and a.privilege_type = 'CREATE'
  ) then
    execute format('grant create on schema public to %I', :'others');
    revoke create on schema public from public;
  end if;
end
$effectmatch$;

-- name: revoke_builtins
-- The owner of the trusted functions keeps the built-ins that these functions call.
do $effectmatch$
declare
  f regprocedure;
  name name;
  is_open boolean;
begin
  for f, name, is_open in
    select p.oid, p.proname, exists (
        select
        from pg_catalog.aclexplode(coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner))) as a
        where a.grantee = 0
      )
    from pg_catalog.pg_proc as p
    where p.pronamespace = 'pg_catalog'::regnamespace and p.oid < 16384
      and p.provolatile = 'v' and p.proname = any (:'names'::name[])
  loop
    if is_open then
      execute format('grant execute on function %s to %I', f, :'others');
      execute format('revoke execute on function %s from public', f);
    end if;
    if name in ('set_config', 'setseed', 'pg_advisory_unlock_all') then
      execute format('grant execute on function %s to %I', f, :'owner');
    end if;
  end loop;
end
$effectmatch$;

-- name: keep_languages
-- Roles that own something here need a language to make functions in, whatever becomes of the others.
do $effectmatch$
declare
  r name;
  l name;
begin
  for l in
    select lanname
    from pg_catalog.pg_language,
      pg_catalog.aclexplode(coalesce(lanacl, pg_catalog.acldefault('l', lanowner))) as a
    where lanname in ('plpgsql', 'sql') and a.grantee = 0
  loop
    for r in
      select rolname
      from pg_catalog.pg_roles
      where rolname !~ '^pg_' and not rolsuper and rolname <> :'execution'
        and oid in (
          select refobjid
          from pg_catalog.pg_shdepend
          where refclassid = 'pg_authid'::regclass
            and dbid = (select oid from pg_catalog.pg_database where datname = current_database())
        )
    loop
      execute format('grant usage on language %I to %I', l, r);
    end loop;
    execute format('grant usage on language %I to %I', l, :'others');
    execute format('revoke usage on language %I from public', l);
  end loop;
end
$effectmatch$;

-- name: keep_others
-- Roles that have something in this database, are members of one that has, or are connected keep what
-- every role had. Not those whose rights an operation could borrow: they lose a membership that they
-- got before their code was reached.
do $effectmatch$
declare
  r name;
begin
  for r in
    with here as (
      select distinct d.refobjid as oid
      from pg_catalog.pg_shdepend as d
      where d.refclassid = 'pg_authid'::regclass
        and d.dbid = (select oid from pg_catalog.pg_database where datname = current_database())
    )
    select r.rolname
    from pg_catalog.pg_roles as r
    where not r.rolsuper and r.rolname !~ '^pg_'
      and r.rolname not in (:'owner', :'control', :'execution', :'others')
      and (
        r.oid in (select oid from here)
        or exists (
          select from here join pg_catalog.pg_roles as x using (oid)
          where x.rolname not in (:'owner', :'control', :'execution', :'others')
            and pg_catalog.pg_has_role(r.oid, x.oid, 'member')
        )
        or r.oid in (
          select usesysid from pg_catalog.pg_stat_activity where datname = current_database()
        )
      )
      and r.rolname <> all (:'lenders'::name[])
  loop
    if current_setting('server_version_num')::integer >= 160000 then
      execute format('grant %I to %I with inherit true, set false', :'others', r);
    else
      execute format('grant %I to %I', :'others', r);
    end if;
  end loop;
  for r in
    select m.rolname
    from pg_catalog.pg_auth_members as g
    join pg_catalog.pg_roles as m on m.oid = g.member
    join pg_catalog.pg_roles as o on o.oid = g.roleid
    where o.rolname = :'others' and m.rolname = any (:'lenders'::name[])
  loop
    execute format('revoke %I from %I', :'others', r);
  end loop;
end
$effectmatch$;

-- name: see_role_versions
-- The version of a row says that it changed, not what is in it.
grant select (xmin, oid) on pg_catalog.pg_authid to :"control";

-- name: see_mapping_versions
grant select (xmin, oid) on pg_catalog.pg_user_mapping to :"control";

-- name: see_subscription_versions
grant select (xmin) on pg_catalog.pg_subscription to :"control";

-- name: see_settings
grant pg_read_all_settings to :"control";

-- name: lock_owner
alter role :"owner" nologin;

-- name: lend_role
-- What a role owns or was granted can be dropped only with its rights.
do $effectmatch$
begin
  if not (select rolsuper from pg_catalog.pg_roles where rolname = current_user)
    and exists (select from pg_catalog.pg_roles where rolname = :'role') then
    execute format('grant %I to %I', :'role', current_user);
  end if;
end
$effectmatch$;

-- name: give_back
-- PUBLIC gets back what the role of the others has. Languages lose what provisioning gave to owners.
do $effectmatch$
declare
  o oid := (select oid from pg_catalog.pg_roles where rolname = :'role');
  sql text;
begin
  if o is null then return; end if;
  for sql in
    select format('grant execute on function %s to public', p.oid::regprocedure)
    from pg_catalog.pg_proc as p, pg_catalog.aclexplode(p.proacl) as a
    where a.grantee = o
    union all
    select format('grant %s on database %I to public', a.privilege_type, d.datname)
    from pg_catalog.pg_database as d, pg_catalog.aclexplode(d.datacl) as a
    where d.datname = current_database() and a.grantee = o
    union all
    select format('grant %s on schema %I to public', a.privilege_type, n.nspname)
    from pg_catalog.pg_namespace as n, pg_catalog.aclexplode(n.nspacl) as a
    where a.grantee = o
    union all
    select format(
        case when b.grantee = o
          then 'grant usage on language %I to public' else 'revoke usage on language %I from %I' end,
        l.lanname, pg_catalog.pg_get_userbyid(b.grantee))
    from pg_catalog.pg_language as l, pg_catalog.aclexplode(l.lanacl) as a,
      pg_catalog.aclexplode(l.lanacl) as b
    where a.grantee = o and b.grantee not in (0, l.lanowner)
  loop
    execute sql;
  end loop;
end
$effectmatch$;

-- name: drop_schema
drop schema if exists effectmatch cascade;

-- name: drop_all_but_markers
-- Markers say what was committed. They stay, with the identity of the database they belong to.
do $effectmatch$
declare
  has_markers boolean := false;
  sql text;
begin
  if pg_catalog.to_regclass('effectmatch.marker') is not null then
    select exists (select from effectmatch.marker) into has_markers;
  end if;
  if not has_markers then
    drop schema if exists effectmatch cascade;
    return;
  end if;
  for sql in
    select format('drop routine %s cascade', p.oid::regprocedure)
    from pg_catalog.pg_proc as p
    where p.pronamespace = 'effectmatch'::regnamespace
    union all
    select format('drop table %s', c.oid::regclass)
    from pg_catalog.pg_class as c
    where c.relnamespace = 'effectmatch'::regnamespace and c.relkind = 'r'
      and c.relname not in ('marker', 'deployment')
  loop
    execute sql;
  end loop;
end
$effectmatch$;

-- name: drop_rights_of_owner
-- Without its schema nothing is left of the owner; with it, only what it was granted is taken.
do $effectmatch$
declare
  o oid := (select oid from pg_catalog.pg_roles where rolname = :'role');
  ours oid := (select oid from pg_catalog.pg_namespace where nspname = 'effectmatch');
  sql text;
begin
  if o is null then return; end if;
  if ours is null then
    drop owned by :"role";
    return;
  end if;
  for sql in
    select format('revoke all on %s %s from %I',
      case c.relkind when 'S' then 'sequence' else 'table' end, c.oid::regclass, :'role')
    from pg_catalog.pg_class as c, pg_catalog.aclexplode(c.relacl) as a
    where a.grantee = o and c.relnamespace <> ours
    union
    select format('revoke all on schema %I from %I', n.nspname, :'role')
    from pg_catalog.pg_namespace as n, pg_catalog.aclexplode(n.nspacl) as a
    where a.grantee = o and n.oid <> ours
    union
    select format('revoke all on function %s from %I', p.oid::regprocedure, :'role')
    from pg_catalog.pg_proc as p, pg_catalog.aclexplode(p.proacl) as a
    where a.grantee = o and p.pronamespace <> ours
  loop
    execute sql;
  end loop;
end
$effectmatch$;

-- name: return_role
-- A role that stays is not lent any longer.
do $effectmatch$
begin
  if not (select rolsuper from pg_catalog.pg_roles where rolname = current_user)
    and exists (select from pg_catalog.pg_roles where rolname = :'role') then
    execute format('revoke %I from %I', :'role', current_user);
  end if;
end
$effectmatch$;

-- name: drop_owned
-- The role of the others is not there with the managed boundary.
do $effectmatch$
begin
  if exists (select from pg_catalog.pg_roles where rolname = :'role') then
    drop owned by :"role";
  end if;
end
$effectmatch$;

-- name: drop_role
-- Roles stay while other databases use them.
do $effectmatch$
begin
  drop role if exists :"role";
exception when dependent_objects_still_exist then null;
end
$effectmatch$;
