-- Outlets that the server can list itself. Each statement returns findings: `kind` (open, observed or
-- denied), `outlet`, `why`, and for an open one also `object`, `needs`, `behind`, `keep` and `fix`.
-- Parameter 1 is JSON: `executor`, `control` and `owner` (roles), `managed`, `lent` (roles whose rights
-- code lends to an execution, with the reason and the statements that end it), `registered` (object
-- ids), `dangers` (volatile built-ins with the reason), `dangerous` (names), `reading` (roles),
-- `trusted` (extensions), `libraries` (trusted ones), `provision` (advice), `guards` (the
-- statements that make them), and `owned` (what the execution login owns) and `heir` (a
-- role that can own it instead, quoted). What would be dropped comes after what is revoked,
-- so that the statements of all findings can be run in order.

-- name: execution_login
-- The execution login itself: attributes, memberships, what it owns.
with login as (
    select r.*, format('"%s"', replace(r.rolname, '"', '""')) as sql from pg_roles r
    where r.rolname = $1::jsonb ->> 'executor'
  ),
  attributes as (
    select sql, a.* from login cross join lateral (
        values
          (1, 'SUPERUSER', rolsuper, 'passes every check of the server'),
          (2, 'CREATEROLE', rolcreaterole, 'makes roles and gives itself memberships'),
          (3, 'CREATEDB', rolcreatedb, 'makes databases'),
          (4, 'REPLICATION', rolreplication, 'creates replication slots, which survive a rollback'),
          (5, 'BYPASSRLS', rolbypassrls, 'passes row security'),
          (6, 'INHERIT', rolinherit, 'uses the rights of any role it is granted at once')
      ) a (place, keyword, has, why)
  ),
  memberships as (
    select sql, format('"%s"', replace(r.rolname, '"', '""')) as granted,
      m.admin_option,
      case
        when current_setting('server_version_num')::int >= 160000 then format(' GRANTED BY "%s"', replace(pg_get_userbyid(m.grantor), '"', '""'))
      end as by from login l
      join pg_auth_members m on m.member = l.oid
      join pg_roles r on r.oid = m.roleid
  )
select 0 as place, 'open' as kind,
  format('role "%s"', replace($1::jsonb ->> 'executor', '"', '""')) as outlet,
  'The execution login does not exist' as why,
  format('"%s"', replace($1::jsonb ->> 'executor', '"', '""')) as object, 'CREATEROLE' as needs,
  array[format('CREATE ROLE "%s" LOGIN NOINHERIT', replace($1::jsonb ->> 'executor', '"', '""'))] as fix
where not exists (select from login)
union all
select place, case when has then 'open' else 'denied'
  end, 'role attribute ' || keyword,
  case when has then format('%s %s', sql, why) else format('%s is NO%s', sql, keyword)
  end, sql, 'superuser', array[format('ALTER ROLE %s NO%s', sql, keyword)]
from attributes
union all
select 7, 'open', 'membership in ' || granted, format('%s may become %s', sql, granted) || case
    when admin_option then ' and may grant it' else ''
  end, sql, 'ADMIN OPTION on ' || granted,
  array[format('REVOKE %s FROM %s%s CASCADE', granted, sql, by)]
from memberships
union all
select 7, 'denied', 'memberships and SET ROLE', sql || ' is a member of no role', null, null, null
from login
where not exists (select from memberships)
union all
select 8, 'open', 'ownership of ' || thing,
  sql || ' owns it, and an owner may alter it and its grants', thing,
  'superuser, or a member of both roles',
  array[format('REASSIGN OWNED BY %s TO %s', sql, $1::jsonb ->> 'heir')]
from login
  cross join jsonb_array_elements_text($1::jsonb -> 'owned') thing
union all
select 8, 'denied', 'ownership', sql || ' owns nothing', null, null, null
from login
where $1::jsonb -> 'owned' = '[]'
order by 1, 3;

