-- Whether anything in the configuration changed, and what. Runs with search_path = pg_catalog, pg_temp.

-- name: server_versions
-- Rows whose versions only a superuser can make visible.
with
  role_versions as (select oid, xmin as version from pg_catalog.pg_authid),
  subscription_versions as (
    select oid, subdbid, xmin as version from pg_catalog.pg_subscription
  ),
  mapping_versions as (select oid, xmin as version from pg_catalog.pg_user_mapping)

-- name: managed_versions
-- The same for a login that sees only what every login sees: a digest of the content stands for the
-- version, so that a change that was put back in between is not noticed.
with
  role_versions as (
    select r.oid, (hashtextextended(r::text, 0) & 4294967295)::text::xid as version
    from pg_catalog.pg_roles as r
  ),
  subscription_versions as (
    select
      oid,
      subdbid,
      (hashtextextended(concat_ws(' ', subname, subowner, subenabled, subpublications), 0)
        & 4294967295)::text::xid as version
    from pg_catalog.pg_subscription
  ),
  mapping_versions as (
    select m.umid as oid, (hashtextextended(m::text, 0) & 4294967295)::text::xid as version
    from pg_catalog.pg_user_mappings as m
  )

-- name: watched
-- How every statement here begins that reads row versions. Lists the rows that belong to the
-- configuration: of catalogues of the whole server only those of this database and of the roles in
-- parameter 1; temporary relations of other sessions come and go and are left out. A row without an
-- object id is named by the object it belongs to: class, object, part.
with
  relations as materialized (
    select
      coalesce(array_agg(oid) filter (where relpersistence = 't'), '{}') as temporary,
      array_agg(oid) filter (
        where relpersistence <> 't' and relkind in ('r', 'p', 'v', 'm', 'f', 'c')
      ) as tables
    from pg_catalog.pg_class
    where oid >= 16384
  ),
  watched as (
    select 'pg_authid:pg_authid ' || oid || ' 0' as object, version
    from role_versions
    where oid = any($1::oid[])
    union all
    select
      'pg_auth_members:pg_authid ' || member || ' 0 membership in ' || pg_get_userbyid(roleid)
        || ' granted by ' || pg_get_userbyid(grantor),
      xmin
    from pg_catalog.pg_auth_members
    where member = any($1::oid[])
    union all
    select 'pg_database:pg_database ' || oid || ' 0', xmin
    from pg_catalog.pg_database
    where datname = current_database()
    union all
    select
      'pg_db_role_setting:'
        || case when setrole = 0 then 'pg_database ' || setdatabase else 'pg_authid ' || setrole end
        || ' 0 settings in database ' || setdatabase,
      xmin
    from pg_catalog.pg_db_role_setting
    where setdatabase in (0, (select oid from pg_database where datname = current_database()))
      and (setrole = 0 or setrole = any($1::oid[]))
    union all
    select 'pg_parameter_acl:pg_parameter_acl ' || oid || ' 0', xmin
    from pg_catalog.pg_parameter_acl
    union all
    select 'pg_subscription:pg_subscription ' || oid || ' 0', version
    from subscription_versions
    where subdbid = (select oid from pg_database where datname = current_database())
    union all
    select 'pg_tablespace:pg_tablespace ' || oid || ' 0', xmin
    from pg_catalog.pg_tablespace
    union all
    -- What these roles own or were given, of kinds that are not read elsewhere here: columns of
    -- catalogues, collations, operator families, and so on. Large objects are data, which no role
    -- that an execution reaches can write.
    select
      'pg_shdepend:' || classid::regclass || ' ' || objid || ' ' || objsubid
        || ' rights of ' || pg_get_userbyid(refobjid),
      xmin
    from pg_catalog.pg_shdepend
    where dbid = (select oid from pg_database where datname = current_database())
      and refclassid = 'pg_authid'::regclass
      and refobjid = any($1::oid[])
      and classid <> 'pg_largeobject'::regclass
      and (classid <> 'pg_class'::regclass or objid < 16384)
    union all
    select 'pg_namespace:pg_namespace ' || oid || ' 0', xmin
    from pg_catalog.pg_namespace
    where nspname !~ '^pg_(toast_)?temp_'
    union all
    -- Rows written by transaction 1 are as the server was delivered; that id is never used again.
    select 'pg_class:pg_class ' || oid || ' 0', xmin
    from pg_catalog.pg_class
    where xmin <> '1'
      and relpersistence <> 't'
      and relkind in ('r', 'p', 'v', 'm', 'f', 'S', 'c')
    union all
    select 'pg_attribute:pg_class ' || attrelid || ' ' || attnum, xmin
    from pg_catalog.pg_attribute
    where attrelid = any((select tables from relations)::oid[])
      and attnum > 0
    union all
    select 'pg_attrdef:pg_attrdef ' || oid || ' 0', xmin
    from pg_catalog.pg_attrdef
    where adrelid >= 16384
      and adrelid <> all((select temporary from relations)::oid[])
    union all
    select 'pg_constraint:pg_constraint ' || oid || ' 0', xmin
    from pg_catalog.pg_constraint
    where oid >= 16384
      and conrelid <> all((select temporary from relations)::oid[])
    union all
    select 'pg_index:pg_class ' || indexrelid || ' 0', xmin
    from pg_catalog.pg_index
    where indrelid >= 16384
      and indrelid <> all((select temporary from relations)::oid[])
    union all
    select 'pg_trigger:pg_trigger ' || oid || ' 0', xmin
    from pg_catalog.pg_trigger
    where tgrelid >= 16384
      and tgrelid <> all((select temporary from relations)::oid[])
    union all
    select 'pg_inherits:pg_class ' || inhrelid || ' 0', xmin
    from pg_catalog.pg_inherits
    where inhparent >= 16384
      and inhparent <> all((select temporary from relations)::oid[])
    union all
    -- By the rule's own id: one that was added to a view of the server counts too.
    select 'pg_rewrite:pg_rewrite ' || oid || ' 0', xmin
    from pg_catalog.pg_rewrite
    where oid >= 16384
      and ev_class <> all((select temporary from relations)::oid[])
    union all
    -- The view that every role may update.
    select 'pg_rewrite:pg_rewrite ' || oid || ' 0', xmin
    from pg_catalog.pg_rewrite
    where oid < 16384
      and ev_class = 'pg_settings'::regclass
    union all
    select 'pg_policy:pg_policy ' || oid || ' 0', xmin
    from pg_catalog.pg_policy
    union all
    select 'pg_proc:pg_proc ' || oid || ' 0', xmin
    from pg_catalog.pg_proc
    where xmin <> '1'
    union all
    -- Every table, also a temporary one, has a row type and an array type. A domain over an array is
    -- not one of those.
    select 'pg_type:pg_type ' || oid || ' 0', xmin
    from pg_catalog.pg_type
    where oid >= 16384
      and typtype <> 'c'
      and (typcategory <> 'A' or typarray <> 0)
    union all
    select 'pg_enum:pg_type ' || enumtypid || ' 0 ' || enumlabel, xmin
    from pg_catalog.pg_enum
    union all
    select 'pg_cast:pg_cast ' || oid || ' 0', xmin
    from pg_catalog.pg_cast
    where oid >= 16384
    union all
    select 'pg_operator:pg_operator ' || oid || ' 0', xmin
    from pg_catalog.pg_operator
    where oid >= 16384
    union all
    select 'pg_amproc:pg_amproc ' || oid || ' 0', xmin
    from pg_catalog.pg_amproc
    where oid >= 16384
    union all
    select 'pg_amop:pg_amop ' || oid || ' 0', xmin
    from pg_catalog.pg_amop
    where oid >= 16384
    union all
    select 'pg_conversion:pg_conversion ' || oid || ' 0', xmin
    from pg_catalog.pg_conversion
    where oid >= 16384
    union all
    select 'pg_statistic_ext:pg_statistic_ext ' || oid || ' 0', xmin
    from pg_catalog.pg_statistic_ext
    union all
    select 'pg_transform:pg_transform ' || oid || ' 0', xmin
    from pg_catalog.pg_transform
    union all
    select 'pg_language:pg_language ' || oid || ' 0', xmin
    from pg_catalog.pg_language
    union all
    select 'pg_extension:pg_extension ' || oid || ' 0', xmin
    from pg_catalog.pg_extension
    union all
    select 'pg_event_trigger:pg_event_trigger ' || oid || ' 0', xmin
    from pg_catalog.pg_event_trigger
    union all
    select 'pg_foreign_data_wrapper:pg_foreign_data_wrapper ' || oid || ' 0', xmin
    from pg_catalog.pg_foreign_data_wrapper
    union all
    select 'pg_foreign_server:pg_foreign_server ' || oid || ' 0', xmin
    from pg_catalog.pg_foreign_server
    union all
    select 'pg_foreign_table:pg_class ' || ftrelid || ' 0', xmin
    from pg_catalog.pg_foreign_table
    union all
    select 'pg_user_mapping:pg_user_mapping ' || oid || ' 0', version
    from mapping_versions
    union all
    select 'pg_publication:pg_publication ' || oid || ' 0', xmin
    from pg_catalog.pg_publication
    union all
    select 'pg_publication_rel:pg_publication_rel ' || oid || ' 0', xmin
    from pg_catalog.pg_publication_rel
    union all
    select 'pg_publication_namespace:pg_publication_namespace ' || oid || ' 0', xmin
    from pg_catalog.pg_publication_namespace
    union all
    select 'pg_sequence:pg_class ' || seqrelid || ' 0', xmin
    from pg_catalog.pg_sequence
    where seqrelid >= 16384
      and seqrelid <> all((select temporary from relations)::oid[])
    union all
    select 'pg_default_acl:pg_default_acl ' || oid || ' 0', xmin
    from pg_catalog.pg_default_acl
    union all
    select
      'pg_depend:' || classid::regclass || ' ' || objid || ' ' || objsubid
        || ' membership in an extension',
      xmin
    from pg_catalog.pg_depend
    where refclassid = 'pg_extension'::regclass
      and deptype = 'e'
  );

