-- What a survey reads, one statement per part of the catalogue. Rows are ordered byte by byte,
-- whatever the collation of the database, so that equal configurations give equal rows. Names come
-- quoted as SQL needs them. Object ids only join parts of one reading and never enter a digest; those
-- below 16384 are the server's own.

-- name: server
select
  current_setting('server_version_num')::int / 10000 as major,
  current_database()::text as database,
  (
    select
      rolname::text
    from
      pg_roles
    where
      oid = d.datdba
  ) as owner
from
  pg_database d
where
  datname = current_database();

-- name: roles
select
  rolname::text as name,
  rolsuper as super,
  rolinherit as inherit,
  rolcreaterole as createrole,
  rolcreatedb as createdb,
  rolcanlogin as login,
  rolreplication as replication,
  rolbypassrls as bypassrls,
  rolconnlimit as connections,
  rolvaliduntil::text as "validUntil"
from
  pg_roles
order by
  rolname collate "C";

-- name: memberships
select
  m.rolname::text as member,
  r.rolname::text as role,
  a.admin_option as admin,
  coalesce((to_jsonb(a) ->> 'inherit_option')::boolean, m.rolinherit) as inherit,
  coalesce((to_jsonb(a) ->> 'set_option')::boolean, true) as "set",
  coalesce(g.rolname::text, '') as grantor
from
  pg_auth_members a
  join pg_roles m on m.oid = a.member
  join pg_roles r on r.oid = a.roleid
  left join pg_roles g on g.oid = a.grantor
order by
  m.rolname collate "C",
  r.rolname collate "C",
  g.rolname collate "C";

-- name: grants
-- Privileges of access lists, except those of owners. An empty grantee is PUBLIC.
select
  *
