-- Outlets that the server can list itself. Each statement returns findings: `kind` (open, observed or
-- denied), `outlet`, `why`, and for an open one also `object`, `needs`, `behind`, `keep` and `fix`; `closer`
-- says what closes a denied one with the managed boundary.
-- Parameter 1 is JSON: `executor`, `control` and `owner` (roles), `managed`, `lent` (roles whose rights
-- code lends to an execution, with the reason and the statements that end it), `tables` (the registered
-- ones, with the statements that make their recorders), `recorders` (what these must be), `registered`,
-- `views` and `reached` (object ids of relations), `path` (schemas that sessions search), `dangers`
-- (volatile built-ins with the reason), `dangerous` and `session` (names), `harmless` (a pattern for settings), `reading`
-- (roles), `trusted` (extensions), `libraries` (trusted ones), `provision` (advice), `guards` (the
-- statements that make them), and `owned` (what the execution login owns) and `heir` (a
-- role that can own it instead, quoted). Statements find the parts of `catalog.sql` that they name,
-- such as `grants`, as tables, and so `actors` below. What would be dropped comes after what is revoked,
-- so that the statements of all findings can be run in order.

-- name: names
-- What the managed boundary adds to the server's rights.
select 'denied' as kind, 'names in statements' as outlet,
  'the managed boundary: every name is looked up in the catalogue, with search_path = '
  || array_to_string(array(select jsonb_array_elements_text($1::jsonb -> 'path')), ', ') as why,
  'gate' as closer
where ($1::jsonb ->> 'managed')::bool;

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

-- name: trusted_roles
-- The role that owns our own objects, and their schema.
with owner as (
    select $1::jsonb ->> 'owner' as name,
      format('"%s"', replace($1::jsonb ->> 'owner', '"', '""')) as sql
  )
select 1 as place, 'open' as kind, format('role %s that owns the evidence', sql) as outlet,
  format('It must be %s: the recorders run with its rights', keyword) as why, sql as object,
  'superuser' as needs, array[format('ALTER ROLE %s %s', sql, keyword)] as fix
from owner
  join roles r using (name)
  cross join lateral (
    values
      (r.login, 'NOLOGIN'),
      (r.super, 'NOSUPERUSER'),
      (r.replication, 'NOREPLICATION'),
      (r.createrole, 'NOCREATEROLE')
  ) a (has, keyword)
where has
union all
select 2, case when s.owner = o.name then 'denied' else 'open' end, 'schema effectmatch',
  case when s.owner = o.name then format('owned by %s, which cannot log in', sql)
    else format('It belongs to "%s", not to %s', replace(s.owner, '"', '""'), sql) end,
  'effectmatch', 'superuser', array[format('ALTER SCHEMA effectmatch OWNER TO %s', sql)]
from schemas s
  cross join owner o
where s.name = 'effectmatch'
order by 1;

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

