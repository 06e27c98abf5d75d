-- The trusted functions of the schema effectmatch, in the order in which they can be created. A survey
-- compares the body and settings of each with the catalogue.
-- Settings: the search path keeps application objects from answering for the system's. Functions that
-- look into our own tables turn sequential scans off: their plans are cached while the tables are empty,
-- and a plan that reads the whole of an empty table would read the whole of a full one for as long as
-- the session lives. No statement here may need such a scan: its plan would look so expensive that the
-- server would compile it at every call. The owner of our tables is not subject to policies, and a
-- policy on one of them is an open outlet. Every setting costs time at every call, so there are no more.

-- name: record_row
-- Records one row that the execution login wrote. Without a stage that is open and not yet observed,
-- the write is refused. The formats make a row image a function of the stored row alone.
create or replace function effectmatch.record_row() returns trigger
language plpgsql security definer
  set search_path = pg_catalog, pg_temp
  set datestyle = 'ISO, YMD'
  set timezone = 'UTC'
  set intervalstyle = 'postgres'
  set bytea_output = 'hex'
  set extra_float_digits = '1'
  set lc_monetary = 'C'
  set quote_all_identifiers = 'off'
  set enable_seqscan = off
as $effectmatch$
begin
  insert into effectmatch.record (xid, relation, op, images, was, became)
  select s.xid, tg_relid, left(tg_op, 1)::"char", 1,
         case tg_op when 'INSERT' then null else concat(old) end,
         case tg_op when 'DELETE' then null else concat(new) end
    from effectmatch.stage as s
   where s.ctid = nullif(current_setting('effectmatch.stage', true), '')::tid
     and s.xid is not distinct from pg_current_xact_id() and not s.sealed;
  if not found then
    raise exception using errcode = 'EM001',
      message = 'EffectMatch: the execution login wrote outside an open stage, or after it was observed',
      hint = 'Run the operation through the runtime; a deferred trigger or a held cursor must not write at COMMIT.';
  end if;
  return null;
end
$effectmatch$;

-- name: record_insert
-- The same for a whole statement, from its transition tables.
create or replace function effectmatch.record_insert() returns trigger
language plpgsql security definer
  set search_path = pg_catalog, pg_temp
  set datestyle = 'ISO, YMD'
  set timezone = 'UTC'
  set intervalstyle = 'postgres'
  set bytea_output = 'hex'
  set extra_float_digits = '1'
  set lc_monetary = 'C'
  set quote_all_identifiers = 'off'
  set enable_seqscan = off
as $effectmatch$
declare
  n bigint;
  was text;
  became text;
begin
  select count(*), string_agg(concat(r), '') into n, became from new_rows as r;
  if n = 0 then return null; end if;
  insert into effectmatch.record (xid, relation, op, images, was, became)
  select s.xid, tg_relid, left(tg_op, 1)::"char", n, was, became
    from effectmatch.stage as s
   where s.ctid = nullif(current_setting('effectmatch.stage', true), '')::tid
     and s.xid is not distinct from pg_current_xact_id() and not s.sealed;
  if not found then
    raise exception using errcode = 'EM001',
      message = 'EffectMatch: the execution login wrote outside an open stage, or after it was observed',
      hint = 'Run the operation through the runtime; a deferred trigger or a held cursor must not write at COMMIT.';
  end if;
  return null;
end
$effectmatch$;

-- name: record_update
create or replace function effectmatch.record_update() returns trigger
language plpgsql security definer
  set search_path = pg_catalog, pg_temp
  set datestyle = 'ISO, YMD'
  set timezone = 'UTC'
  set intervalstyle = 'postgres'
  set bytea_output = 'hex'
  set extra_float_digits = '1'
  set lc_monetary = 'C'
  set quote_all_identifiers = 'off'
  set enable_seqscan = off
as $effectmatch$
declare
  n bigint;
  was text;
  became text;
begin
  select count(*), string_agg(concat(r), '') into n, was from old_rows as r;
  select count(*), string_agg(concat(r), '') into n, became from new_rows as r;
  if n = 0 then return null; end if;
  insert into effectmatch.record (xid, relation, op, images, was, became)
  select s.xid, tg_relid, left(tg_op, 1)::"char", n, was, became
    from effectmatch.stage as s
   where s.ctid = nullif(current_setting('effectmatch.stage', true), '')::tid
     and s.xid is not distinct from pg_current_xact_id() and not s.sealed;
  if not found then
    raise exception using errcode = 'EM001',
      message = 'EffectMatch: the execution login wrote outside an open stage, or after it was observed',
      hint = 'Run the operation through the runtime; a deferred trigger or a held cursor must not write at COMMIT.';
  end if;
  return null;
