-- What the ledger asks and writes. Nothing depends on the session: each statement names its schema,
-- and settings end with their transaction, so that a pooler may give every transaction a different
-- session.

-- name: lock
select pg_catalog.pg_current_xact_id(), pg_catalog.pg_backend_pid()
  from :"schema".turn where id for update;

-- name: moment
-- Read by a separate statement, so that it sees what was committed before the lock was granted.
select positions, (extract(epoch from pg_catalog.clock_timestamp()) * 1000)::bigint
  from :"schema".head where id;

-- name: plans
select task, revision from :"schema".plan where task = any ($1::text[]);

-- name: issuances
-- By nonce, or by the claims of occurrences.
select id, issuer, nonce, claimed, license, approved, binding, seal_key, mac
  from :"schema".issuance as i
  where exists (select from unnest($1::text[], $2::text[]) as asked (issuer, nonce)
      where asked.issuer = i.issuer and asked.nonce = i.nonce);

-- name: issuances_of
select id, issuer, nonce, claimed, license, approved, binding, seal_key, mac
  from :"schema".issuance
  where id in (
    select issuance from :"schema".journal where occurrence = any ($1::text[]) and slot = 'claim'
    union all
    select issuance from :"schema".archive where occurrence = any ($1::text[]) and slot = 'claim');

-- name: rows
select h.seq, h.kind, h.occurrence, h.slot, h.text, h.seal_key, h.seal_mac, h.digest, h.issuance,
    u.execution, u.lease_until_ms
  from (
    select * from :"schema".journal where occurrence = any ($1::text[])
    union all
    select * from :"schema".archive where occurrence = any ($1::text[])) as h
  left join :"schema".unsettled as u on u.claim = h.seq
  order by h.seq;

-- name: standing
-- The rows of an attempt that has not ended are never archived.
select (select revision from :"schema".plan where task = $1),
  exists (
    select from :"schema".journal as j join :"schema".unsettled as u on u.claim = j.seq
      where j.occurrence = $2 and j.slot = 'claim' and u.execution = $3);

-- name: page
select seq, kind, occurrence, slot, text, seal_key, seal_mac, digest
  from (select * from :"schema".journal union all select * from :"schema".archive) as h
  where seq > $1::bigint order by seq limit $2::bigint;

-- name: last_page
select seq, kind, occurrence, slot, text, seal_key, seal_mac, digest
  from (select * from :"schema".journal union all select * from :"schema".archive) as h
  where seq > $1::bigint order by seq desc limit $2::bigint;

-- name: search
select distinct occurrence
  from (select * from :"schema".journal union all select * from :"schema".archive) as h
  where occurrence >= $1 and occurrence < $2 order by occurrence limit 10;

-- name: uncompleted
select seq, kind, occurrence, slot, text, seal_key, seal_mac, digest
  from (select * from :"schema".journal union all select * from :"schema".archive) as released
  where kind = 'acknowledgement' and slot like 'released:%' and not exists (
    select from (select * from :"schema".journal union all select * from :"schema".archive) as done
      where done.occurrence = released.occurrence
        and done.slot = 'completed:'
          || pg_catalog.split_part(pg_catalog.substr(released.slot, 10), '#', 1))
  order by seq;

-- name: unsettled
select u.claim, u.execution, u.lease_until_ms, h.occurrence
  from :"schema".unsettled as u
  left join (select * from :"schema".journal union all select * from :"schema".archive) as h
    on h.seq = u.claim
  where $1::boolean
    or u.lease_until_ms <= extract(epoch from pg_catalog.clock_timestamp()) * 1000
  order by u.claim;

-- name: documents
select digest, text, seal_key, seal_mac from :"schema".document where digest = any ($1::text[]);

-- name: documents_after
select digest, text, seal_key, seal_mac from :"schema".document
  where digest > $1 order by digest limit $2::bigint;

-- name: checkpoints_after
-- With the newest as the last.
(select through_seq, text, seal_key, seal_mac from :"schema".checkpoint
  where through_seq > $1::bigint order by through_seq limit $2::bigint)
union
(select through_seq, text, seal_key, seal_mac from :"schema".checkpoint
  order by through_seq desc limit 1)
order by through_seq;

-- name: totals
select (
    select claim from :"schema".unsettled as u
      where not exists (
        select from (select * from :"schema".journal union all select * from :"schema".archive) as h
          where h.seq = u.claim and h.kind = 'claim') limit 1),
  (select coalesce(sum(claimed), 0) from :"schema".issuance);

-- name: decide
select :"schema".decide($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
  $18, $19, $20, $21);

-- name: copy_rows
select :"schema".decide(raised => $1, issued => $2, appended => $3, checkpoints => $4,
  documents => $5, new_positions => $6);

-- name: archive_rows
with bound as (
    select coalesce(max(through_seq), 0) as seq from :"schema".checkpoint
      where (text::jsonb ->> 'at')::timestamptz <= $1::timestamptz),
  moved as (
    delete from :"schema".journal
      where seq <= (select bound.seq from bound)
        and occurrence not in (
          select j.occurrence from :"schema".unsettled as u
            join :"schema".journal as j on j.seq = u.claim)
      returning *),
  kept as (insert into :"schema".archive select * from moved returning seq)
select count(*) from kept;