-- name: registered
-- Whether the registered tables and their partitions are what was registered, and all writes to them are
-- recorded.
with recursive
  tables as (
    select * from jsonb_to_recordset($1::jsonb -> 'tables') t (oid int8, target text, bulk bool,
        volatile text[], leaves int8[], recorders text[])
  ),
  leaves as (
    select t.oid as root, t.bulk, t.recorders, true as known, true as is_root, r.oid, r.object, r.kind, r.owner, r.parents,
      r.partition, r.persistence, r.extension
    from tables t
      join relations r using (oid)
    union all
    select l.root, l.bulk, l.recorders, r.oid = any (t.leaves), false, r.oid, r.object, r.kind, r.owner, r.parents, r.partition,
      r.persistence, r.extension
    from leaves l
      join tables t on t.oid = l.root
      join relations r on r.partition and l.oid = any (r.parents)
  ),
  -- What each partition must have, as provisioning makes it. Only the table itself refuses TRUNCATE.
  recorders as (
    select l.oid, e.name, t.name is not null as found, t."functionSchema" = 'effectmatch' and t."functionName" = e.calls
      and t.type = e.type and t.attributes = 0 and not t.deferrable and t.enabled = 'A'
      and coalesce(substring(t.definition from '\mWHEN \((.*)\) EXECUTE (?:FUNCTION|PROCEDURE)'), o.condition) = o.condition as intact
    from leaves l
      join jsonb_to_recordset($1::jsonb -> 'recorders') e (bulk bool, name text, calls text, type int) on e.bulk = l.bulk
      -- Its condition may exclude only other logins.
      cross join lateral format('(SESSION_USER = %L::name)', $1::jsonb ->> 'executor') o (condition)
      left join triggers t on t.relation = l.oid and t.name = e.name
    where l.known and l.kind <> 'f' and (l.is_root or not l.bulk)
  ),
  faults (oid, what, why, keep, fix) as (
    select l.oid, 'inheritance of ', format('%s inherits from it: rows written through the parent lose columns in the record', c.object),
      false, format('ALTER TABLE %s NO INHERIT %s', c.object, l.object)
    from leaves l
      join relations c on not c.partition and l.oid = any (c.parents)
    where l.is_root
    union all
    -- The server's own tables are no rows of `relations`.
    select l.oid, 'inheritance of ', 'it inherits from ' || p.object, false,
      format('ALTER TABLE %s NO INHERIT %s', l.object, p.object)
    from leaves l
      cross join unnest(l.parents) u (parent)
      left join relations r on r.oid = u.parent
      cross join lateral coalesce(r.object, u.parent::oid::regclass::text) p (object)
    where l.is_root and not l.partition
    union all
    select oid, 'extension of ', format('it belongs to extension %s, whose code may act on its rows after the commit', extension),
      false, format('ALTER EXTENSION "%s" DROP TABLE %s', replace(extension, '"', '""'), object)
    from leaves
    where is_root and not ($1::jsonb -> 'trusted') ? extension
    union all
    select oid, 'ownership of ', 'the execution login owns it', false,
      format('ALTER TABLE %s OWNER TO %s', object, $1::jsonb ->> 'heir')
    from leaves
    where is_root and owner = $1::jsonb ->> 'executor'
    union all
    select oid, 'persistence of ', 'It is unlogged: a crash of the server empties it after the commit was acknowledged',
      false, format('ALTER TABLE %s SET LOGGED', object)
    from leaves
    where persistence = 'u'
    union all
    select l.oid, 'foreign partition ', format('It is a foreign table below %s: its rows leave the database', r.object),
      false, format('ALTER TABLE %s DETACH PARTITION %s', r.object, l.object)
    from leaves l
      join relations r on r.oid = l.root
    where l.kind = 'f'
    union all
    select l.oid, 'partition ', format('It became a part of %s after that was registered; opening the adapter again would register it', r.object),
      false, format('ALTER TABLE %s DETACH PARTITION %s', p.object, l.object)
    from leaves l
      join relations r on r.oid = l.root
      join relations p on p.oid = l.parents[1]
    where not l.known and l.kind <> 'p'
    union all
    select oid, 'recorders on ', 'It is registered, and nothing records its writes yet', true, null
    from recorders
    group by oid
    having not bool_or(found)
    union all
    select r.oid, format('recorder %s on ', r.name), case
        when r.found then 'It is not as provisioning made it, or does not always fire'
        else 'It is missing, so writes would not be recorded' end, true, null
    from recorders r
      join leaves l using (oid)
    where r.intact is not true and (l.is_root or r.name <> 'effectmatch_truncate')
      and exists (select from recorders x where x.oid = r.oid and x.found)
  )
select 'open' as kind, f.what || l.object as outlet, f.why, l.object,
  format('"%s" or a superuser', replace(l.owner, '"', '""')) as needs, 'relation ' || l.object as behind,
  case when f.keep then $1::jsonb ->> 'provision' end as keep,
  case when f.keep then l.recorders else array[f.fix] end as fix
from faults f
  join leaves l using (oid)
union all
select 'open', 'relation ' || t.target, 'It is registered and no longer exists under its object id', t.target,
  'the deployment', null, null, array['-- open the adapter again with the relations that exist']
from tables t
where not exists (select from leaves l where l.oid = t.oid)
union all
select 'observed', 'relation ' || t.target, concat(case when t.bulk then 'statement' else 'row'
    end, ' recorders and counters', '; volatile and not compared: ' || nullif(array_to_string(t.volatile, ', '), '')),
  null, null, null, null, null