from
  (
    select
      'DATABASE' as kind,
      format('%I', d.datname) as object,
      o.rolname as owner,
      coalesce(g.rolname, '') as grantee,
      a.privilege_type as privilege,
      a.is_grantable as grantable,
      coalesce(r.rolname, '') as grantor
    from
      pg_database d
      join pg_roles o on o.oid = d.datdba
      cross join lateral aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a
      left join pg_roles g on g.oid = a.grantee
      left join pg_roles r on r.oid = a.grantor
    where
      a.grantee <> d.datdba
      and (d.datname = current_database())
    union all
    select
      'SCHEMA' as kind,
      format('%I', n.nspname) as object,
      o.rolname as owner,
      coalesce(g.rolname, '') as grantee,
      a.privilege_type as privilege,
      a.is_grantable as grantable,
      coalesce(r.rolname, '') as grantor
    from
      pg_namespace n
      join pg_roles o on o.oid = n.nspowner
      cross join lateral aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a
      left join pg_roles g on g.oid = a.grantee
      left join pg_roles r on r.oid = a.grantor
    where
      a.grantee <> n.nspowner
      and (n.nspname !~ '^pg_(toast_)?temp_')
    union all
    select
      'TABLE' as kind,
      pg_catalog.format('%I.%I', n.nspname, c.relname) as object,
      o.rolname as owner,
      coalesce(g.rolname, '') as grantee,
      a.privilege_type as privilege,
      a.is_grantable as grantable,
      coalesce(r.rolname, '') as grantor
    from
      pg_class c
      join pg_namespace n on n.oid = c.relnamespace
      join pg_roles o on o.oid = c.relowner
      cross join lateral aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a
      left join pg_roles g on g.oid = a.grantee
      left join pg_roles r on r.oid = a.grantor
    where
      a.grantee <> c.relowner
      and (
        c.relkind in ('r', 'p', 'v', 'm', 'f')
        and c.relpersistence <> 't'
        and (
          c.oid >= 16384
          or a.privilege_type <> 'SELECT'
        )
        and not exists (
          select
          from
            pg_init_privs i
            cross join lateral aclexplode(i.initprivs) x
          where
            i.classoid = 'pg_class'::regclass
            and i.objoid = c.oid
            and c.oid < 16384
            and x.grantee = a.grantee
            and x.privilege_type = a.privilege_type
        )
      )
    union all
    select
      'SEQUENCE' as kind,
      pg_catalog.format('%I.%I', n.nspname, c.relname) as object,
      o.rolname as owner,
      coalesce(g.rolname, '') as grantee,
      a.privilege_type as privilege,
      a.is_grantable as grantable,
      coalesce(r.rolname, '') as grantor
    from
      pg_class c
      join pg_namespace n on n.oid = c.relnamespace
      join pg_roles o on o.oid = c.relowner
      cross join lateral aclexplode(coalesce(c.relacl, acldefault('s', c.relowner))) a
      left join pg_roles g on g.oid = a.grantee
      left join pg_roles r on r.oid = a.grantor
    where
      a.grantee <> c.relowner
      and (
        c.relkind = 'S'
        and c.relpersistence <> 't'
      )
    union all
    select
      'COLUMN' as kind,
      format('%I.%I(%I)', n.nspname, c.relname, t.attname) as object,
      o.rolname as owner,
      coalesce(g.rolname, '') as grantee,
      a.privilege_type as privilege,
      a.is_grantable as grantable,
      coalesce(r.rolname, '') as grantor
    from
      pg_attribute t
      join pg_class c on c.oid = t.attrelid
      join pg_namespace n on n.oid = c.relnamespace
      join pg_roles o on o.oid = c.relowner
      cross join lateral aclexplode(coalesce(t.attacl, acldefault('c', c.relowner))) a
      left join pg_roles g on g.oid = a.grantee
      left join pg_roles r on r.oid = a.grantor
    where
      a.grantee <> c.relowner
      and (
        t.attacl is not null
        and not t.attisdropped
        and c.relpersistence <> 't'
        and (
          c.oid >= 16384
          or a.privilege_type <> 'SELECT'
        )
      )
    union all
    select
      'FUNCTION' as kind,
      pg_catalog.format('%I.%I(%s)', n.nspname, p.proname, pg_catalog.pg_get_function_identity_arguments(p.oid)) as object,
      o.rolname as owner,
      coalesce(g.rolname, '') as grantee,
      a.privilege_type as privilege,
      a.is_grantable as grantable,
      coalesce(r.rolname, '') as grantor
    from
      pg_proc p
      join pg_namespace n on n.oid = p.pronamespace
      join pg_roles o on o.oid = p.proowner
      cross join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
      left join pg_roles g on g.oid = a.grantee
      left join pg_roles r on r.oid = a.grantor
    where
      a.grantee <> p.proowner
      and (p.oid >= 16384)
    union all
    select
      'LANGUAGE' as kind,
      format('%I', l.lanname) as object,
      o.rolname as owner,
      coalesce(g.rolname, '') as grantee,
      a.privilege_type as privilege,
      a.is_grantable as grantable,
      coalesce(r.rolname, '') as grantor
    from
      pg_language l
      join pg_roles o on o.oid = l.lanowner
      cross join lateral aclexplode(coalesce(l.lanacl, acldefault('l', l.lanowner))) a
      left join pg_roles g on g.oid = a.grantee
      left join pg_roles r on r.oid = a.grantor
    where
      a.grantee <> l.lanowner
      and (
        l.lanpltrusted
        or l.lanacl is not null
      )
    union all
    select
      'FOREIGN DATA WRAPPER' as kind,
      format('%I', w.fdwname) as object,
      o.rolname as owner,
      coalesce(g.rolname, '') as grantee,
      a.privilege_type as privilege,
      a.is_grantable as grantable,
      coalesce(r.rolname, '') as grantor
    from
      pg_foreign_data_wrapper w
      join pg_roles o on o.oid = w.fdwowner
      cross join lateral aclexplode(coalesce(w.fdwacl, acldefault('F', w.fdwowner))) a
      left join pg_roles g on g.oid = a.grantee
      left join pg_roles r on r.oid = a.grantor
    where
      a.grantee <> w.fdwowner
      and (true)
    union all
    select
      'FOREIGN SERVER' as kind,
      format('%I', s.srvname) as object,
      o.rolname as owner,
      coalesce(g.rolname, '') as grantee,
      a.privilege_type as privilege,
      a.is_grantable as grantable,
      coalesce(r.rolname, '') as grantor
    from
      pg_foreign_server s
      join pg_roles o on o.oid = s.srvowner
      cross join lateral aclexplode(coalesce(s.srvacl, acldefault('S', s.srvowner))) a
      left join pg_roles g on g.oid = a.grantee
      left join pg_roles r on r.oid = a.grantor
    where
      a.grantee <> s.srvowner
      and (true)
    union all
    select
      'TABLESPACE' as kind,
      format('%I', t.spcname) as object,
      o.rolname as owner,
      coalesce(g.rolname, '') as grantee,
      a.privilege_type as privilege,
      a.is_grantable as grantable,
      coalesce(r.rolname, '') as grantor
    from
      pg_tablespace t
      join pg_roles o on o.oid = t.spcowner
      cross join lateral aclexplode(coalesce(t.spcacl, acldefault('t', t.spcowner))) a
      left join pg_roles g on g.oid = a.grantee
      left join pg_roles r on r.oid = a.grantor
    where
      a.grantee <> t.spcowner
      and (true)
    union all
    select
      'PARAMETER' as kind,
      p.parname as object,
      o.rolname as owner,
      coalesce(g.rolname, '') as grantee,
      a.privilege_type as privilege,
      a.is_grantable as grantable,
      coalesce(r.rolname, '') as grantor
    from
      pg_parameter_acl p
      join pg_roles o on o.oid = 10
      cross join lateral aclexplode(coalesce(p.paracl, acldefault('p', 10))) a
      left join pg_roles g on g.oid = a.grantee
      left join pg_roles r on r.oid = a.grantor
    where
      a.grantee <> 10
      and (true)
  ) g