end
$effectmatch$;

-- name: record_delete
create or replace function effectmatch.record_delete() returns trigger
language plpgsql security definer
  set search_path = pg_catalog, pg_temp
  set datestyle = 'ISO, YMD'
  set timezone = 'UTC'
  set intervalstyle = 'postgres'
  set bytea_output = 'hex'
  set extra_float_digits = '1'
  set lc_monetary = 'C'
  set quote_all_identifiers = 'off'
  set enable_seqscan = off
as $effectmatch$
declare
  n bigint;
  was text;
  became text;
begin
  select count(*), string_agg(concat(r), '') into n, was from old_rows as r;
  if n = 0 then return null; end if;
  insert into effectmatch.record (xid, relation, op, images, was, became)
  select s.xid, tg_relid, left(tg_op, 1)::"char", n, was, became
    from effectmatch.stage as s
   where s.ctid = nullif(current_setting('effectmatch.stage', true), '')::tid
     and s.xid is not distinct from pg_current_xact_id() and not s.sealed;
  if not found then
    raise exception using errcode = 'EM001',
      message = 'EffectMatch: the execution login wrote outside an open stage, or after it was observed',
      hint = 'Run the operation through the runtime; a deferred trigger or a held cursor must not write at COMMIT.';
  end if;
  return null;
end
$effectmatch$;

-- name: refuse_truncate
create or replace function effectmatch.refuse_truncate() returns trigger
language plpgsql security definer
  set search_path = pg_catalog, pg_temp
as $effectmatch$
begin
  raise exception using errcode = 'EM002', message = 'EffectMatch: the execution login may not truncate a registered table';
end
$effectmatch$;

-- name: guard
-- Fires at COMMIT: a transaction of the execution login needs its marker.
create or replace function effectmatch.guard() returns trigger
language plpgsql security definer
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
as $effectmatch$
begin
  perform from effectmatch.marker as m
    where m.ctid = nullif(current_setting('effectmatch.marker', true), '')::tid
      and m.occurrence is not distinct from new.occurrence and m.xid is not distinct from new.xid;
  if not found then
    raise exception using errcode = 'EM003',
      message = 'EffectMatch: this transaction cannot commit, because it was not promoted',
      hint = 'An operation must not COMMIT by itself, and must name constraints instead of SET CONSTRAINTS ALL IMMEDIATE.';
  end if;
  return null;
end
$effectmatch$;

-- name: open
-- Opens a stage: the place of its row is kept in a setting, because a look through the index would make
-- serializable transactions conflict with every other that opens a stage meanwhile. Any role may change
-- the setting; it then finds nothing, or is refused. The row keeps how often this session had turned to
-- each sequence.
create or replace function effectmatch.open(
  opened text, sequences oid[], deadline_ms integer, lock_ms integer,
  out xid text, out at_ms bigint, out marker text, out positions text, out done text
) returns record
language plpgsql security definer
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
as $effectmatch$
begin
  -- In a serializable transaction the look for a marker would conflict with every marker of its time; there it is taken before.
  -- The time is that of the transaction, which is what now() says in it, however long ago it began.
  insert into effectmatch.stage as s (xid, occurrence, looks)
    values (pg_current_xact_id(), opened,
      array(select pg_stat_get_xact_blocks_fetched(s) from unnest(sequences) as given(s)))
    returning s.xid::text, floor(extract(epoch from now()) * 1000),
      case when current_setting('transaction_isolation') <> 'serializable'
           then (select m.disposition from effectmatch.marker as m where m.occurrence = opened) end,
      array_to_string(array(
      select concat(s, ':', pg_sequence_last_value(s)) from unnest(sequences) as given(s)), ' '),
      concat(set_config('effectmatch.stage', s.ctid::text, true),
        set_config('lock_timeout', lock_ms::text, true), set_config('statement_timeout', deadline_ms::text, true),
        set_config('idle_in_transaction_session_timeout', deadline_ms::text, true),
        case when current_setting('server_version_num')::integer >= 170000
             then set_config('transaction_timeout', deadline_ms::text, true) end)
    into xid, at_ms, marker, positions, done;
end
$effectmatch$;