from tables t
where exists (select from leaves l where l.oid = t.oid)
  and not exists (select from faults f
    join leaves l using (oid)
    where l.root = t.oid)
order by outlet;

-- name: attached
-- Triggers, rules, policies and deferrable checks on every relation that a write can reach. SET
-- CONSTRAINTS looks for a constraint in the schema of its table, so code that is deferred until COMMIT can
-- be made to run before the observation only if the execution login may use that schema.
with reached as (
    select r.oid, r.object, r.schema, r.owner, coalesce(s.owner, r.owner) as lender,
      coalesce(s.object, format('"%s"', replace(r.schema, '"', '""'))) as place,
      exists (select from grants g
        where g.kind = 'SCHEMA' and g.privilege = 'USAGE' and g.object = s.object
          and g.grantee in ('', $1::jsonb ->> 'executor')) as usable
    from relations r
      left join schemas s on s.name = r.schema
    where $1::jsonb -> 'reached' @> to_jsonb(r.oid)
  ),
  found as (
    select 1 as part, format('trigger %s on %s', t.object, r.object) as outlet, r.*,
      case when t.enabled not in ('O', 'A') then 'disabled'
        when t.deferrable and t."functionName" <> 'unique_key_recheck' then 'deferred'
        when not t.internal then 'trigger' end as state
    from triggers t
      join reached r on r.oid = t.relation
    where 'effectmatch' not in (r.schema, t."functionSchema")
    union all
    select 2, format('constraint %s on %s', k.object, r.object), r.*,
      -- Deferred code matters only if it is the application's.
      case when k.kind <> 'f' and exists (select from uses u
          where u.object = k.oid or u.relation = r.oid and u.class = 'pg_class')
        then 'deferred' else 'forced' end
    from constraints k
      join reached r on r.oid = k.relation
    where k.deferrable
    union all
    select 4, format('policy %s on %s', p.object, r.object), r.*, 'policy' from policies p
      join reached r on r.oid = p.relation
  )
select part, case when state = 'disabled' then 'denied' when state = 'deferred' and not usable then 'open'
    else 'observed' end as kind, outlet,
  case state when 'disabled' then 'it is disabled'
    when 'trigger' then 'its writes are recorded or counted; its function is judged below'
    when 'policy' then 'restricts rows; the functions it calls are judged below'
    else case when state = 'deferred' and not usable then 'It is deferrable and runs code of the application. The execution login may not use its schema, so that code cannot be made to run before the observation, and would run at COMMIT'
      else 'deferrable; forced before the observation, and what it writes after that is refused' end
  end as why, object, format('"%s" or a superuser', replace(lender, '"', '""')) as needs,
  'relation ' || object as behind,
  array[format('GRANT USAGE ON SCHEMA %s TO "%s"', place, replace($1::jsonb ->> 'executor', '"', '""'))] as fix
from found
where state is not null
union all
select 3, case when w.event = '1' then 'observed' when w.enabled = 'D' then 'denied' else 'open' end,
  case when w.event = '1' then 'query of view ' || r.object
    else format('rule %s on %s', w.object, r.object) end,
  case when w.event = '1' then 'holds no data; what it reads and calls is followed'
    when w.enabled = 'D' then 'it is disabled'
    else 'It replaces or adds statements after the agent''s own was read' end, r.object,
  format('"%s" or a superuser', replace(r.owner, '"', '""')), 'relation ' || r.object,
  array[format('DROP RULE %s ON %s', w.object, r.object)]
from rules w
  join reached r on r.oid = w.relation
union all
-- Rules on the server's own views, except those that it came with.
select 3, 'open', format('rule %s on %s', w.object, v.name),
  'It is not one that the server came with, and what it does to a view of the server is not followed',
  v.name, 'superuser', null, array[format('DROP RULE %s ON %s', w.object, v.name)]
from rules w
  cross join lateral coalesce(substring(w.definition from '\mON \w+ TO (\S+)'), '') v (name)
where w.event <> '1' and not exists (select from relations r where r.oid = w.relation)
order by part, outlet;