order by
  kind collate "C",
  object collate "C",
  grantee collate "C",
  privilege collate "C",
  grantor collate "C";

-- name: schemas
select
  quote_ident(n.nspname) as object,
  n.nspname::text as name,
  r.rolname::text as owner
from
  pg_namespace n
  join pg_roles r on r.oid = n.nspowner
where
  n.nspname !~ '^pg_(toast|temp)'
order by
  n.nspname collate "C";

-- name: relations
select
  c.oid::int8 as oid,
  pg_catalog.format('%I.%I', n.nspname, c.relname) as object,
  n.nspname::text as schema,
  c.relname::text as name,
  c.relkind::text as kind,
  c.relpersistence::text as persistence,
  r.rolname::text as owner,
  c.relrowsecurity as rls,
  c.relforcerowsecurity as "forceRls",
  c.relispartition as partition,
  c.relreplident::text as identity,
  c.reloptions as options,
  (
    select
      e.extname
    from
      pg_depend d
      join pg_extension e on e.oid = d.refobjid
    where
      d.classid = 'pg_class'::regclass
      and d.objid = c.oid
      and d.deptype = 'e'
      and d.refclassid = 'pg_extension'::regclass
  ) as extension,
  array(
    select
      i.inhparent::int8
    from
      pg_inherits i
    where
      i.inhrelid = c.oid
    order by
      i.inhseqno
  ) as parents,
  case
    when c.relkind = 'v' then pg_relation_is_updatable(c.oid, true)
    else 0
  end as writes,
  pg_get_expr(c.relpartbound, c.oid) as bound,
  pg_get_partkeydef(c.oid) as "partitionKey"
from
  pg_class c
  join pg_namespace n on n.oid = c.relnamespace
  join pg_roles r on r.oid = c.relowner
where
  c.oid >= 16384
  and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
  and c.relpersistence <> 't'
  and n.nspname !~ '^pg_toast'
order by
  pg_catalog.format('%I.%I', n.nspname, c.relname) collate "C";

-- name: columns
select
  c.oid::int8 as relation,
  a.attname::text as name,
  format_type(a.atttypid, a.atttypmod) as type,
  a.atttypid::int8 as "typeOid",
  a.attnotnull as "notNull",
  a.attgenerated::text as generated,
  a.attidentity::text as identity,
  co.collname::text as collation,
  pg_get_expr(d.adbin, d.adrelid) as "defaultText"