-- name: find_marker
-- For serializable stages, in a transaction before theirs.
create or replace function effectmatch.find_marker(sought text) returns text
language plpgsql security definer
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
as $effectmatch$
begin
  return (select m.disposition from effectmatch.marker as m where m.occurrence = sought);
end
$effectmatch$;

-- name: read_rows
-- Locks and returns declared rows. The runtime signs the queries, so agent SQL cannot ask for others.
create or replace function effectmatch.read_rows(opened text, reads text[], mac bytea) returns setof text
language plpgsql security definer
  set search_path = pg_catalog, pg_temp
  set row_security = off
  set datestyle = 'ISO, YMD'
  set timezone = 'UTC'
  set intervalstyle = 'postgres'
  set bytea_output = 'hex'
  set extra_float_digits = '1'
  set lc_monetary = 'C'
  set quote_all_identifiers = 'off'
  set xmloption = 'content'
  set array_nulls = 'on'
  set standard_conforming_strings = 'on'
as $effectmatch$
declare
  query text;
  image text;
begin
  perform from effectmatch.deployment as d
   where mac is not distinct from sha256(d.outer_pad || sha256(d.inner_pad || convert_to(concat_ws(chr(10), 'reads', opened, array_to_string(reads, chr(10))), 'UTF8')));
  if not found then
    raise exception using errcode = 'EM004', message = 'EffectMatch: these reads were not asked for by the runtime';
  end if;
  foreach query in array reads loop
    image := null;
    execute query into image;
    return next image;
  end loop;
end
$effectmatch$;

-- name: observe
-- Closes the stage to writes and returns what was written: first the facts, then the records.
-- Facts: every write of this transaction on watched relations as the server counts them; what the
-- witnesses rest on and what may still write at COMMIT; where the sequences stand that this session
-- turned to since the stage was opened, and how often it did. A draw reads the only block of the
-- sequence once, whatever becomes of the transaction, and so did the look at its position in open.
create or replace function effectmatch.observe(watched oid[], sequences oid[])
returns table (relation oid, op "char", images bigint, was text, became text)
language plpgsql security definer
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
as $effectmatch$
declare
  opened bigint[];
  done text;
begin
  update effectmatch.stage as s set sealed = true
   where s.ctid = nullif(current_setting('effectmatch.stage', true), '')::tid
     and s.xid is not distinct from pg_current_xact_id() and not s.sealed
   returning s.looks, set_config('effectmatch.stage', s.ctid::text, true) into opened, done;
  if not found then
    raise exception using errcode = 'EM005', message = 'EffectMatch: there is no open stage to observe';
  end if;
  return query
    select 0::oid, 'F'::"char", ceil(extract(epoch from clock_timestamp()) * 1000)::bigint,
      concat_ws(chr(10), pg_current_xact_id(), array_to_string(array(
      select concat(o, ':', i, '/', u, '/', d)
        from (select o, pg_stat_get_xact_tuples_inserted(o) as i, pg_stat_get_xact_tuples_updated(o) as u,
                     pg_stat_get_xact_tuples_deleted(o) as d
                from unnest(watched) as w(o)) as counters
       where i <> 0 or u <> 0 or d <> 0), ' '),
      concat_ws(' ', current_setting('session_replication_role'), current_setting('track_counts'),
      current_setting('client_encoding'), current_setting('transaction_isolation'),
      (select count(*) from pg_cursors as c where c.is_holdable))),
      array_to_string(array(
      select concat(s, ':', pg_sequence_last_value(s), ':', times)
        from (select s, pg_stat_get_xact_blocks_fetched(s) - before - 1 as times
                from rows from (unnest(sequences), unnest(opened)) as given(s, before)) as touched
       where times is distinct from 0), ' ')
    union all
    select r.relation, r.op, r.images, r.was, r.became
      from effectmatch.record as r
     where r.spread = hashtext(pg_current_xact_id()::text) and r.xid = pg_current_xact_id();
end
$effectmatch$;

-- name: promote
-- Writes the marker. Every command of a transaction that writes or locks gets the next number,
-- whatever it writes: the marker's number is that of the observation and one more for each lock that the
-- runtime took in between, or the marker is not written. The stage comes after it, so that the last
-- check cannot have run before.
create or replace function effectmatch.promote(
  candidate text, locks integer, promoted text, content text,
  seal_key text, seal_mac text, mac bytea
) returns void
language plpgsql security definer
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
as $effectmatch$
declare
  command bigint;
  done text;