-- name: actors
-- Whose rights an execution can use: those of its login, and of roles whose rights code lends. The other
-- statements find them as a table.
select r.oid, r.rolname::text as role, format('"%s"', replace(r.rolname, '"', '""')) as sql,
  r.rolsuper as super, r.rolreplication as replication, l.by, l.close
from pg_roles r
  left join jsonb_to_recordset($1::jsonb -> 'lent') as l (role text, by text, close text[]) on l.role = r.rolname
where l.role is not null or r.rolname = $1::jsonb ->> 'executor';

-- name: guards
-- The checks at COMMIT that everything else relies on. They keep a transaction from committing without
-- its marker, or with a late write.
select 'open' as kind, format('check %s on effectmatch.%s', g.name, g.guarded) as outlet,
  case
    when t.oid is null then 'It is missing, so a transaction could commit without its marker or with a late write'
    else 'It is not as provisioning made it, or does not always fire' end as why,
  'effectmatch.' || g.guarded as object,
  format('"%s" or a superuser', replace($1::jsonb ->> 'owner', '"', '""')) as needs,
  array(select jsonb_array_elements_text($1::jsonb -> 'guards')) as fix
from (
    values
      ('stage', 'effectmatch_guard', 'guard', null),
      ('marker', 'effectmatch_settled', 'settle', '(new.xid IS NOT NULL)')
  ) g (guarded, name, calls, condition)
  left join pg_trigger t on t.tgrelid = to_regclass('effectmatch.' || g.guarded)
  and t.tgname = g.name
  left join pg_proc p on p.oid = t.tgfoid
where not coalesce(p.pronamespace = to_regnamespace('effectmatch') and p.proname = g.calls
    -- After each inserted row.
    and t.tgtype = 1 + 4 and t.tgenabled = 'A' and t.tgdeferrable and t.tginitdeferred
    and substring(pg_get_triggerdef(t.oid) from 'WHEN \((.*)\) EXECUTE (?:FUNCTION|PROCEDURE)') is not distinct from g.condition,
    false);

-- name: lent_rights
-- Rights whose use neither recorders nor counters would notice, of every role that lends its rights.
with lent as (
    select * from actors where by is not null
  ),
  -- What each of them has the rights of, or may become.
  held as (
    select l.oid, l.sql, h.oid as other,
      format('"%s"', replace(h.rolname, '"', '""')) as other_sql, h.rolname ~ '^pg_' as predefined,
      case when h.rolname ~ '^pg_' then not ($1::jsonb -> 'reading') ? h.rolname::text
        else h.rolsuper end as dangerous
    from lent l
      join pg_roles h on h.oid <> l.oid and not l.super and (pg_has_role(l.oid, h.oid, 'MEMBER')
        or pg_has_role(l.oid, h.oid, 'USAGE'))
  ),
  parameters as (
    select l.oid, l.sql, p.parname, a.privilege_type,
      pg_get_userbyid(a.grantee) as grantee
    from lent l
      cross join pg_parameter_acl p
      cross join lateral aclexplode(p.paracl) a
    where a.grantee <> 10 and (a.grantee = l.oid or exists (select from held h where h.oid = l.oid
            and h.other = a.grantee))
  ),
  faults (oid, fault, needs, fix) as (
    select oid, 'is a superuser', 'the owner of the objects',
      close
    from lent
    where super
    union all
    select oid, 'may replicate', 'superuser', array[format('ALTER ROLE %s NOREPLICATION', sql)]
    from lent
    where replication and not super
    union all
    select oid, format('is a member of %s', other_sql), 'superuser',
      array[format('REVOKE %s FROM %s CASCADE', other_sql, sql)]
    from held
    where dangerous and not (predefined and ($1::jsonb ->> 'managed')::bool)
    union all
    select oid, format('may %s the parameter %s', privilege_type, parname), 'superuser',
      array[format('REVOKE %s ON PARAMETER %s FROM "%s"', privilege_type, parname, replace(grantee, '"', '""'))]
    from parameters
    where not ($1::jsonb ->> 'managed')::bool
  )