from
  pg_attribute a
  join pg_class c on c.oid = a.attrelid
  join pg_namespace n on n.oid = c.relnamespace
  left join pg_attrdef d on d.adrelid = a.attrelid
  and d.adnum = a.attnum
  left join pg_collation co on co.oid = a.attcollation
where
  c.oid >= 16384
  and c.relkind in ('r', 'p', 'v', 'm', 'f')
  and c.relpersistence <> 't'
  and a.attnum > 0
  and not a.attisdropped
  and n.nspname !~ '^pg_toast'
order by
  pg_catalog.format('%I.%I', n.nspname, c.relname) collate "C",
  a.attnum;

-- name: constraints
select
  k.oid::int8 as oid,
  k.conrelid::int8 as relation,
  k.contypid::int8 as type,
  quote_ident(k.conname) as object,
  k.contype::text as kind,
  k.condeferrable as
deferrable,
k.condeferred as deferred,
k.confrelid::int8 as referenced,
k.confdeltype::text as "onDelete",
k.confupdtype::text as "onUpdate",
pg_get_constraintdef(k.oid) as definition,
case
  when k.contypid <> 0 then format_type(k.contypid, null)
end as domain
from
  pg_constraint k
  left join pg_class c on c.oid = k.conrelid
where
  k.oid >= 16384
  and coalesce(c.relpersistence, 'p') <> 't'
  and k.contype <> 't'
order by
  k.conrelid::regclass::text collate "C",
  k.contypid::regtype::text collate "C",
  k.conname collate "C";

-- name: indexes
select
  i.indrelid::int8 as relation,
  i.indexrelid::int8 as oid,
  pg_catalog.format('%I.%I', n.nspname, c.relname) as object,
  pg_get_indexdef(i.indexrelid) as definition,
  i.indisvalid as valid
from
  pg_index i
  join pg_class c on c.oid = i.indexrelid
  join pg_namespace n on n.oid = c.relnamespace
where
  c.oid >= 16384
  and c.relpersistence <> 't'
  and n.nspname !~ '^pg_toast'
order by
  pg_catalog.format('%I.%I', n.nspname, c.relname) collate "C";

-- name: statistics
-- Statistics objects with expressions.
select
  s.stxrelid::int8 as relation,
  s.oid::int8 as oid,
  format('%I.%I', n.nspname, s.stxname) as object,
  pg_get_statisticsobjdef(s.oid) as definition
from
  pg_statistic_ext s
  join pg_namespace n on n.oid = s.stxnamespace
where
  s.stxexprs is not null
order by
  n.nspname collate "C",
  s.stxname collate "C";

-- name: triggers
select
  t.oid::int8 as oid,
  t.tgrelid::int8 as relation,
  quote_ident(t.tgname) as object,
  t.tgname::text as name,
  t.tgenabled::text as enabled,
  t.tgfoid::int8 as function,
  f.proname::text as "functionName",
  fn.nspname::text as "functionSchema",
  t.tgtype::int as type,
  t.tgdeferrable as
deferrable,
t.tgconstraint <> 0
and t.tgisinternal as internal,
t.tgparentid <> 0 as cloned,
pg_get_triggerdef(t.oid) as definition,
cardinality(t.tgattr::int2[]) as attributes,
t.tgnargs::int as arguments
from
  pg_trigger t
  join pg_class c on c.oid = t.tgrelid
  join pg_namespace n on n.oid = c.relnamespace
  join pg_proc f on f.oid = t.tgfoid
  join pg_namespace fn on fn.oid = f.pronamespace
where
  c.relpersistence <> 't'
  and not (
    t.tgisinternal
    and f.oid < 16384
    and f.proname like 'RI\_FKey\_%'
  )
order by
  pg_catalog.format('%I.%I', n.nspname, c.relname) collate "C",
  t.tgname collate "C";

-- name: rules
-- Rules, except the two that the server itself has on pg_settings.
select
  r.ev_class::int8 as relation,
  r.oid::int8 as oid,
  quote_ident(r.rulename) as object,
  r.ev_type::text as event,
  r.ev_enabled::text as enabled,
  pg_get_ruledef(r.oid) as definition