-- name: moment
-- The snapshot that a statement reads with, and what may change without the end of a transaction:
-- counters, which are reported later than that, and settings. The snapshot of a standby does not say
-- what runs, and means nothing once the standby is promoted. After a crash the server gives out ids
-- again of which nothing was on disk: it restarts its sessions without restarting itself, and its
-- statistics.
-- The counters are those of catalogues where adding and removing a row leaves no version behind. They
-- show such a pair only once the session that made it has reported its statistics: at its first commit,
-- at its end, and otherwise after one to ten seconds. Until then a pair that was undone completely is
-- not seen; everything else is seen at once. Catalogues of the whole server are not among them: any new
-- role, in any database, would refuse what is in flight.
select
  pg_current_snapshot() as snapshot,
  concat_ws(
    ' ',
    array_to_string(
      array(
        select
          name || ':' || (
            pg_stat_get_tuples_inserted(catalog)
            + pg_stat_get_tuples_updated(catalog)
            + pg_stat_get_tuples_deleted(catalog)
          )
        from
          (
            values
              ('pg_proc', 'pg_proc'::regclass),
              ('pg_trigger', 'pg_trigger'::regclass),
              ('pg_rewrite', 'pg_rewrite'::regclass),
              ('pg_policy', 'pg_policy'::regclass),
              ('pg_event_trigger', 'pg_event_trigger'::regclass),
              ('pg_extension', 'pg_extension'::regclass),
              ('pg_foreign_server', 'pg_foreign_server'::regclass),
              ('pg_foreign_table', 'pg_foreign_table'::regclass),
              ('pg_user_mapping', 'pg_user_mapping'::regclass),
              ('pg_cast', 'pg_cast'::regclass),
              ('pg_operator', 'pg_operator'::regclass),
              ('pg_language', 'pg_language'::regclass),
              ('pg_publication_rel', 'pg_publication_rel'::regclass)
          ) as counted (name, catalog)
      ),
      ' '
    ),
    current_setting('fsync'),
    current_setting('full_page_writes'),
    current_setting('track_counts'),
    extract(epoch from pg_conf_load_time()),
    pg_postmaster_start_time(),
    pg_is_in_recovery(),
    pg_stat_get_bgwriter_stat_reset_time()
  ) as besides;

-- name: fingerprint
-- How many of the watched rows each transaction wrote. A row that is written counts for its writer, one
-- that is deleted is missing there, and once a transaction is over its number can only fall: equal
-- numbers are the same row versions. Sorting the rows of every catalogue took half of the time.
select
  moment.snapshot,
  moment.besides,
  (
    select
      encode(
        sha256(string_agg(xidsend(version) || int8send(n), '' order by xidsend(version))),
        'hex'
      )
    from
      (select version, count(*) as n from watched group by version) as written
  )
from
  moment;

-- name: versions
-- Row versions one by one.
select
  object,
  string_agg(version::text, ' ' order by version::text) as version
from
  watched
group by
  object;

-- name: roles
-- These roles and all they are members of.
with recursive closure (oid) as (
  select oid from pg_roles where rolname = any ($1)
  union
  select m.roleid from closure c join pg_auth_members m on m.member = c.oid
)
select oid::int8 as oid from closure order by oid;

-- name: describe
-- The object that a row belongs to, in the words of the server.
select
  coalesce(
    pg_catalog.pg_describe_object($1::pg_catalog.regclass, $2, $3),
    $1 || ' ' || $2
  );