-- name: privileges
-- Every privilege of the execution login, its own or of PUBLIC, compared with what is registered. `use`
-- says what observes the use of a privilege; it is empty if that leaves nothing behind, and null if the
-- privilege is an open outlet. The managed boundary leaves rights of PUBLIC in place: it admits no
-- statement that defines or locks things, and none that writes to other tables.
with held as (
    select g.*, format('%s ON %s %s', g.privilege, g.kind, g.object) as outlet, b.base,
      r.object as relation, coalesce(r.schema = 'effectmatch', false) as ours,
      coalesce(r.kind = 'f', false) as far,
      coalesce(($1::jsonb -> 'registered') || ($1::jsonb -> 'views') @> to_jsonb(r.oid), false) as registered,
      -- A sequence that a registered column draws its default from.
      g.kind = 'SEQUENCE' and exists (select from columns c
        where $1::jsonb -> 'registered' @> to_jsonb(c.relation) and c."defaultText" like '%nextval(%'
          and strpos(c."defaultText", format('''%s''::regclass', replace(g.object, '''', ''''''))) > 0) as drawn
    from grants g
      cross join lateral (select case g.kind when 'TABLE' then g.object
            when 'COLUMN' then regexp_replace(g.object, '\([^()]*\)$|\(".*"\)$', '') end) b (base)
      left join relations r on r.object = b.base
    where g.grantee in ('', $1::jsonb ->> 'executor')
  ),
  judged as (
    select *, case when grantable then null
        when kind = 'DATABASE' and privilege = 'CONNECT' then ''
        when kind = 'SCHEMA' and privilege = 'USAGE' then ''
        when kind = 'FUNCTION' then ''
        when outlet = 'INSERT ON TABLE effectmatch.probe' then 'relation for admission probes, recorded like the others'
        when ours or far then null
        when kind in ('TABLE', 'COLUMN', 'SEQUENCE') and privilege = 'SELECT' then ''
        when registered and privilege in ('INSERT', 'UPDATE', 'DELETE') then ''
        when drawn and privilege = 'USAGE' then 'its positions are read before and after; values it gave out are residue'
      end as use, ($1::jsonb ->> 'managed')::bool and grantee = '' and kind not like 'FOREIGN%'
      and object not like 'effectmatch.%' as gated
    from held
  ),
  open as (
    select j.*, case when grantee = '' then 'PUBLIC'
        else format('"%s"', replace(grantee, '"', '""')) end as role,
      format('"%s"', replace(grantor, '"', '""')) as granted_by,
      case when grantable then 'may hand on this right' else coalesce(w.why, 'may write it, and it is not registered') end as what
    from judged j
      left join (
        values
          ('CREATE', 'may create objects'),
          ('TEMPORARY', 'may create temporary tables, which hide behind the names of others; a database made from a template has this by default'),
          ('TRUNCATE', 'may empty it without a row being recorded'),
          ('REFERENCES', 'may tie other tables to it'),
          ('TRIGGER', 'may attach code to it'),
          ('MAINTAIN', 'may rewrite or lock it'),
          ('USAGE', 'may use it')
      ) w (privilege, why) using (privilege)
    where use is null and not gated
  )
select 1 as part, 'open' as kind, outlet,
  format('"%s" %s (granted to %s by %s)', replace($1::jsonb ->> 'executor', '"', '""'), what, role, granted_by) as why,
  null as closer, object, format('"%s" or a superuser', replace(owner, '"', '""')) as needs,
  -- A function of the server takes the table for MAINTAIN as a value, so no text has to name it.
  case when privilege <> 'MAINTAIN' and not ours then 'relation ' || relation end as behind,
  case when foreign_grant then array[format('SET ROLE %s', granted_by), revoke, 'RESET ROLE'] else array[revoke] end as fix
from open
  cross join lateral (select grantor not in (owner, '') and kind <> 'PARAMETER',
      format('REVOKE %s FROM %s', case when kind = 'COLUMN'
          then format('%s %s ON TABLE %s', privilege, substr(object, length(base) + 1), base)
          else outlet end, role) || case when grantable then ' CASCADE' else '' end
  ) f (foreign_grant, revoke)
union all
select 1, 'denied', outlet,
  'PUBLIC has it; statements that would use it are not admitted, and what code does with it is counted',
  'gate', null, null, null, null
from judged
where use is null and gated
union all
select 1, 'observed', outlet, use, null, null, null, null, null
from judged
where use <> ''
union all
select 2, 'denied', format('other privileges on %ss', lower(k)),
  format('none granted to "%s" or PUBLIC beyond reading and connecting (%s such)', replace($1::jsonb ->> 'executor', '"', '""'),
    (select count(*) from judged j where j.kind = k and use = '')), null, null, null, null, null
from unnest(array['DATABASE', 'SCHEMA', 'TABLE', 'COLUMN', 'SEQUENCE', 'LANGUAGE', 'PARAMETER',
    'FOREIGN SERVER', 'FOREIGN DATA WRAPPER', 'TABLESPACE']) k
where k not in (select o.kind from open o)
union all
select 3, 'denied', 'other databases of the server',
  'a session cannot change its database, and code that opens connections is refused', null, null,
  null, null, null
order by part, outlet;

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
-- member of a role that may call them, one finding stands for all of them. With the managed boundary
-- every role may call them, because defaults cannot be revoked, and no code may name them.
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
    where not ($1::jsonb ->> 'managed')::bool and not x.super and p.oid < 16384 and p.provolatile = 'v'
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
  null as closer, object, 'superuser, or the owner of the built-in functions' as needs, 'role ' || case
    when by is not null then sql end as behind, null as keep,
  array[format('REVOKE EXECUTE ON FUNCTION %s FROM %s', object, array_to_string(grantees, ', '))] as fix
from judged
where not member
union
select 'open', 'rights of ' || sql,
  format('It may call built-ins that act outside the transaction, as a member of %s, and its rights are lent by %s', g, by),
  null, sql, 'superuser, or ADMIN OPTION on ' || g, 'role ' || sql, $1::jsonb ->> 'provision',
  array[format('REVOKE %s FROM %s', g, sql)]
from judged
  cross join unnest(grantees) g
where member
union
select 'denied', 'dangerous built-in functions',
  'no volatile built-in outside the list of harmless ones is executable', null, null, null, null,
  null, null
where not ($1::jsonb ->> 'managed')::bool
  and not exists (select from callable where role = $1::jsonb ->> 'executor')
union
select 'denied', 'built-in that ' || why,
  'no statement and no code of the application may name ' || string_agg(name, ', ' order by name), 'gate',
  null, null, null, null, null
from (select * from jsonb_each_text($1::jsonb -> 'dangers')
    union all
    values ('pg_settings', 'changes settings of the session')) d (name, why)
where ($1::jsonb ->> 'managed')::bool
group by why
union
select 'denied', 'large objects',
  format('%s owned and %s writable by "%s"; ', count(*) filter (where pg_get_userbyid(m.lomowner) = $1::jsonb ->> 'executor'),
    count(*) filter (where exists (select from aclexplode(m.lomacl) a
        where a.privilege_type = 'UPDATE'
          and (a.grantee = 0 or pg_get_userbyid(a.grantee) = $1::jsonb ->> 'executor'))),
    replace($1::jsonb ->> 'executor', '"', '""')) || case when ($1::jsonb ->> 'managed')::bool
    then 'no statement or code may name the writing functions'
    else 'none of the writing functions is executable' end, 'gate', null, null, null, null, null
from pg_largeobject_metadata m
having not exists (select from callable where object like 'pg\_catalog.lo%')
union
select 'denied', 'NOTIFY and LISTEN',
  format('the statement is not admitted, %s, and function bodies with them are refused', case
      when ($1::jsonb ->> 'managed')::bool then 'no statement or code may name pg_notify'
      else 'pg_notify is not executable' end), 'gate', null, null, null, null, null
union
select 'denied', 'COPY, DO, LOCK, SET, DDL and transaction control by the agent',
  'the statement is not admitted; definitions changed by code show in the counters', 'gate', null,
  null, null, null, null
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

-- name: stored_settings
-- The search path of the server, and settings stored on databases and roles. A search path decides
-- which objects the names in agent SQL mean, and effects are compared by object. It affects nothing
-- else, because our own calls name schemas and the control login sets its own path. The exception is a
-- path with other schemas before pg_catalog: their functions and operators could stand in for the server's.
with ours (role) as (
    select unnest(array['', $1::jsonb ->> 'executor', $1::jsonb ->> 'control', $1::jsonb ->> 'owner'])
    union
    select l ->> 'role' from jsonb_array_elements($1::jsonb -> 'lent') l
  ),
  stored as (
    select s.name, s.value, coalesce(nullif(concat_ws(' in ', 'role ' || q.role, 'database ' || q.database), ''), 'all roles') as place,
      case when q.role is null and q.database is not null then 'ALTER DATABASE ' || q.database
        else concat('ALTER ROLE ', coalesce(q.role, 'ALL'), ' IN DATABASE ' || q.database) end as alter,
      s.role in ('', $1::jsonb ->> 'executor') as of_agents, s.role = $1::jsonb ->> 'executor' as of_executor
    from settings s
      join ours o on o.role = s.role
      cross join lateral (select '"' || replace(nullif(s.role, ''), '"', '""') || '"',
          '"' || replace(nullif(s.database, ''), '"', '""') || '"') q (role, database)
    union all
    -- It is read in a session of the control login, where a stored path would replace it.
    select 'search_path', coalesce((select value from server_settings where name = 'search_path'), ''),
      'the server', 'ALTER SYSTEM', true, false
    where not exists (select from settings s where s.name = 'search_path'
        and s.role in ('', $1::jsonb ->> 'executor', $1::jsonb ->> 'control'))
  ),
  judged as (
    select s.*, format('setting %s of %s', s.name, s.place) as outlet, p.others, case
        when s.name = 'search_path' and not s.of_agents then 'no session of this role looks up a name by it'
        when s.name = 'search_path' and p.first > 1 then null
        when s.name = 'search_path' then 'says what names in actions mean, and effects are compared by object'
        when s.name = 'default_transaction_read_only' and s.value = 'on' and s.of_executor then ''
        when s.name ~* ($1::jsonb ->> 'harmless') then 'affects neither what is written nor how durably'
      end as closed
    from stored s
      -- As the server reads it: any white space, and names without quotes in any case.
      cross join lateral (select min(n) filter (where system) as first,
          string_agg(t, ', ' order by n) filter (where not system) as others
        from regexp_matches(s.value, '(?:"(?:[^"]|"")*"|[^,"])+', 'g') with ordinality x (m, n)
          cross join lateral regexp_replace(m[1], '^\s+|\s+$', '', 'g') t
          cross join lateral (select t = '"pg_catalog"' or lower(t) = 'pg_catalog') u (system)) p
  )
select case when closed is null then 'open' else 'denied' end as kind, outlet,
  case when closed = '' then 'outside a stage the execution login writes nothing'
    when closed is not null then format('is %s; %s', value, closed)
    when name <> 'search_path' then format('It is %s in every new session there, before anything of ours runs', value)
    else format('It is %s and puts other schemas before pg_catalog, so that their functions and operators would answer for those of the server. Leave pg_catalog out; the server then looks there first', value)
  end as why, name as object, 'superuser, or the owner of the database or role' as needs,
  case when name <> 'search_path' then array[format('%s RESET "%s"', alter, replace(name, '"', '""'))]
    else array[format('%s SET search_path = %s', alter, others)] || case
        when place = 'the server' then array['SELECT pg_catalog.pg_reload_conf()'] end end as fix
from judged
order by place = 'the server' desc, outlet;

-- name: operators
-- The functions that they call are judged elsewhere, except those of the server, for which neither a
-- right nor the name in a statement is asked.
select case when danger is null then 'observed' else 'open' end as kind, description as outlet,
  case when danger is null then 'its function is judged above; our own statements name operators by schema'
    else format('It is a sign for %s, which %s: neither recorders nor counters see that', builtin, danger)
  end as why, description as object, 'the owner of the operator, or a superuser' as needs,
  array['DROP ' || regexp_replace(description, 'operator', 'OPERATOR')] as fix
from operators o
  cross join lateral (select case when builtin = 'setval' then 'moves a sequence'
        when ($1::jsonb -> 'session') ? builtin then 'changes the session'
        when ($1::jsonb ->> 'managed')::bool then $1::jsonb -> 'dangers' ->> builtin end) d (danger)
where danger is not null or extension is null
order by description;
