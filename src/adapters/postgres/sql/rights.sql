-- What roles may use, for a survey. Parameter 1 of each: the roles, unless it says otherwise.

-- name: builtin_support
-- Support functions of operator classes that are volatile built-ins: the server calls them without
-- checking a right.
select
  pg_describe_object('pg_amproc'::regclass, a.oid, 0) as description,
  p.proname::text as name,
  format('%I.%I', n.nspname, f.opfname) as family,
  m.amname::text as method
from
  pg_amproc a
  join pg_proc p on p.oid = a.amproc
  join pg_opfamily f on f.oid = a.amprocfamily
  join pg_namespace n on n.oid = f.opfnamespace
  join pg_am m on m.oid = f.opfmethod
where
  a.oid >= 16384
  and p.oid < 16384
  and p.provolatile = 'v'
order by
  1;

-- name: executable_builtins
-- Volatile built-ins that one of these roles may execute, with the grants that let it.
select
  r.rolname::text as role,
  p.proname::text as name,
  pg_catalog.format('%I.%I(%s)', n.nspname, p.proname, pg_catalog.pg_get_function_identity_arguments(p.oid)) as object,
  array(
    select distinct
      coalesce(g.rolname::text, '')
    from
      aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
      left join pg_roles g on g.oid = a.grantee
    where
      a.privilege_type = 'EXECUTE'
      and a.grantee <> p.proowner
      and (
        a.grantee = 0
        or pg_has_role(r.oid, a.grantee, 'USAGE')
      )
    order by
      1
  ) as grantees
from
  pg_proc p
  join pg_namespace n on n.oid = p.pronamespace
  cross join pg_roles r
where
  p.oid < 16384
  and p.provolatile = 'v'
  and r.rolname = any ($1)
  and not r.rolsuper
  and not ('internal'::regtype = any (p.proargtypes))
  and p.prorettype not in (
    'internal'::regtype,
    'trigger'::regtype,
    'event_trigger'::regtype,
    'fdw_handler'::regtype,
    'table_am_handler'::regtype,
    'index_am_handler'::regtype,
    'tsm_handler'::regtype,
    'language_handler'::regtype
  )
  and has_function_privilege(r.oid, p.oid, 'EXECUTE')
order by
  r.rolname collate "C",
  pg_catalog.format('%I.%I(%s)', n.nspname, p.proname, pg_catalog.pg_get_function_identity_arguments(p.oid)) collate "C";

-- name: foreign_beneath
-- Foreign tables that one of these roles reads without a right to them: beneath a view, which reads as
-- its owner, or beneath a parent, whose right counts for its children.
with recursive
  beneath (role, root, at) as (
    select
      r.rolname::text,
      c.oid,
      c.oid
    from
      pg_class c
      join pg_namespace n on n.oid = c.relnamespace
      cross join pg_roles r
    where
      c.oid >= 16384
      and c.relkind in ('v', 'r', 'p')
      and r.rolname = any ($1)
      and not r.rolsuper
      and exists (
        select
        from
          pg_foreign_table
      )
      and has_schema_privilege(r.oid, n.oid, 'USAGE')
      and (
        has_table_privilege(r.oid, c.oid, 'SELECT, INSERT, UPDATE, DELETE')
        or has_any_column_privilege(r.oid, c.oid, 'SELECT, INSERT, UPDATE')
      )
    union
    select
      b.role,
      b.root,
      x.oid
    from
      beneath b
      cross join lateral (
        select
          d.refobjid as oid
        from
          pg_rewrite w
          join pg_depend d on d.classid = 'pg_rewrite'::regclass
          and d.objid = w.oid
          and d.refclassid = 'pg_class'::regclass
        where
          w.ev_class = b.at
        union all
        select
          i.inhrelid
        from
          pg_inherits i
        where
          i.inhparent = b.at
      ) x
  )
select
  b.role,
  b.root::int8 as root,
  c.oid::int8 as oid
from
  beneath b
  join pg_class c on c.oid = b.at
where
  c.relkind = 'f'
order by
  b.role collate "C",
  b.root::regclass::text collate "C",
  c.oid::regclass::text collate "C";