from
  pg_rewrite r
  join pg_class c on c.oid = r.ev_class
  join pg_namespace n on n.oid = c.relnamespace
where
  (
    r.oid >= 16384
    or c.oid < 16384
    and r.ev_type <> '1'
    and regexp_replace(pg_get_ruledef(r.oid), '\s+', ' ', 'g') <> all (
      array[
        'CREATE RULE pg_settings_u AS ON UPDATE TO pg_catalog.pg_settings WHERE (new.name = old.name) DO SELECT set_config(old.name, new.setting, false) AS set_config;',
        'CREATE RULE pg_settings_n AS ON UPDATE TO pg_catalog.pg_settings DO INSTEAD NOTHING;'
      ]
    )
  )
  and c.relpersistence <> 't'
order by
  pg_catalog.format('%I.%I', n.nspname, c.relname) collate "C",
  r.rulename collate "C";

-- name: policies
select
  p.polrelid::int8 as relation,
  p.oid::int8 as oid,
  quote_ident(p.polname) as object,
  p.polcmd::text as command,
  p.polpermissive as permissive,
  array(
    select
      coalesce(r.rolname::text, 'public')
    from
      unnest(p.polroles) x
      left join pg_roles r on r.oid = x
    order by
      1
  ) as roles,
  pg_get_expr(p.polqual, p.polrelid) as using,
  pg_get_expr(p.polwithcheck, p.polrelid) as checking
from
  pg_policy p
  join pg_class c on c.oid = p.polrelid
  join pg_namespace n on n.oid = c.relnamespace
order by
  pg_catalog.format('%I.%I', n.nspname, c.relname) collate "C",
  p.polname collate "C";

-- name: functions
select
  p.oid::int8 as oid,
  pg_catalog.format('%I.%I(%s)', n.nspname, p.proname, pg_catalog.pg_get_function_identity_arguments(p.oid)) as object,
  p.proname::text as name,
  n.nspname::text as schema,
  l.lanname::text as language,
  l.lanpltrusted as trusted,
  r.rolname::text as owner,
  p.prosecdef as definer,
  p.prorettype in ('trigger'::regtype, 'event_trigger'::regtype) as trigger,
  p.prokind::text as kind,
  p.provolatile::text as volatility,
  p.proconfig as config,
  p.prosrc as source,
  p.probin as library,
  pg_get_function_sqlbody(p.oid) as "sqlBody",
  case
    when p.pronargdefaults > 0 then pg_get_function_arguments(p.oid)
  end as defaults,
  case
    when p.prokind <> 'a' then pg_get_functiondef(p.oid)
    else (
      select
        concat_ws(
          ' ',
          pg_get_function_result(p.oid),
          g.aggtransfn::oid::regprocedure,
          g.aggfinalfn::oid::regprocedure,
          g.aggcombinefn::oid::regprocedure,
          g.aggserialfn::oid::regprocedure,
          g.aggdeserialfn::oid::regprocedure,
          g.aggmtransfn::oid::regprocedure,
          g.aggminvtransfn::oid::regprocedure,
          g.aggmfinalfn::oid::regprocedure,
          g.aggtranstype::regtype,
          g.aggmtranstype::regtype,
          quote_nullable(g.agginitval),
          quote_nullable(g.aggminitval)
        )
      from
        pg_aggregate g
      where
        g.aggfnoid = p.oid
    )
  end as definition,
  (
    select
      e.extname
    from
      pg_depend d
      join pg_extension e on e.oid = d.refobjid
    where
      d.classid = 'pg_proc'::regclass
      and d.objid = p.oid
      and d.deptype = 'e'
      and d.refclassid = 'pg_extension'::regclass
  ) as extension,
  array(
    select distinct
      t::int8
    from
      unnest(array_append(coalesce(p.proallargtypes, p.proargtypes::oid[]), p.prorettype)) t
    where
      t >= 16384
  ) as types,
  array(
    select distinct
      b.proname::text
    from
      pg_aggregate g
      join pg_proc b on b.oid = any (
        array[
          g.aggtransfn,
          g.aggfinalfn,
          g.aggcombinefn,
          g.aggserialfn,
          g.aggdeserialfn,
          g.aggmtransfn,
          g.aggminvtransfn,
          g.aggmfinalfn
        ]::oid[]
      )
    where
      g.aggfnoid = p.oid
      and (
        b.oid < 16384
        and b.provolatile = 'v'
        or b.proname in ('set_limit', 'isn_weak')
      )
    order by
      1
  ) as parts