select 'open' as kind, 'rights of ' || l.sql as outlet,
  format('%s %s, and its rights are lent by %s', l.sql, f.fault, l.by) as why, null as closer,
  l.sql as object, f.needs, 'role ' || l.sql as behind, f.fix
from lent l
  join faults f using (oid)
union all
select 'observed', 'rights of ' || sql,
  format('lent by %s; its writes are counted for every table', by), null, null, null, null, null
from lent
where not super and not replication
union all
select 'denied', format('%s of %s', other_sql, sql),
  'the code that runs with these rights is read, and names nothing that uses them', 'gate', null,
  null, null, null
from held
where dangerous and predefined and ($1::jsonb ->> 'managed')::bool
union all
select 'denied', format('parameter %s of %s', parname, sql),
  'the code that runs with this right is read, and sets no such parameter', 'gate', null, null,
  null, null
from parameters
where ($1::jsonb ->> 'managed')::bool
order by 2, 1 desc, 3;

-- name: builtins
-- Dangerous built-ins that the execution login, or a role whose rights are lent, may call. For a
-- member of a role that may call them, one finding stands for all of them.
with callable as (
    select x.*,
      format('%I.%I(%s)', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid)) as object,
      $1::jsonb -> 'dangers' ->> p.proname as danger,
      array(select distinct case when a.grantee = 0 then 'PUBLIC'
            else format('"%s"', replace(pg_get_userbyid(a.grantee), '"', '""')) end
        from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
        where a.privilege_type = 'EXECUTE' and a.grantee <> p.proowner and (a.grantee = 0
            or pg_has_role(x.oid, a.grantee, 'USAGE'))
        order by 1) as grantees
    from pg_proc p
      join pg_namespace n on n.oid = p.pronamespace
      cross join actors x
    where not x.super and p.oid < 16384 and p.provolatile = 'v'
      and ($1::jsonb -> 'dangers') ? p.proname::text
      and not ('internal'::regtype = any (p.proargtypes)) and p.prorettype not in (
        'internal'::regtype, 'trigger'::regtype, 'event_trigger'::regtype, 'fdw_handler'::regtype,
        'table_am_handler'::regtype, 'index_am_handler'::regtype, 'tsm_handler'::regtype,
        'language_handler'::regtype) and has_function_privilege(x.oid, p.oid, 'EXECUTE')
  ),
  judged as (
    select *, by is not null and 'PUBLIC' <> all (grantees)
      and sql <> all (grantees) as member
    from callable
  )
select 'open' as kind, 'built-in ' || object as outlet,
  format('%s may execute it (granted to %s)', sql, array_to_string(grantees, ', ')) || coalesce(', reached through ' || by, '') || '; it ' || danger as why,
  object, 'superuser, or the owner of the built-in functions' as needs, 'role ' || case
    when by is not null then sql end as behind, null as keep,
  array[format('REVOKE EXECUTE ON FUNCTION %s FROM %s', object, array_to_string(grantees, ', '))] as fix
from judged
where not member
union
select 'open', 'rights of ' || sql,
  format('It may call built-ins that act outside the transaction, as a member of %s, and its rights are lent by %s', g, by),
  sql, 'superuser, or ADMIN OPTION on ' || g, 'role ' || sql, $1::jsonb ->> 'provision',
  array[format('REVOKE %s FROM %s', g, sql)]
from judged
  cross join unnest(grantees) g
where member
union
select 'denied', 'dangerous built-in functions',
  'no volatile built-in outside the list of harmless ones is executable', null, null, null, null,
  null
where not exists (select from callable where role = $1::jsonb ->> 'executor')
order by 2, 3;