-- name: replaced_builtins
-- Built-in functions that are no longer the server's: SECURITY DEFINER, with settings, in a language
-- that none of them is written in, or in SQL that uses what the server did not come with. The server
-- calls its internal functions by number, whatever the catalogue says; a name that stands for other
-- internal code shows in its symbol. Parameters: roles, dangerous names, digests of known SQL texts.
select
  pg_catalog.format('%I.%I(%s)', n.nspname, p.proname, pg_catalog.pg_get_function_identity_arguments(p.oid)) as object,
  p.prosecdef as definer,
  p.proconfig is not null as configured,
  array_agg(
    r.rolname::text
    order by
      r.rolname collate "C"
  ) as roles
from
  pg_proc p
  join pg_namespace n on n.oid = p.pronamespace
  join pg_language l on l.oid = p.prolang
  cross join pg_roles r
where
  p.oid < 16384
  and r.rolname = any ($1)
  and not r.rolsuper
  and has_function_privilege(r.oid, p.oid, 'EXECUTE')
  and (
    p.prosecdef
    or p.proconfig is not null
    or case l.lanname
      when 'internal' then p.proname <> all ($2::text[])
      and p.prosrc = any ($2::text[])
      when 'c' then p.probin !~ '^[$]libdir/(dict_snowball|plpgsql|euc2004_sjis2004|[a-z0-9_]+_and_[a-z0-9_]+)$'
      when 'sql' then case
        when p.prosqlbody is null then md5(p.prosrc) <> all ($3::text[])
        else exists (
          select
          from
            pg_depend d
          where
            d.classid = 'pg_proc'::regclass
            and d.objid = p.oid
            and d.refobjid >= 16384
            and d.deptype = 'n'
        )
      end
      else true
    end
  )
group by
  p.oid,
  n.nspname,
  p.proname,
  p.prosecdef,
  p.proconfig
order by
  1;

-- name: role_closure
-- Which roles each of these roles has the rights of, or may become.
select
  m.rolname::text as member,
  r.rolname::text as role
from
  pg_roles m
  cross join pg_roles r
where
  m.rolname = any ($1)
  and not m.rolsuper
  and m.oid <> r.oid
  and (
    pg_has_role(m.oid, r.oid, 'MEMBER')
    or pg_has_role(m.oid, r.oid, 'USAGE')
  )
order by
  m.rolname collate "C",
  r.rolname collate "C";

-- name: usable_by
-- Functions, foreign tables, servers and wrappers that one of these roles may use through its own
-- rights.
select
  r.rolname::text as role,
  'function' as kind,
  p.oid::int8 as oid
from
  pg_proc p
  join pg_namespace n on n.oid = p.pronamespace
  cross join pg_roles r
where
  p.oid >= 16384
  and r.rolname = any ($1)
  and not r.rolsuper
  and has_schema_privilege(r.oid, n.oid, 'USAGE')
  and has_function_privilege(r.oid, p.oid, 'EXECUTE')
union all
select
  r.rolname::text,
  'foreign table',
  c.oid::int8
from
  pg_class c
  join pg_namespace n on n.oid = c.relnamespace
  cross join pg_roles r
where
  c.relkind = 'f'
  and r.rolname = any ($1)
  and not r.rolsuper
  and has_schema_privilege(r.oid, n.oid, 'USAGE')
  and (
    has_table_privilege(r.oid, c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE')
    or has_any_column_privilege(r.oid, c.oid, 'SELECT, INSERT, UPDATE')
  )
union all
select
  r.rolname::text,
  'foreign server',
  s.oid::int8
from
  pg_foreign_server s
  cross join pg_roles r
where
  r.rolname = any ($1)
  and not r.rolsuper
  and has_server_privilege(r.oid, s.oid, 'USAGE')
union all
select
  r.rolname::text,
  'foreign data wrapper',
  w.oid::int8
from
  pg_foreign_data_wrapper w
  cross join pg_roles r
where
  r.rolname = any ($1)
  and not r.rolsuper
  and has_foreign_data_wrapper_privilege(r.oid, w.oid, 'USAGE');

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