from
  pg_proc p
  join pg_namespace n on n.oid = p.pronamespace
  join pg_language l on l.oid = p.prolang
  join pg_roles r on r.oid = p.proowner
where
  p.oid >= 16384
order by
  pg_catalog.format('%I.%I(%s)', n.nspname, p.proname, pg_catalog.pg_get_function_identity_arguments(p.oid)) collate "C";

-- name: uses
-- Expressions of the schema that call functions of the application, also through operators.
select
  *
from
  (
    with recursive
      use (classid, objid, refclassid, refobjid) as (
        select
          d.classid,
          d.objid,
          d.refclassid,
          d.refobjid
        from
          pg_depend d
        where
          d.deptype in ('n', 'i', 'a')
          and d.refclassid in ('pg_proc'::regclass, 'pg_operator'::regclass)
          and d.classid in (
            'pg_attrdef'::regclass,
            'pg_constraint'::regclass,
            'pg_class'::regclass,
            'pg_policy'::regclass,
            'pg_rewrite'::regclass,
            'pg_proc'::regclass,
            'pg_cast'::regclass,
            'pg_type'::regclass,
            'pg_amproc'::regclass,
            'pg_operator'::regclass,
            'pg_amop'::regclass,
            'pg_conversion'::regclass,
            'pg_statistic_ext'::regclass
          )
        union
        select
          'pg_type'::regclass::oid,
          t,
          'pg_proc'::regclass::oid,
          f.amproc::oid
        from
          pg_range r
          cross join unnest(array[r.rngtypid, r.rngmultitypid]) t
          join pg_opclass k on k.oid = r.rngsubopc
          join pg_amproc f on f.amprocfamily = k.opcfamily
        union
        select
          'pg_opclass'::regclass::oid,
          i.indexrelid,
          'pg_proc'::regclass::oid,
          f.amproc::oid
        from
          pg_index i
          cross join unnest(i.indclass::oid[]) x
          join pg_opclass k on k.oid = x
          join pg_amproc f on f.amprocfamily = k.opcfamily
        where
          i.indexrelid >= 16384
        union
        select
          'pg_opclass'::regclass::oid,
          i.indexrelid,
          'pg_operator'::regclass::oid,
          f.amopopr
        from
          pg_index i
          cross join unnest(i.indclass::oid[]) x
          join pg_opclass k on k.oid = x
          join pg_amop f on f.amopfamily = k.opcfamily
        where
          i.indexrelid >= 16384
          and f.amopopr >= 16384
        union
        select
          u.classid,
          u.objid,
          'pg_proc'::regclass,
          o.oprcode
        from
          use u
          join pg_operator o on u.refclassid = 'pg_operator'::regclass
          and o.oid = u.refobjid
      )
    select
      u.classid::regclass::text as class,
      u.objid::int8 as object,
      u.refobjid::int8 as function,
      coalesce(
        ad.adrelid,
        k.conrelid,
        po.polrelid,
        rw.ev_class,
        ix.indrelid,
        se.stxrelid,
        case
          when u.classid = 'pg_class'::regclass then u.objid
        end,
        0
      )::int8 as relation,
      coalesce(
        k.contypid,
        case
          when u.classid = 'pg_type'::regclass then u.objid
        end,
        0
      )::int8 as type,
      ta.attname::text as "column",
      pg_describe_object(
        case
          when u.classid = 'pg_opclass'::regclass then 'pg_class'::regclass
          else u.classid
        end,
        u.objid,
        0
      ) as description,
      u.refobjid::regprocedure::text as function_name
    from
      use u
      left join pg_attrdef ad on u.classid = 'pg_attrdef'::regclass
      and ad.oid = u.objid
      left join pg_attribute ta on ta.attrelid = ad.adrelid
      and ta.attnum = ad.adnum
      left join pg_constraint k on u.classid = 'pg_constraint'::regclass
      and k.oid = u.objid
      left join pg_policy po on u.classid = 'pg_policy'::regclass
      and po.oid = u.objid
      left join pg_rewrite rw on u.classid = 'pg_rewrite'::regclass
      and rw.oid = u.objid
      left join pg_index ix on u.classid in ('pg_class'::regclass, 'pg_opclass'::regclass)
      and ix.indexrelid = u.objid
      left join pg_statistic_ext se on u.classid = 'pg_statistic_ext'::regclass
      and se.oid = u.objid
    where
      u.refclassid = 'pg_proc'::regclass
      and u.refobjid >= 16384
  ) as unsorted