-- name: replaced_builtins
-- Built-in functions that are no longer the server's: SECURITY DEFINER, with settings, in a language
-- that none of them is written in, or in SQL that uses what the server did not come with. Nothing else
-- would notice, because built-ins are judged by name. The server calls its internal functions by number,
-- whatever the catalogue says; a name that stands for other internal code shows in its symbol. The
-- digests are those of the few built-ins of PostgreSQL 15 and 17 whose body is an SQL string.
with replaced as (
    select
      format('%I.%I(%s)', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid)) as object,
      p.prosecdef as definer, p.proconfig is not null as configured,
      string_agg(format('"%s"', replace(r.rolname, '"', '""')), ', ' order by r.rolname collate "C"
      ) as callers
    from pg_proc p
      join pg_namespace n on n.oid = p.pronamespace
      join pg_language l on l.oid = p.prolang
      cross join pg_roles r
    where p.oid < 16384 and (
        $1::jsonb @> jsonb_build_object('lent', jsonb_build_array(jsonb_build_object('role', r.rolname)))
        or r.rolname in ($1::jsonb ->> 'executor', $1::jsonb ->> 'control', $1::jsonb ->> 'owner'))
      and not r.rolsuper and has_function_privilege(r.oid, p.oid, 'EXECUTE') and (p.prosecdef
        or p.proconfig is not null or case l.lanname
          when 'internal' then not ($1::jsonb -> 'dangerous') ? p.proname::text
          and ($1::jsonb -> 'dangerous') ? p.prosrc
          when 'c' then p.probin !~ '^[$]libdir/(dict_snowball|plpgsql|euc2004_sjis2004|[a-z0-9_]+_and_[a-z0-9_]+)$'
          when 'sql' then case when p.prosqlbody is null then md5(p.prosrc) not in (
              '693d427fcd1b0b7b530633f099a2c224', -- quote_literal
              '945146006b285e964ac83073e10a3d6b', -- quote_nullable
              'd046c267fcecd57d0b3fce72693ceda7', -- textanycat
              '0c69a54529e0b0d08acb589274812be8', -- anytextcat
              '867fc328ffe013628f28861c201d2ca9', -- _pg_expandarray of 15
              'f0ed363c107a0828181f785bb538b85b' -- _pg_expandarray of 17
            ) else exists (select from pg_depend d
              where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.refobjid >= 16384
                and d.deptype = 'n') end else true end)
    group by p.oid, n.nspname, p.proname, p.prosecdef, p.proconfig
  )
select 'open' as kind, 'built-in ' || object as outlet,
  case
    when definer then 'It is SECURITY DEFINER, with the rights of a superuser, and the server came with it otherwise'
    when configured then 'It has its own settings, and the server came with it otherwise'
    else format('It is not the one that the server came with, and %s may execute it', callers)
  end as why, object, 'superuser' as needs, array[case
      when definer then format('ALTER ROUTINE %s SECURITY INVOKER', object)
      when configured then format('ALTER ROUTINE %s RESET ALL', object)
      else format('REVOKE EXECUTE ON ROUTINE %s FROM PUBLIC, %s', object, callers) end] as fix
from replaced
union all
select 'denied', 'replaced built-in functions',
  'every built-in is the one that the server came with', null, null, null
where not exists (select from replaced)
order by 2;

-- name: support_functions
-- Operator classes that call a volatile function of the server: it asks for no right to call it.
select 'open' as kind, outlet,
  format('Indexes and partitions that use it call %s without asking for a right, which %s', name, danger) as why,
  family as object, 'superuser' as needs,
  array[format('DROP OPERATOR FAMILY %s USING "%s" CASCADE', family, replace(method, '"', '""'))] as fix
from (select pg_describe_object('pg_amproc'::regclass, a.oid, 0) as outlet, p.proname::text as name,
      format('%I.%I', n.nspname, f.opfname) as family, m.amname::text as method,
      case when p.proname in ('setval', 'nextval') then 'moves a sequence'
        else $1::jsonb -> 'dangers' ->> p.proname end as danger
    from pg_amproc a
      join pg_proc p on p.oid = a.amproc
      join pg_opfamily f on f.oid = a.amprocfamily
      join pg_namespace n on n.oid = f.opfnamespace
      join pg_am m on m.oid = f.opfmethod
    where a.oid >= 16384 and p.oid < 16384 and p.provolatile = 'v') s
where danger is not null
order by 2;

