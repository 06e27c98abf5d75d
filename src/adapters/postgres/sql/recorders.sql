-- Recorders of one relation. They fire for the execution login alone, even while its code runs with
-- other rights: other writers of the table are neither slowed down nor recorded. Always enabled, so
-- that no replication setting stops them.

-- name: effectmatch_record
create trigger effectmatch_record
after insert or update or delete on :"schema".:"table"
for each row when (session_user = :'execution'::name)
execute function effectmatch.record_row();

-- name: effectmatch_record_insert
create trigger effectmatch_record_insert
after insert on :"schema".:"table"
referencing new table as new_rows
for each statement when (session_user = :'execution'::name)
execute function effectmatch.record_insert();

-- name: effectmatch_record_update
create trigger effectmatch_record_update
after update on :"schema".:"table"
referencing old table as old_rows new table as new_rows
for each statement when (session_user = :'execution'::name)
execute function effectmatch.record_update();

-- name: effectmatch_record_delete
create trigger effectmatch_record_delete
after delete on :"schema".:"table"
referencing old table as old_rows
for each statement when (session_user = :'execution'::name)
execute function effectmatch.record_delete();

-- name: effectmatch_truncate
create trigger effectmatch_truncate
before truncate on :"schema".:"table"
for each statement when (session_user = :'execution'::name)
execute function effectmatch.refuse_truncate();

-- name: enable
alter table :"schema".:"table" enable always trigger :"trigger";

-- name: drop
drop trigger if exists :"trigger" on :"schema".:"table";

-- name: lend_to_owner
-- Adding a partition clones the recorder, which needs the right to use it; the table's owner does that.
do $effectmatch$
declare
  r name;
begin
  select pg_catalog.pg_get_userbyid(c.relowner) into r
    from pg_catalog.pg_class as c
    join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
   where n.nspname = :'schema' and c.relname = :'table';
  execute format('grant usage on schema effectmatch to %I', r);
  execute format(
    'grant execute on function effectmatch.record_row(), effectmatch.refuse_truncate() to %I', r);
end
$effectmatch$;
