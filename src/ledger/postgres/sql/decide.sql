-- The function that writes what was decided. It can be created again.

-- name: drop_older
-- It took the rows as JSON, which the server is slower to read.
drop function if exists :"schema".decide(
  integer, boolean, bigint, text[], bigint[], text[], text[], text[], bigint[], json, json, json,
  json, json, bigint[], json, json, json, bigint, text[]);

-- name: decide
-- Writes what was decided, in one call: sending one statement for each table costs more than the
-- statements do. Fails unless it is alone, and unless the tables are as the process believes that decided: the last
-- position, how many rows some occurrences have, nonces that were not used, and plans that were not
-- superseded. A call that is a whole transaction says how long it waits for the lock; 0 leaves that to
-- the session's own setting. With same_log also unless a crash keeps what was flushed. A list of rows has the columns of the first, then those of the second, and so on; it
-- is null if there are none. The function has the rights of its caller.
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
  issued text[] default null,
  counted bigint[] default null,
  appended text[] default null,
  entered text[] default null,
  leased bigint[] default null,
  removed bigint[] default null,
  raised text[] default null,
  documents text[] default null,
  checkpoints text[] default null,
  new_positions bigint default null,
  announced text[] default null,
  same_log boolean default false
) returns text language plpgsql as $effectmatch$
declare
  one text;
  n bigint;
begin
  if lock_ms is not null then
    if pg_catalog.current_setting('transaction_isolation') <> 'read committed' then
      raise exception 'a later statement must see what was committed before the lock was granted';
    end if;
    if lock_ms > 0 then
      execute 'set local lock_timeout = ' || lock_ms;
    end if;
  end if;
  if same_log and (pg_catalog.current_setting('fsync') <> 'on'
      or pg_catalog.current_setting('full_page_writes') <> 'on') then
    raise exception 'a crash can lose what was flushed';
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
  if new_positions is null then
    perform from :"schema".head where id and positions = coalesce(known_positions, positions);
  else
    update :"schema".head set positions = new_positions
      where id and positions = coalesce(known_positions, positions);
  end if;
  if not found then
    raise exception 'another process has decided';
  end if;
  -- One look each: most calls are about one occurrence, and a join costs more than that.
  for i in 1 .. coalesce(cardinality(known_occurrences), 0) loop
    perform from (
      select from :"schema".journal where occurrence = known_occurrences[i]
      union all
      select from :"schema".archive where occurrence = known_occurrences[i]) as found;
    get diagnostics n = row_count;
    if n <> known_counts[i] then
      raise exception 'another process has decided about an occurrence';
    end if;
  end loop;
  for i in 1 .. coalesce(cardinality(unused_nonces), 0) loop
    perform from :"schema".issuance where issuer = unused_issuers[i] and nonce = unused_nonces[i];
    if found then
      raise exception 'a nonce was used';
    end if;
  end loop;
  for i in 1 .. coalesce(cardinality(known_tasks), 0) loop
    perform from :"schema".plan where task = known_tasks[i] and revision > known_revisions[i];
    if found then
      raise exception 'a plan was superseded';
    end if;
  end loop;
  if issued is not null then
    insert into :"schema".issuance
        (id, issuer, nonce, claimed, license, approved, binding, seal_key, mac)
      select issued[i]::bigint, issued[i + 1], issued[i + 2], issued[i + 3]::integer,
          issued[i + 4], issued[i + 5], issued[i + 6], issued[i + 7], issued[i + 8]
        from generate_series(1, cardinality(issued), 9) as i;
  end if;
  if counted is not null then
    update :"schema".issuance set claimed = counted[i + 1]
      from generate_series(1, cardinality(counted), 2) as i where id = counted[i];
  end if;
  if appended is not null then
    insert into :"schema".journal
        (seq, kind, occurrence, slot, text, seal_key, seal_mac, digest, issuance)
      select appended[i]::bigint, appended[i + 1], appended[i + 2], appended[i + 3],
          appended[i + 4], appended[i + 5], appended[i + 6], appended[i + 7],
          appended[i + 8]::bigint
        from generate_series(1, cardinality(appended), 9) as i;
  end if;
  if entered is not null then
    insert into :"schema".unsettled (claim, execution, lease_until_ms)
      select entered[i]::bigint, entered[i + 1], entered[i + 2]::bigint
        from generate_series(1, cardinality(entered), 3) as i;
  end if;
  if leased is not null then
    update :"schema".unsettled set lease_until_ms = leased[i + 1]
      from generate_series(1, cardinality(leased), 2) as i where claim = leased[i];
  end if;
  if removed is not null then
    delete from :"schema".unsettled where claim = any (removed);
  end if;
  if raised is not null then
    insert into :"schema".plan as p (task, revision)
      select raised[i], raised[i + 1]::bigint from generate_series(1, cardinality(raised), 2) as i
      on conflict (task) do update set revision = excluded.revision;
  end if;
  if documents is not null then
    insert into :"schema".document (digest, text, seal_key, seal_mac)
      select documents[i], documents[i + 1], documents[i + 2], documents[i + 3]
        from generate_series(1, cardinality(documents), 4) as i;
  end if;
  if checkpoints is not null then
    insert into :"schema".checkpoint (through_seq, text, seal_key, seal_mac)
      select checkpoints[i]::bigint, checkpoints[i + 1], checkpoints[i + 2], checkpoints[i + 3]
        from generate_series(1, cardinality(checkpoints), 4) as i;
  end if;
  -- The statement, because the function of the same purpose may be closed to this login.
  foreach one in array coalesce(announced, '{}') loop
    execute format('notify %I, %L', :'schema', one);
  end loop;
  return pg_catalog.pg_current_xact_id() || ' ' || pg_catalog.pg_backend_pid();
end
$effectmatch$;