begin
  insert into effectmatch.marker as m (occurrence, disposition, text, seal_key, seal_mac, xid)
  select promoted, 'committed', content, promote.seal_key, promote.seal_mac, pg_current_xact_id()
    from effectmatch.deployment as d
   where d.only_row and mac is not distinct from sha256(d.outer_pad || sha256(d.inner_pad || convert_to(concat_ws(chr(10), 'promote', candidate, locks, promoted, promote.seal_key, promote.seal_mac, content), 'UTF8')))
  returning m.cmin::text::bigint, set_config('effectmatch.marker', m.ctid::text, true) into command, done;
  if not found then
    raise exception using errcode = 'EM004', message = 'EffectMatch: this promotion was not asked for by the runtime';
  end if;
  update effectmatch.stage as s set marked = command
   where s.ctid = nullif(current_setting('effectmatch.stage', true), '')::tid
     and s.xid is not distinct from pg_current_xact_id() and s.sealed and s.occurrence is not distinct from promoted
     and s.cmin::text::bigint + 1 + locks = command and candidate is not distinct from pg_current_xact_id()::text
  returning set_config('effectmatch.stage', s.ctid::text, true) into done;
  if not found then
    raise exception using errcode = 'EM006', message = 'EffectMatch: this is not the candidate that was observed';
  end if;
end
$effectmatch$;

-- name: settle
-- Fires at COMMIT, after everything that was deferred before the promotion. Fired earlier, from within
-- a trigger of the application, it would let that trigger write after it. Any write since the promotion
-- has taken a number. What makes a commit volatile is undone here, because whatever ran before could
-- have set it. The runtime's three prepared calls must still be there, and no others.
create or replace function effectmatch.settle() returns trigger
language plpgsql security definer
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
as $effectmatch$
declare
  passed bigint;
  done text;
begin
  update effectmatch.stage as s set sealed = true
   where s.ctid = nullif(current_setting('effectmatch.stage', true), '')::tid
     and s.xid is not distinct from pg_current_xact_id() and s.marked is not null and pg_trigger_depth() = 1
     and not exists (select from pg_cursors as c where c.is_holdable) and (select count(*) filter (where starts_with(p.name, 'effectmatch_')) = 3
        and not bool_or(p.from_sql) from pg_prepared_statements as p)
  returning s.cmin::text::bigint - s.marked into passed;
  if passed is distinct from 2 then
    raise exception using errcode = 'EM007', message = 'EffectMatch: something was written after the observation';
  end if;
  if current_setting('synchronous_commit') in ('off', 'local') then
    done := set_config('synchronous_commit', 'on', true);
  end if;
  return null;
end
$effectmatch$;

-- name: reset
-- Part of a reset: what the execution login may not do by itself.
create or replace function effectmatch.reset() returns boolean
language plpgsql security definer
  set search_path = pg_catalog, pg_temp
as $effectmatch$
begin
  return concat(pg_advisory_unlock_all(), pg_stat_force_next_flush(),
      setseed(hashtext(gen_random_uuid()::text) / 2147483648.0)) = '';
end
$effectmatch$;

-- name: calls_intact
-- Whether the runtime's own prepared calls are there, and no others. A COMMIT has found that out already.
create or replace function effectmatch.calls_intact() returns boolean
language plpgsql security definer
  set search_path = pg_catalog, pg_temp
as $effectmatch$
begin
  return (select count(*) filter (where starts_with(p.name, 'effectmatch_')) = 3
        and not bool_or(p.from_sql) from pg_prepared_statements as p);
end
$effectmatch$;

-- name: describe
-- The identity of the deployment and its secret, for the trusted login.
create or replace function effectmatch.describe()
returns table (backend text, version integer, inner_pad bytea, outer_pad bytea)
language plpgsql security definer
  set search_path = pg_catalog, pg_temp
as $effectmatch$
begin
  return query select d.backend, d.version, d.inner_pad, d.outer_pad from effectmatch.deployment as d;
end
$effectmatch$;

-- name: revoke_public
-- Trigger functions need no grant to fire.
revoke all on all functions in schema effectmatch from public;

-- name: grant_execution
grant execute on function
  effectmatch.open,
  effectmatch.find_marker,
  effectmatch.read_rows,
  effectmatch.observe,
  effectmatch.promote,
  effectmatch.reset,
  effectmatch.calls_intact
to :"execution";

-- name: grant_control
grant execute on function effectmatch.describe to :"control";
