-- The function that writes what was decided. It can be created again.

-- name: decide
-- Writes what was decided, in one call: sending one statement for each table costs more than the
-- statements do. Fails unless it is alone, and unless the tables are as the process believes that decided: the last
-- position, how many rows some occurrences have, nonces that were not used, and plans that were not
-- superseded. Each list of rows is a JSON text with the names of the columns, or null. It has the
-- rights of its caller.
create or replace function :"schema".decide(
  lock_ms integer default null,
  relaxed boolean default false,
  known_positions bigint default null,
  known_occurrences text[] default null,
  known_counts bigint[] default null,
  unused_issuers text[] default null,
  unused_nonces text[] default null,
  known_tasks text[] default null,
  known_revisions bigint[] default null,
  new_issuances json default null,
  counted json default null,
  new_rows json default null,
  entered json default null,
  leased json default null,
  removed bigint[] default null,
  raised_plans json default null,
  new_documents json default null,
  new_checkpoints json default null,
  new_positions bigint default null,
  announced text[] default null
) returns text language plpgsql as $effectmatch$
declare
  one text;
begin
  if lock_ms is not null then
    if pg_catalog.current_setting('transaction_isolation') <> 'read committed' then
      raise exception 'a later statement must see what was committed before the lock was granted';
    end if;
    execute 'set local lock_timeout = ' || lock_ms;
  end if;
  if relaxed then
    set local synchronous_commit = off;
  else
    set local synchronous_commit = on;
  end if;
  perform from :"schema".turn where id for update;
  if not found then
    raise exception 'the row that decisions take turns by is missing';
  end if;
  if known_positions is not null then
    if (select positions from :"schema".head where id) is distinct from known_positions then
      raise exception 'another process has decided';
    end if;
    if exists (
        select from unnest(known_occurrences, known_counts) as given (occurrence, known)
          where known <> (
              select count(*) from :"schema".journal as j where j.occurrence = given.occurrence)
            + (select count(*) from :"schema".archive as a where a.occurrence = given.occurrence))
      or exists (
        select from unnest(unused_issuers, unused_nonces) as given (issuer, nonce)
          join :"schema".issuance as i on i.issuer = given.issuer and i.nonce = given.nonce)
      or exists (
        select from unnest(known_tasks, known_revisions) as given (task, revision)
          join :"schema".plan as p on p.task = given.task and p.revision > given.revision)
    then
      raise exception 'the tables are not as the process believes';
    end if;
  end if;
  if new_issuances is not null then
    insert into :"schema".issuance
      select * from json_populate_recordset(cast(null as :"schema".issuance), new_issuances);
  end if;
  if counted is not null then
    update :"schema".issuance as i set claimed = given.claimed
      from json_to_recordset(counted) as given (id bigint, claimed integer)
      where i.id = given.id;
  end if;
  if new_rows is not null then
    insert into :"schema".journal
      select * from json_populate_recordset(cast(null as :"schema".journal), new_rows);
  end if;
  if entered is not null then
    insert into :"schema".unsettled
      select * from json_populate_recordset(cast(null as :"schema".unsettled), entered);
  end if;
  if leased is not null then
    update :"schema".unsettled as u set lease_until_ms = given.lease_until_ms
      from json_to_recordset(leased) as given (claim bigint, lease_until_ms bigint)
      where u.claim = given.claim;
  end if;
  if removed is not null then
    delete from :"schema".unsettled where claim = any (removed);
  end if;
  if raised_plans is not null then
    insert into :"schema".plan as p
      select * from json_populate_recordset(cast(null as :"schema".plan), raised_plans)
      on conflict (task) do update set revision = excluded.revision;
  end if;
  if new_documents is not null then
    insert into :"schema".document
      select * from json_populate_recordset(cast(null as :"schema".document), new_documents);
  end if;
  if new_checkpoints is not null then
    insert into :"schema".checkpoint
      select * from json_populate_recordset(cast(null as :"schema".checkpoint), new_checkpoints);
  end if;
  if new_positions is not null then
    update :"schema".head set positions = new_positions where id;
  end if;
  -- The statement, because the function of the same purpose may be closed to this login.
  foreach one in array coalesce(announced, '{}') loop
    execute format('notify %I, %L', :'schema', one);
  end loop;
  return pg_catalog.pg_current_xact_id() || ' ' || pg_catalog.pg_backend_pid();
end
$effectmatch$;
