/**
 * What a survey reads, one statement per part, each ordered so that equal configurations give equal
 * rows. Names come quoted as SQL needs them; object ids are only for joining parts of one reading
 * and never enter a digest.
 */
const REL = `pg_catalog.format('%I.%I', n.nspname, c.relname)`;
/** A function as SQL names it: `p` is its row, `n` that of its schema. */
export const FUNCTION = `pg_catalog.format('%I.%I(%s)', n.nspname, p.proname, pg_catalog.pg_get_function_identity_arguments(p.oid))`;
/** Object ids below are the server's own. */
export const USER = 16384;
const extension = (catalog: string, id: string) =>
  `(select e.extname from pg_depend d join pg_extension e on e.oid = d.refobjid where d.classid = '${catalog}'::regclass and d.objid = ${id} and d.deptype = 'e' and d.refclassid = 'pg_extension'::regclass)`;

/** Orders by columns of the result, byte by byte, whatever the database's collation. */
const sorted = (query: string, ...columns: readonly string[]) =>
  `select * from (${query}) as unsorted order by ${columns.map((column) => `${column} collate "C"`).join(', ')}`;

const acl = (
  kind: string,
  objectKind: string,
  object: string,
  from: string,
  list: string,
  owner: string,
  where = 'true',
) => `
  select '${kind}' as kind, ${object} as object, o.rolname as owner, coalesce(g.rolname, '') as grantee,
    a.privilege_type as privilege, a.is_grantable as grantable, coalesce(r.rolname, '') as grantor
  from ${from} join pg_roles o on o.oid = ${owner}
    cross join lateral aclexplode(coalesce(${list}, acldefault('${objectKind}', ${owner}))) a
    left join pg_roles g on g.oid = a.grantee left join pg_roles r on r.oid = a.grantor
  where a.grantee <> ${owner} and (${where})`;