-- name: foreign_beneath
-- Foreign tables that the execution login, or a role whose rights are lent, reads without a right to
-- them: beneath a view, which reads as its owner, or beneath a parent, whose right counts for its
-- children. Reading one can make the other server write or run a program. Partitions of registered
-- tables, and tables that the role owns, are judged elsewhere.
with recursive beneath (actor, root, at) as (
    select x.oid, c.oid, c.oid from pg_class c
      join pg_namespace n on n.oid = c.relnamespace
      cross join actors x
    where not x.super and exists (select from pg_foreign_table) and c.oid >= 16384
      and c.relkind in ('v', 'r', 'p') and not ($1::jsonb -> 'registered') @> to_jsonb(c.oid::int8)
      and has_schema_privilege(x.oid, n.oid, 'USAGE') and (
        has_table_privilege(x.oid, c.oid, 'SELECT, INSERT, UPDATE, DELETE')
        or has_any_column_privilege(x.oid, c.oid, 'SELECT, INSERT, UPDATE'))
    union
    select b.actor, b.root, x.oid
    from beneath b
      cross join lateral (select d.refobjid as oid from pg_rewrite w
          join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = w.oid
          and d.refclassid = 'pg_class'::regclass
        where w.ev_class = b.at
        union all
        select i.inhrelid
        from pg_inherits i
        where i.inhparent = b.at) x
  ),
  found as (
    select x.sql, x.by, r.relowner, format('%I.%I', rn.nspname, r.relname) as above,
      r.relowner = x.oid as owned, format('%I.%I', cn.nspname, c.relname) as far
    from beneath b
      join actors x on x.oid = b.actor
      join pg_class r on r.oid = b.root
      join pg_namespace rn on rn.oid = r.relnamespace
      join pg_class c on c.oid = b.at
      join pg_namespace cn on cn.oid = c.relnamespace
    where c.relkind = 'f' and c.relowner <> x.oid
  )
select 'open' as kind, format('foreign table %s beneath %s', far, above) as outlet,
  sql || coalesce(format(', whose rights are lent by %s,', by), '') || format(' reads it through %s: what that makes the other server do does not roll back with ours', above) as why,
  above as object,
  format('"%s" or a superuser', replace(pg_get_userbyid(relowner), '"', '""')) as needs,
  case when by is null then 'relation ' || above else 'role ' || sql end as behind, array[case
      when owned then format('DROP FOREIGN TABLE %s CASCADE', far)
      else format('REVOKE ALL ON TABLE %s FROM PUBLIC, %s', above, sql) end] as fix
from found
order by fix desc, outlet;

-- name: lent_code
-- Foreign tables that the execution login may use; and foreign tables, native code, foreign servers
-- and wrappers that a role may use whose rights are lent. A role that may use a server can create a
-- table on it in a function, and what is sent there does not roll back with ours.
with tables as (
    select x.*, format('%I.%I', n.nspname, c.relname) as object, c.relowner from pg_class c
      join pg_namespace n on n.oid = c.relnamespace
      cross join actors x
    where not x.super and c.relkind = 'f' and has_schema_privilege(x.oid, n.oid, 'USAGE') and (
        has_table_privilege(x.oid, c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE')
        or has_any_column_privilege(x.oid, c.oid, 'SELECT, INSERT, UPDATE'))
  ),
  natives as (
    select x.*,
      format('%I.%I(%s)', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid)) as object,
      p.proowner, l.lanname
    from pg_proc p
      join pg_namespace n on n.oid = p.pronamespace
      join pg_language l on l.oid = p.prolang
      join actors x on x.by is not null and not x.super
      left join pg_depend d on d.classid = 'pg_proc'::regclass and d.objid = p.oid
      and d.deptype = 'e'
      left join pg_extension e on e.oid = d.refobjid
    where p.oid >= 16384 and not ($1::jsonb ->> 'managed')::bool
      and l.lanname not in ('sql', 'plpgsql', 'internal')
      and not coalesce(($1::jsonb -> 'trusted') ? e.extname::text, false)
      and has_schema_privilege(x.oid, n.oid, 'USAGE')
      and has_function_privilege(x.oid, p.oid, 'EXECUTE')
  ),
  servers as (
    select x.*, 'foreign server' as kind, 'SERVER' as altered,
      quote_ident(s.srvname) as object, s.srvowner as owner
    from pg_foreign_server s
      join actors x on x.by is not null and not x.super
      and has_server_privilege(x.oid, s.oid, 'USAGE')
    union all
    select x.*, 'foreign data wrapper', 'FOREIGN DATA WRAPPER', quote_ident(w.fdwname), w.fdwowner
    from pg_foreign_data_wrapper w
      join actors x on x.by is not null and not x.super
      and has_foreign_data_wrapper_privilege(x.oid, w.oid, 'USAGE')
  )