order by
  description collate "C",
  function_name collate "C";

-- name: settings
select
  *
from
  (
    select
      coalesce(d.datname::text, '') as database,
      coalesce(r.rolname::text, '') as role,
      split_part(x, '=', 1) as name,
      substr(x, strpos(x, '=') + 1) as value
    from
      pg_db_role_setting s
      left join pg_database d on d.oid = s.setdatabase
      left join pg_roles r on r.oid = s.setrole
      cross join lateral unnest(s.setconfig) x
    where
      s.setdatabase = 0
      or d.datname = current_database()
  ) as unsorted
order by
  database collate "C",
  role collate "C",
  name collate "C";

-- name: server_settings
select
  name,
  reset_val as value
from
  pg_settings
where
  name in (
    'fsync',
    'full_page_writes',
    'track_counts',
    'synchronous_commit',
    'session_preload_libraries',
    'shared_preload_libraries',
    'local_preload_libraries',
    'lo_compat_privileges',
    'allow_system_table_mods',
    'max_prepared_transactions',
    'session_replication_role',
    'standard_conforming_strings',
    'zero_damaged_pages',
    'ignore_system_indexes',
    'row_security',
    'default_transaction_read_only',
    'search_path'
  )
order by
  name collate "C";

-- name: eventTriggers
select
  quote_ident(e.evtname) as object,
  e.evtevent::text as event,
  e.evtenabled::text as enabled,
  e.evtfoid::int8 as function
from
  pg_event_trigger e
order by
  e.evtname collate "C";

-- name: extensions
select
  e.extname::text as name,
  e.extversion as version
from
  pg_extension e
order by
  e.extname collate "C";

-- name: languages
select
  l.lanname::text as name,
  l.lanpltrusted as trusted
from
  pg_language l
order by
  l.lanname collate "C";

-- name: servers
select
  s.oid::int8 as oid,
  quote_ident(s.srvname) as object,
  w.fdwname::text as wrapper,
  r.rolname::text as owner
from
  pg_foreign_server s
  join pg_foreign_data_wrapper w on w.oid = s.srvfdw
  join pg_roles r on r.oid = s.srvowner
order by
  s.srvname collate "C";

-- name: wrappers
select
  w.oid::int8 as oid,
  quote_ident(w.fdwname) as object,
  r.rolname::text as owner
from
  pg_foreign_data_wrapper w
  join pg_roles r on r.oid = w.fdwowner
order by
  w.fdwname collate "C";

-- name: mappings
select
  quote_ident(srvname) as server,
  usename::text as "user"
from
  pg_user_mappings
order by
  srvname collate "C",
  usename collate "C";

-- name: publications
select
  quote_ident(p.pubname) as object,
  p.puballtables as "all",
  array(
    select
      format('%I.%I', t.schemaname, t.tablename)
    from
      pg_publication_tables t
    where
      t.pubname = p.pubname
    order by
      1
  ) as tables
from
  pg_publication p
order by
  p.pubname collate "C";

-- name: subscriptions
select
  quote_ident(s.subname) as object,
  s.subenabled as enabled
from
  pg_subscription s
  join pg_database d on d.oid = s.subdbid
where
  d.datname = current_database()