export const QUERIES = {
  server: `select current_setting('server_version_num')::int / 10000 as major, current_database()::text as database,
    (select rolname::text from pg_roles where oid = d.datdba) as owner from pg_database d where datname = current_database()`,
  roles: `select rolname::text as name, rolsuper as super, rolinherit as inherit, rolcreaterole as createrole,
    rolcreatedb as createdb, rolcanlogin as login, rolreplication as replication, rolbypassrls as bypassrls,
    rolconnlimit as connections, rolvaliduntil::text as "validUntil"
    from pg_roles order by rolname collate "C"`,
  memberships: `select m.rolname::text as member, r.rolname::text as role, a.admin_option as admin,
    coalesce((to_jsonb(a) ->> 'inherit_option')::boolean, m.rolinherit) as inherit,
    coalesce((to_jsonb(a) ->> 'set_option')::boolean, true) as "set", coalesce(g.rolname::text, '') as grantor
    from pg_auth_members a join pg_roles m on m.oid = a.member join pg_roles r on r.oid = a.roleid
    left join pg_roles g on g.oid = a.grantor
    order by m.rolname collate "C", r.rolname collate "C", g.rolname collate "C"`,
  grants: `select * from (${[
    acl(
      'DATABASE',
      'd',
      `format('%I', d.datname)`,
      'pg_database d',
      'd.datacl',
      'd.datdba',
      'd.datname = current_database()',
    ),
    acl(
      'SCHEMA',
      'n',
      `format('%I', n.nspname)`,
      'pg_namespace n',
      'n.nspacl',
      'n.nspowner',
      `n.nspname !~ '^pg_(toast_)?temp_'`,
    ),
    acl(
      'TABLE',
      'r',
      REL,
      'pg_class c join pg_namespace n on n.oid = c.relnamespace',
      'c.relacl',
      'c.relowner',
      `c.relkind in ('r', 'p', 'v', 'm', 'f') and c.relpersistence <> 't' and (c.oid >= ${USER} or a.privilege_type <> 'SELECT') and not exists (select from pg_init_privs i cross join lateral aclexplode(i.initprivs) x where i.classoid = 'pg_class'::regclass and i.objoid = c.oid and c.oid < ${USER} and x.grantee = a.grantee and x.privilege_type = a.privilege_type)`,
    ),
    acl(
      'SEQUENCE',
      's',
      REL,
      'pg_class c join pg_namespace n on n.oid = c.relnamespace',
      'c.relacl',
      'c.relowner',
      `c.relkind = 'S' and c.relpersistence <> 't'`,
    ),
    acl(
      'COLUMN',
      'c',
      `format('%I.%I(%I)', n.nspname, c.relname, t.attname)`,
      'pg_attribute t join pg_class c on c.oid = t.attrelid join pg_namespace n on n.oid = c.relnamespace',
      't.attacl',
      'c.relowner',
      `t.attacl is not null and not t.attisdropped and c.relpersistence <> 't' and (c.oid >= ${USER} or a.privilege_type <> 'SELECT')`,
    ),
    acl(
      'FUNCTION',
      'f',
      FUNCTION,
      'pg_proc p join pg_namespace n on n.oid = p.pronamespace',
      'p.proacl',
      'p.proowner',
      `p.oid >= ${USER}`,
    ),
    acl(
      'LANGUAGE',
      'l',
      `format('%I', l.lanname)`,
      'pg_language l',
      'l.lanacl',
      'l.lanowner',
      'l.lanpltrusted or l.lanacl is not null',
    ),
    acl(
      'FOREIGN DATA WRAPPER',
      'F',
      `format('%I', w.fdwname)`,
      'pg_foreign_data_wrapper w',
      'w.fdwacl',
      'w.fdwowner',
    ),
    acl(
      'FOREIGN SERVER',
      'S',
      `format('%I', s.srvname)`,
      'pg_foreign_server s',
      's.srvacl',
      's.srvowner',
    ),
    acl('TABLESPACE', 't', `format('%I', t.spcname)`, 'pg_tablespace t', 't.spcacl', 't.spcowner'),
    acl('PARAMETER', 'p', 'p.parname', 'pg_parameter_acl p', 'p.paracl', '10'),
  ].join(
    ' union all ',
  )}) g order by kind collate "C", object collate "C", grantee collate "C", privilege collate "C", grantor collate "C"`,
  schemas: `select quote_ident(n.nspname) as object, n.nspname::text as name, r.rolname::text as owner
    from pg_namespace n join pg_roles r on r.oid = n.nspowner where n.nspname !~ '^pg_(toast|temp)' order by n.nspname collate "C"`,
  relations: `select c.oid::int8 as oid, ${REL} as object, n.nspname::text as schema, c.relname::text as name, c.relkind::text as kind,
    c.relpersistence::text as persistence, r.rolname::text as owner, c.relrowsecurity as rls, c.relforcerowsecurity as "forceRls",
    c.relispartition as partition, c.relreplident::text as identity, c.reloptions as options, ${extension('pg_class', 'c.oid')} as extension,
    array(select i.inhparent::int8 from pg_inherits i where i.inhrelid = c.oid order by i.inhseqno) as parents,
    case when c.relkind = 'v' then pg_relation_is_updatable(c.oid, true) else 0 end as writes,
    pg_get_expr(c.relpartbound, c.oid) as bound, pg_get_partkeydef(c.oid) as "partitionKey"
    from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_roles r on r.oid = c.relowner
    where c.oid >= ${USER} and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S') and c.relpersistence <> 't'
      and n.nspname !~ '^pg_toast' order by ${REL} collate "C"`,
  columns: `select c.oid::int8 as relation, a.attname::text as name, format_type(a.atttypid, a.atttypmod) as type, a.atttypid::int8 as "typeOid",
    a.attnotnull as "notNull", a.attgenerated::text as generated, a.attidentity::text as identity, co.collname::text as collation,
    pg_get_expr(d.adbin, d.adrelid) as "defaultText"
    from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum left join pg_collation co on co.oid = a.attcollation
    where c.oid >= ${USER} and c.relkind in ('r', 'p', 'v', 'm', 'f') and c.relpersistence <> 't' and a.attnum > 0 and not a.attisdropped
      and n.nspname !~ '^pg_toast' order by ${REL} collate "C", a.attnum`,
  constraints: `select k.oid::int8 as oid, k.conrelid::int8 as relation, k.contypid::int8 as type, quote_ident(k.conname) as object, k.contype::text as kind,
    k.condeferrable as deferrable, k.condeferred as deferred, k.confrelid::int8 as referenced, k.confdeltype::text as "onDelete",
    k.confupdtype::text as "onUpdate", pg_get_constraintdef(k.oid) as definition,
    case when k.contypid <> 0 then format_type(k.contypid, null) end as domain
    from pg_constraint k left join pg_class c on c.oid = k.conrelid
    where k.oid >= ${USER} and coalesce(c.relpersistence, 'p') <> 't' and k.contype <> 't'
    order by k.conrelid::regclass::text collate "C", k.contypid::regtype::text collate "C", k.conname collate "C"`,
  indexes: `select i.indrelid::int8 as relation, i.indexrelid::int8 as oid, ${REL} as object, pg_get_indexdef(i.indexrelid) as definition,
    i.indisvalid as valid from pg_index i join pg_class c on c.oid = i.indexrelid join pg_namespace n on n.oid = c.relnamespace
    where c.oid >= ${USER} and c.relpersistence <> 't' and n.nspname !~ '^pg_toast' order by ${REL} collate "C"`,
  statistics: `select s.stxrelid::int8 as relation, s.oid::int8 as oid, format('%I.%I', n.nspname, s.stxname) as object,
    pg_get_statisticsobjdef(s.oid) as definition from pg_statistic_ext s join pg_namespace n on n.oid = s.stxnamespace
    where s.stxexprs is not null order by n.nspname collate "C", s.stxname collate "C"`,
  triggers: `select t.oid::int8 as oid, t.tgrelid::int8 as relation, quote_ident(t.tgname) as object, t.tgname::text as name, t.tgenabled::text as enabled,
    t.tgfoid::int8 as function, f.proname::text as "functionName", fn.nspname::text as "functionSchema", t.tgtype::int as type,
    t.tgdeferrable as deferrable, t.tgconstraint <> 0 and t.tgisinternal as internal, t.tgparentid <> 0 as cloned, pg_get_triggerdef(t.oid) as definition,
    cardinality(t.tgattr::int2[]) as attributes, t.tgnargs::int as arguments
    from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
    join pg_proc f on f.oid = t.tgfoid join pg_namespace fn on fn.oid = f.pronamespace
    where c.relpersistence <> 't' and not (t.tgisinternal and f.oid < ${USER} and f.proname like 'RI\\_FKey\\_%')
    order by ${REL} collate "C", t.tgname collate "C"`,
  rules: `select r.ev_class::int8 as relation, r.oid::int8 as oid, quote_ident(r.rulename) as object, r.ev_type::text as event, r.ev_enabled::text as enabled,
    pg_get_ruledef(r.oid) as definition
    from pg_rewrite r join pg_class c on c.oid = r.ev_class join pg_namespace n on n.oid = c.relnamespace
    where (r.oid >= ${USER} or c.oid < ${USER} and r.ev_type <> '1' and regexp_replace(pg_get_ruledef(r.oid), '\\s+', ' ', 'g') <> all(array[
      'CREATE RULE pg_settings_u AS ON UPDATE TO pg_catalog.pg_settings WHERE (new.name = old.name) DO SELECT set_config(old.name, new.setting, false) AS set_config;',
      'CREATE RULE pg_settings_n AS ON UPDATE TO pg_catalog.pg_settings DO INSTEAD NOTHING;']))
      and c.relpersistence <> 't' order by ${REL} collate "C", r.rulename collate "C"`,
  policies: `select p.polrelid::int8 as relation, p.oid::int8 as oid, quote_ident(p.polname) as object, p.polcmd::text as command, p.polpermissive as permissive,
    array(select coalesce(r.rolname::text, 'public') from unnest(p.polroles) x left join pg_roles r on r.oid = x order by 1) as roles,
    pg_get_expr(p.polqual, p.polrelid) as using, pg_get_expr(p.polwithcheck, p.polrelid) as checking
    from pg_policy p join pg_class c on c.oid = p.polrelid join pg_namespace n on n.oid = c.relnamespace
    order by ${REL} collate "C", p.polname collate "C"`,
  functions: `select p.oid::int8 as oid, ${FUNCTION} as object, p.proname::text as name, n.nspname::text as schema, l.lanname::text as language,
    l.lanpltrusted as trusted, r.rolname::text as owner, p.prosecdef as definer, p.prorettype in ('trigger'::regtype, 'event_trigger'::regtype) as trigger, p.prokind::text as kind, p.provolatile::text as volatility,
    p.proconfig as config, p.prosrc as source, p.probin as library, pg_get_function_sqlbody(p.oid) as "sqlBody",
    case when p.pronargdefaults > 0 then pg_get_function_arguments(p.oid) end as defaults,
    case when p.prokind <> 'a' then pg_get_functiondef(p.oid) else pg_get_function_result(p.oid) end as definition, ${extension('pg_proc', 'p.oid')} as extension,
    array(select distinct t::int8 from unnest(array_append(coalesce(p.proallargtypes, p.proargtypes::oid[]), p.prorettype)) t where t >= ${USER}) as types,
    array(select distinct b.proname::text from pg_aggregate g join pg_proc b on b.oid = any(array[g.aggtransfn, g.aggfinalfn, g.aggcombinefn,
      g.aggserialfn, g.aggdeserialfn, g.aggmtransfn, g.aggminvtransfn, g.aggmfinalfn]::oid[])
      where g.aggfnoid = p.oid and b.oid < ${USER} and b.provolatile = 'v' order by 1) as parts
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace join pg_language l on l.oid = p.prolang join pg_roles r on r.oid = p.proowner
    where p.oid >= ${USER} order by ${FUNCTION} collate "C"`,
  uses: sorted(
    `with recursive use(classid, objid, refclassid, refobjid) as (
      select d.classid, d.objid, d.refclassid, d.refobjid from pg_depend d
      where d.deptype in ('n', 'i', 'a') and d.refclassid in ('pg_proc'::regclass, 'pg_operator'::regclass)
        and d.classid in ('pg_attrdef'::regclass, 'pg_constraint'::regclass, 'pg_class'::regclass, 'pg_policy'::regclass,
          'pg_rewrite'::regclass, 'pg_proc'::regclass, 'pg_cast'::regclass, 'pg_type'::regclass, 'pg_amproc'::regclass,
          'pg_operator'::regclass, 'pg_amop'::regclass, 'pg_conversion'::regclass, 'pg_statistic_ext'::regclass)
      union select 'pg_type'::regclass::oid, t, 'pg_proc'::regclass::oid, f.amproc::oid from pg_range r cross join unnest(array[r.rngtypid, r.rngmultitypid]) t
        join pg_opclass k on k.oid = r.rngsubopc join pg_amproc f on f.amprocfamily = k.opcfamily
      union select 'pg_opclass'::regclass::oid, i.indexrelid, 'pg_proc'::regclass::oid, f.amproc::oid from pg_index i cross join unnest(i.indclass::oid[]) x
        join pg_opclass k on k.oid = x join pg_amproc f on f.amprocfamily = k.opcfamily where i.indexrelid >= ${USER}
      union select 'pg_opclass'::regclass::oid, i.indexrelid, 'pg_operator'::regclass::oid, f.amopopr from pg_index i cross join unnest(i.indclass::oid[]) x
        join pg_opclass k on k.oid = x join pg_amop f on f.amopfamily = k.opcfamily where i.indexrelid >= ${USER} and f.amopopr >= ${USER}
      union select u.classid, u.objid, 'pg_proc'::regclass, o.oprcode from use u join pg_operator o
        on u.refclassid = 'pg_operator'::regclass and o.oid = u.refobjid)
    select u.classid::regclass::text as class, u.objid::int8 as object, u.refobjid::int8 as function,
      coalesce(ad.adrelid, k.conrelid, po.polrelid, rw.ev_class, ix.indrelid, se.stxrelid, case when u.classid = 'pg_class'::regclass then u.objid end, 0)::int8 as relation,
      coalesce(k.contypid, case when u.classid = 'pg_type'::regclass then u.objid end, 0)::int8 as type, ta.attname::text as "column",
      pg_describe_object(case when u.classid = 'pg_opclass'::regclass then 'pg_class'::regclass else u.classid end, u.objid, 0) as description,
      u.refobjid::regprocedure::text as function_name
    from use u left join pg_attrdef ad on u.classid = 'pg_attrdef'::regclass and ad.oid = u.objid
      left join pg_attribute ta on ta.attrelid = ad.adrelid and ta.attnum = ad.adnum
      left join pg_constraint k on u.classid = 'pg_constraint'::regclass and k.oid = u.objid
      left join pg_policy po on u.classid = 'pg_policy'::regclass and po.oid = u.objid
      left join pg_rewrite rw on u.classid = 'pg_rewrite'::regclass and rw.oid = u.objid
      left join pg_index ix on u.classid in ('pg_class'::regclass, 'pg_opclass'::regclass) and ix.indexrelid = u.objid
      left join pg_statistic_ext se on u.classid = 'pg_statistic_ext'::regclass and se.oid = u.objid
    where u.refclassid = 'pg_proc'::regclass and u.refobjid >= ${USER}`,
    'description',
    'function_name',
  ),
  settings: sorted(
    `select coalesce(d.datname::text, '') as database, coalesce(r.rolname::text, '') as role, split_part(x, '=', 1) as name,
    substr(x, strpos(x, '=') + 1) as value
    from pg_db_role_setting s left join pg_database d on d.oid = s.setdatabase left join pg_roles r on r.oid = s.setrole
    cross join lateral unnest(s.setconfig) x where s.setdatabase = 0 or d.datname = current_database()`,
    'database',
    'role',
    'name',
  ),
  server_settings: `select name, reset_val as value from pg_settings where name in ('fsync', 'full_page_writes', 'track_counts',
    'synchronous_commit', 'session_preload_libraries', 'shared_preload_libraries', 'local_preload_libraries', 'lo_compat_privileges',
    'allow_system_table_mods', 'max_prepared_transactions', 'session_replication_role', 'standard_conforming_strings', 'zero_damaged_pages',
    'ignore_system_indexes', 'row_security', 'default_transaction_read_only', 'search_path') order by name collate "C"`,
  eventTriggers: `select quote_ident(e.evtname) as object, e.evtevent::text as event, e.evtenabled::text as enabled, e.evtfoid::int8 as function
    from pg_event_trigger e order by e.evtname collate "C"`,
  extensions: `select e.extname::text as name, e.extversion as version from pg_extension e order by e.extname collate "C"`,
  languages: `select l.lanname::text as name, l.lanpltrusted as trusted from pg_language l order by l.lanname collate "C"`,
  servers: `select s.oid::int8 as oid, quote_ident(s.srvname) as object, w.fdwname::text as wrapper, r.rolname::text as owner
    from pg_foreign_server s join pg_foreign_data_wrapper w on w.oid = s.srvfdw join pg_roles r on r.oid = s.srvowner order by s.srvname collate "C"`,
  wrappers: `select w.oid::int8 as oid, quote_ident(w.fdwname) as object, r.rolname::text as owner
    from pg_foreign_data_wrapper w join pg_roles r on r.oid = w.fdwowner order by w.fdwname collate "C"`,
  mappings: `select quote_ident(srvname) as server, usename::text as "user" from pg_user_mappings order by srvname collate "C", usename collate "C"`,
  publications: `select quote_ident(p.pubname) as object, p.puballtables as "all",
    array(select format('%I.%I', t.schemaname, t.tablename) from pg_publication_tables t where t.pubname = p.pubname order by 1) as tables
    from pg_publication p order by p.pubname collate "C"`,
  subscriptions: `select quote_ident(s.subname) as object, s.subenabled as enabled from pg_subscription s
    join pg_database d on d.oid = s.subdbid where d.datname = current_database() order by s.subname collate "C"`,
  largeObjects: `select count(*)::int as count, count(*) filter (where r.rolname = $1)::int as owned,
    count(*) filter (where exists (select from aclexplode(m.lomacl) a where (a.grantee = 0 or pg_get_userbyid(a.grantee) = $1) and a.privilege_type = 'UPDATE'))::int as writable
    from pg_largeobject_metadata m left join pg_roles r on r.oid = m.lomowner`,
  casts: sorted(
    `select pg_describe_object('pg_cast'::regclass, c.oid, 0) as description, format_type(c.castsource, null) as source,
    format_type(c.casttarget, null) as target, c.castsource::int8 as "sourceOid", c.casttarget::int8 as "targetOid", c.castfunc::int8 as function,
    c.castcontext::text as context, ${extension('pg_cast', 'c.oid')} as extension from pg_cast c where c.oid >= ${USER}`,
    'description',
  ),
  operators: sorted(
    `select pg_describe_object('pg_operator'::regclass, o.oid, 0) as description, n.nspname::text as schema, o.oprname::text as name,
    o.oprcode::oid::int8 as function,
    (select p.proname::text from pg_proc p where p.oid = o.oprcode and p.oid < ${USER} and p.provolatile = 'v') as builtin, ${extension('pg_operator', 'o.oid')} as extension
    from pg_operator o join pg_namespace n on n.oid = o.oprnamespace where o.oid >= ${USER}`,
    'description',
  ),
  types: sorted(
    `select t.oid::int8 as oid, format_type(t.oid, null) as name, t.typtype::text as kind, t.typbasetype::int8 as base, t.typelem::int8 as element,
    t.typrelid::int8 as relation, t.typname::text as short, pg_get_expr(t.typdefaultbin, 0) as "defaultText",
    array(select a.atttypid::int8 from pg_attribute a join pg_class c on c.oid = a.attrelid where c.oid = t.typrelid and c.relkind = 'c'
      and a.attnum > 0 and not a.attisdropped and a.atttypid >= ${USER} order by a.attnum)
    || array(select r.rngsubtype::int8 from pg_range r where t.oid in (r.rngtypid, r.rngmultitypid) and r.rngsubtype >= ${USER}) as types
    from pg_type t where t.oid >= ${USER}`,
    'name',
  ),
  defaultAcls: sorted(
    `select coalesce(r.rolname::text, '') as role, coalesce(n.nspname::text, '') as schema, d.defaclobjtype::text as kind, d.defaclacl::text as acl
    from pg_default_acl d left join pg_roles r on r.oid = d.defaclrole left join pg_namespace n on n.oid = d.defaclnamespace`,
    'role',
    'schema',
    'kind',
  ),
  owned: sorted(
    `select pg_describe_object(s.classid, s.objid, s.objsubid) as description from pg_shdepend s
    where s.deptype = 'o' and s.refclassid = 'pg_authid'::regclass and s.refobjid = (select oid from pg_roles where rolname = $1)
      and s.dbid in (0, (select oid from pg_database where datname = current_database()))`,
    'description',
  ),
} as const;