select 'open' as kind, 'foreign table ' || object as outlet,
  sql || coalesce(', whose rights are lent by ' || by, '') || ' may use it: its rows are on another server and do not roll back with ours' as why,
  object, format('"%s" or a superuser', replace(pg_get_userbyid(relowner), '"', '""')) as needs,
  case when by is null then 'relation ' || object else 'role ' || sql end as behind, array[case
      when relowner = oid then format('DROP FOREIGN TABLE %s', object)
      else format('REVOKE ALL ON TABLE %s FROM PUBLIC, %s', object, sql) end] as fix
from tables
union all
select 'open', 'function ' || object,
  format('%s may execute this %s function, and its rights are lent by %s', sql, lanname, by),
  object, format('"%s" or a superuser', replace(pg_get_userbyid(proowner), '"', '""')),
  'role ' || sql, array[format('REVOKE EXECUTE ON ROUTINE %s FROM PUBLIC, %s', object, sql)]
from natives
union all
select 'open', kind || ' ' || object,
  format('%s may use it, and its rights are lent by %s: what is sent to another server does not roll back with ours', sql, by),
  object, 'superuser', 'role ' || sql,
  case
    when owner = oid then array[format('ALTER %s %s OWNER TO %I', altered, object, (select rolname from pg_roles where rolsuper order by oid limit 1))]
    else '{}'
  end || array[format('REVOKE USAGE ON %s %s FROM PUBLIC, %s', upper(kind), object, sql)]
from servers
order by fix desc, outlet;

-- name: event_triggers
-- They fire when definitions change or at every login.
select case when evtenabled = 'D' then 'denied' when evtevent <> 'login' then 'observed' else 'open'
  end as kind, format('event trigger %I', evtname) as outlet,
  case when evtenabled = 'D' then 'it is disabled'
    when evtevent <> 'login' then format('fires on %s; an execution that changes definitions is refused by the counters', evtevent)
    else 'It runs at every login, before anything of ours' end as why,
  quote_ident(evtname) as object, 'superuser' as needs,
  array[format('ALTER EVENT TRIGGER %I DISABLE', evtname)] as fix
from pg_event_trigger
order by evtname collate "C";

-- name: foreign_servers
-- Foreign servers that the execution login could connect to with a user mapping.
with mapped as (
    select s.oid, quote_ident(s.srvname) as object, s.srvowner, w.fdwname,
      case
        when m.usename = $1::jsonb ->> 'executor' then format('"%s"', replace(m.usename, '"', '""'))
        when m.usename is null or m.usename in ('public', '') then 'PUBLIC' end as login,
      m.umid is not null as mapped
    from pg_foreign_server s
      join pg_foreign_data_wrapper w on w.oid = s.srvfdw
      left join pg_user_mappings m on m.srvid = s.oid
  )
select 'open' as kind, format('user mapping of %s on %s', login, object) as outlet,
  format('"%s" can log in to another server with it', replace($1::jsonb ->> 'executor', '"', '""')) as why,
  object, format('"%s" or a superuser', replace(pg_get_userbyid(srvowner), '"', '""')) as needs,
  array[format('DROP USER MAPPING FOR %s SERVER %s', login, object)] as fix
from mapped
where mapped and login is not null
union all
select distinct 'denied', format('foreign server %s (%s)', object, fdwname),
  'no user mapping and no foreign table within reach', null, null, null::text[]