order by
  s.subname collate "C";

-- name: casts
select
  *
from
  (
    select
      pg_describe_object('pg_cast'::regclass, c.oid, 0) as description,
      format_type(c.castsource, null) as source,
      format_type(c.casttarget, null) as target,
      c.castsource::int8 as "sourceOid",
      c.casttarget::int8 as "targetOid",
      c.castfunc::int8 as function,
      c.castcontext::text as context,
      (
        select
          p.proname::text
        from
          pg_proc p
        where
          p.oid = c.castfunc
          and p.oid < 16384
          and p.provolatile = 'v'
      ) as builtin,
      (
        select
          e.extname
        from
          pg_depend d
          join pg_extension e on e.oid = d.refobjid
        where
          d.classid = 'pg_cast'::regclass
          and d.objid = c.oid
          and d.deptype = 'e'
          and d.refclassid = 'pg_extension'::regclass
      ) as extension
    from
      pg_cast c
    where
      c.oid >= 16384
  ) as unsorted
order by
  description collate "C";

-- name: operators
select
  *
from
  (
    select
      pg_describe_object('pg_operator'::regclass, o.oid, 0) as description,
      n.nspname::text as schema,
      o.oprname::text as name,
      o.oprcode::oid::int8 as function,
      (
        select
          p.proname::text
        from
          pg_proc p
        where
          p.oid = o.oprcode
          and (
            p.oid < 16384
            and p.provolatile = 'v'
            or p.proname in ('set_limit', 'isn_weak')
          )
      ) as builtin,
      (
        select
          e.extname
        from
          pg_depend d
          join pg_extension e on e.oid = d.refobjid
        where
          d.classid = 'pg_operator'::regclass
          and d.objid = o.oid
          and d.deptype = 'e'
          and d.refclassid = 'pg_extension'::regclass
      ) as extension
    from
      pg_operator o
      join pg_namespace n on n.oid = o.oprnamespace
    where
      o.oid >= 16384
  ) as unsorted
order by
  description collate "C";

-- name: types
select
  *
from
  (
    select
      t.oid::int8 as oid,
      format_type(t.oid, null) as name,
      t.typtype::text as kind,
      t.typbasetype::int8 as base,
      t.typelem::int8 as element,
      t.typrelid::int8 as relation,
      t.typname::text as short,
      pg_get_expr(t.typdefaultbin, 0) as "defaultText",
      array(
        select
          a.atttypid::int8
        from
          pg_attribute a
          join pg_class c on c.oid = a.attrelid
        where
          c.oid = t.typrelid
          and c.relkind = 'c'
          and a.attnum > 0
          and not a.attisdropped
          and a.atttypid >= 16384
        order by
          a.attnum
      ) || array(
        select
          r.rngsubtype::int8
        from
          pg_range r
        where
          t.oid in (r.rngtypid, r.rngmultitypid)
          and r.rngsubtype >= 16384
      ) as types
    from
      pg_type t
    where
      t.oid >= 16384
  ) as unsorted
order by
  name collate "C";

-- name: defaultAcls
select
  *
from
  (
    select
      coalesce(r.rolname::text, '') as role,
      coalesce(n.nspname::text, '') as schema,
      d.defaclobjtype::text as kind,
      d.defaclacl::text as acl
    from
      pg_default_acl d
      left join pg_roles r on r.oid = d.defaclrole
      left join pg_namespace n on n.oid = d.defaclnamespace
  ) as unsorted
order by
  role collate "C",
  schema collate "C",
  kind collate "C";

-- name: owned
-- Parameter 1: the execution login.
select
  *
from
  (
    select
      pg_describe_object(s.classid, s.objid, s.objsubid) as description
    from
      pg_shdepend s
    where
      s.deptype = 'o'
      and s.refclassid = 'pg_authid'::regclass
      and s.refobjid = (
        select
          oid
        from
          pg_roles
        where
          rolname = $1
      )
      and s.dbid in (
        0,
        (
          select
            oid
          from
            pg_database
          where
            datname = current_database()
        )
      )
  ) as unsorted
order by
  description collate "C";