-- name: conditions
-- What a commit promises, and whether this is the place that was prepared.
select pg_catalog.current_setting('fsync'), pg_catalog.current_setting('full_page_writes'),
  pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('server_encoding'),
  pg_catalog.current_setting('search_path'),
  pg_catalog.has_schema_privilege(n.oid, 'usage'),
  exists (select from pg_catalog.pg_class where relnamespace = n.oid and relname = 'head'),
  pg_catalog.has_function_privilege('pg_catalog.pg_control_system()', 'execute'),
  exists (select from pg_catalog.pg_proc
    where pronamespace = n.oid and proname = 'decide' and prosrc = :'decide')
  from (select) as one left join pg_catalog.pg_namespace as n on n.nspname = :'schema';

-- name: version
select version from :"schema".head where id;

-- name: structure
-- Whatever is there and should not be, or the other way round.
with tables (name, columns) as (values
    ('archive', 'seq int8 kind text occurrence text slot text text text seal_key text seal_mac text digest text issuance int8?'),
    ('checkpoint', 'through_seq int8 text text seal_key text seal_mac text'),
    ('document', 'digest text text text seal_key text seal_mac text'),
    ('head', 'id bool version int4 positions int8'),
    ('issuance', 'id int8 issuer text nonce text claimed int4 license text approved text binding text seal_key text mac text'),
    ('journal', 'seq int8 kind text occurrence text slot text text text seal_key text seal_mac text digest text issuance int8?'),
    ('plan', 'task text revision int8'), ('turn', 'id bool'),
    ('unsettled', 'claim int8 execution text lease_until_ms int8')),
  keys (name, columns) as (values
    ('archive', 'seq'), ('archive', 'occurrence slot'), ('checkpoint', 'through_seq'),
    ('document', 'digest'), ('head', 'id'), ('issuance', 'id'), ('issuance', 'issuer nonce'),
    ('journal', 'seq'), ('journal', 'occurrence slot'), ('plan', 'task'), ('turn', 'id'),
    ('unsettled', 'claim')),
  checks (name, definition) as (values
    ('archive', 'CHECK (((issuance IS NOT NULL) = (kind = ''claim''::text)))'),
    ('head', 'CHECK (id)'), ('issuance', 'CHECK ((claimed > 0))'),
    ('journal', 'CHECK (((issuance IS NOT NULL) = (kind = ''claim''::text)))'),
    ('turn', 'CHECK (id)')),
  found as (
    select c.oid, c.relname::text as name, c.relkind, c.relpersistence, c.relrowsecurity
      from pg_catalog.pg_class as c join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
      where n.nspname = :'schema' and c.relkind not in ('i', 't'))
select 'it has the trigger ' || t.tgname from pg_catalog.pg_trigger as t
  join found on found.oid = t.tgrelid
union all
select 'it has the rule ' || r.rulename from pg_catalog.pg_rewrite as r
  join found on found.oid = r.ev_class
union all
select 'it has the policy ' || p.polname from pg_catalog.pg_policy as p
  join found on found.oid = p.polrelid
union all
select 'it has another function ' || p.proname from pg_catalog.pg_proc as p
  join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
  where n.nspname = :'schema'
    and (p.proname <> 'decide' or p.prosrc <> :'decide' or p.prosecdef or p.proconfig is not null)
union all
select name || ' was not made by any release' from found
  where relkind <> 'r' or relpersistence <> 'p' or relrowsecurity
    or name not in (select tables.name from tables)
union all
select name || ' does not have its columns' from (
  select * from tables
  except
  select name, pg_catalog.string_agg(
      a.attname || ' ' || t.typname || case when a.attnotnull then '' else '?' end, ' '
      order by a.attnum)
    from found join pg_catalog.pg_attribute as a on a.attrelid = found.oid
    join pg_catalog.pg_type as t on t.oid = a.atttypid
    where a.attnum > 0 and not a.attisdropped group by name) as missing
union all
select name || ' has no unique key on ' || columns from (
  select * from keys
  except
  select name, (
      select pg_catalog.string_agg(a.attname, ' ' order by k.place)
        from pg_catalog.unnest(i.indkey) with ordinality as k (attnum, place)
        join pg_catalog.pg_attribute as a
          on a.attrelid = i.indrelid and a.attnum = k.attnum)
    from found join pg_catalog.pg_index as i on i.indrelid = found.oid
    where i.indisunique and i.indisvalid and i.indisready and i.indimmediate
      and i.indpred is null and i.indexprs is null) as missing
union all
-- Rows from before such a check are verified one by one.
select name || ' does not have the constraint ' || definition from (
  select * from checks
  except
  select name, pg_catalog.replace(pg_catalog.pg_get_constraintdef(k.oid), ' NOT VALID', '')
    from found join pg_catalog.pg_constraint as k on k.conrelid = found.oid
    where k.contype = 'c') as missing
limit 1;

-- name: entries
-- How many rows each unique index finds, or the table has, depending on what the planner may use.
select key, n::text from (
  select 'archive_pkey' as key, count(*) as n from :"schema".archive where seq > 0
  union all select 'archive_slot', count(*) from :"schema".archive where occurrence >= ''
  union all select 'checkpoint_pkey', count(*) from :"schema".checkpoint where through_seq > 0
  union all select 'document_pkey', count(*) from :"schema".document where digest >= ''
  union all select 'issuance_pkey', count(*) from :"schema".issuance where id > 0
  union all select 'issuance_nonce', count(*) from :"schema".issuance where issuer >= ''
  union all select 'journal_pkey', count(*) from :"schema".journal where seq > 0
  union all select 'journal_slot', count(*) from :"schema".journal where occurrence >= ''
  union all select 'plan_pkey', count(*) from :"schema".plan where task >= ''
  union all select 'unsettled_pkey', count(*) from :"schema".unsettled where claim > 0) as counted
  order by key;