from mapped m
where not exists (select from mapped x where x.oid = m.oid and x.mapped and x.login is not null)
union all
select 'denied', 'foreign servers', 'none', null, null, null
where not exists (select from pg_foreign_server)
order by 2;

-- name: replication
select 'observed' as kind, format('publication %I', p.pubname) as outlet,
  case when p.puballtables then 'all tables' else coalesce((select string_agg(
            format('%I.%I', t.schemaname, t.tablename), ', '
            order by format('%I.%I', t.schemaname, t.tablename))
        from pg_publication_tables t
        where t.pubname = p.pubname), 'no table')
  end || ': subscribers get what was compared, after the commit' as why
from pg_publication p
union all
select 'denied', format('subscription %I', s.subname),
  case when s.subenabled then 'active' else 'disabled'
  end || ': writes as another session, not as the execution'
from pg_subscription s
  join pg_database d on d.oid = s.subdbid
where d.datname = current_database()
order by 2;

-- name: server_settings
-- Settings of the server that the evidence or its durability depends on, and the libraries that it
-- loads into every session. With the managed boundary, what the provider loads is trusted.
with required (name, value, why) as (
    values
      ('fsync', 'on', 'commits are acknowledged before they are on disk'),
      ('full_page_writes', 'on', 'a torn page loses acknowledged commits'),
      ('track_counts', 'on', 'the counters of the second witness stand still'),
      ('lo_compat_privileges', 'off', 'large objects have no access control'),
      ('allow_system_table_mods', 'off', 'catalogues can be written like tables'),
      ('zero_damaged_pages', 'off', 'damaged rows vanish silently'),
      ('ignore_system_indexes', 'off', 'catalogue constraints are not enforced'),
      ('standard_conforming_strings', 'on', 'strings in function bodies mean something else than they say'),
      ('session_replication_role', 'origin', 'triggers do not fire'),
      ('row_security', 'on', 'policies are not applied'),
      ('default_transaction_read_only', 'off', 'no transaction can write')
  ),
  preloads (name, list) as (
    select n, s.reset_val from unnest(array['shared', 'session', 'local']) k
      cross join lateral concat(k, '_preload_libraries') n
      left join pg_settings s on s.name = n
  )
select case when s.reset_val is not distinct from r.value then 'denied' else 'open' end as kind,
  'setting ' || r.name as outlet,
  case when s.reset_val is not distinct from r.value then 'is ' || r.value
    else concat('It is ', s.reset_val, ': ', r.why) end as why, null as closer, r.name as object,
  'superuser' as needs,
  array[format('ALTER SYSTEM SET %s = %s', r.name, r.value), 'SELECT pg_catalog.pg_reload_conf()'] as fix
from required r
  left join pg_settings s using (name)
union all
select 'denied', 'setting synchronous_commit',
  format('pinned when the candidate is promoted (server: %s)', reset_val), null, null, null, null
from pg_settings
where name = 'synchronous_commit'
union all
select 'denied', 'PREPARE TRANSACTION',
  'the deferred check on the record channel raises without a marker', null, null, null, null
union all
select 'denied', 'setting ' || name,
  concat(coalesce(list, 'not visible to this login'), '; what the provider loads into its server is trusted'),
  'provider', null, null, null
from preloads
where ($1::jsonb ->> 'managed')::bool
union all
select case when ($1::jsonb -> 'libraries') ? library then 'observed' else 'open'
  end, 'library ' || library,
  case
    when ($1::jsonb -> 'libraries') ? library then format('in %s; watches and does not act, or vouched for', name)
    else format('%s loads it into every session and its code is not known', name)
  end, null, name, 'superuser; shared_preload_libraries also a restart',
  array[format('ALTER SYSTEM RESET %s', name), 'SELECT pg_catalog.pg_reload_conf()']
from preloads
  cross join lateral regexp_split_to_table(list, '\s*,\s*') l
  cross join lateral trim(l) library
where library <> '' and not ($1::jsonb ->> 'managed')::bool;
