-- What roles may use, for a survey.

-- name: callable
-- Functions of the application that a role may call through its own rights. Parameter 1: the role.
select
  p.oid::int8 as oid
from
  pg_proc p
  join pg_namespace n on n.oid = p.pronamespace
  join pg_roles r on r.rolname = $1
where
  p.oid >= 16384
  and not r.rolsuper
  and has_schema_privilege(r.oid, n.oid, 'USAGE')
  and has_function_privilege(r.oid, p.oid, 'EXECUTE');

-- name: volatile_builtins
-- Functions that the server came with and that may do more than compute, by name.
select distinct
  p.proname::text as name
from
  pg_proc p
where
  p.oid < 16384
  and p.provolatile = 'v'
order by
  1;

-- name: server_names
-- What the server came with, by name. Takes no parameter.
select distinct
  'function' as kind,
  p.proname::text as name
from
  pg_proc p
where
  p.oid < 16384
  and p.pronamespace = 'pg_catalog'::regnamespace
union all
select
  'type',
  t.typname::text
from
  pg_type t
where
  t.oid < 16384
  and t.typnamespace = 'pg_catalog'::regnamespace
union all
select
  'relation',
  n.nspname || '.' || c.relname
from
  pg_class c
  join pg_namespace n on n.oid = c.relnamespace
where
  c.oid < 16384
  and c.relkind in ('r', 'v')
  and n.nspname in ('pg_catalog', 'information_schema');

-- name: other_logins
-- Logins that have something in this database, are members of a role that has, or are connected; and
-- whether an operation could borrow their rights. Only while PUBLIC has what provisioning takes, and
-- only for a superuser, because without one provisioning takes nothing.
-- Parameters: our own roles, the roles whose rights operations could borrow.
with
  here as (
    select distinct
      d.refobjid as oid
    from
      pg_catalog.pg_shdepend d
    where
      d.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass
      and d.dbid = (
        select
          oid
        from
          pg_catalog.pg_database
        where
          datname = pg_catalog.current_database()
      )
  )
select
  r.rolname,
  r.rolname = any ($2::pg_catalog.name[]) as lent
from
  pg_catalog.pg_roles r
where
  r.rolcanlogin
  and not r.rolsuper
  and r.rolname <> all ($1::pg_catalog.name[])
  and pg_catalog.has_function_privilege('public', 'pg_catalog.pg_notify(text, text)', 'execute')
  and (
    select
      rolsuper
    from
      pg_catalog.pg_roles
    where
      rolname = current_user
  )
  and (
    r.oid in (
      select
        oid
      from
        here
    )
    or exists (
      select
      from
        here
        join pg_catalog.pg_roles x using (oid)
      where
        x.rolname <> all ($1::pg_catalog.name[])
        and pg_catalog.pg_has_role(r.oid, x.oid, 'member')
    )
    or r.oid in (
      select
        usesysid
      from
        pg_catalog.pg_stat_activity
      where
        datname = pg_catalog.current_database()
    )
  )
order by
  r.rolname;
