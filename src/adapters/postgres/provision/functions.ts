import { BY_INDEX, FACTS, FORMATS, OWN_STAGE, PINNED, POSITIONS, REFUSE_OUTSIDE } from './fragments.ts';

/** One function of the schema `effectmatch`. */
export interface TrustedFunction {
  readonly name: string;
  readonly parameters: string;
  readonly returns: string;
  readonly settings: string;
  readonly body: string;
  /** Who may call it; trigger functions need no grant to fire. */
  readonly caller: 'execution' | 'control' | 'nobody';
}

/** The functions in the order in which they can be created. Bodies are compared with the catalogue at admission. */
export const FUNCTIONS: readonly TrustedFunction[] = [
  {
    name: 'record_row',
    parameters: '',
    returns: 'trigger',
    settings: `${PINNED} ${FORMATS} ${BY_INDEX}`,
    caller: 'nobody',
    body: `
begin
  insert into effectmatch.record (xid, relation, op, images, was, became)
  select s.xid, tg_relid, left(tg_op, 1)::"char", 1,
         case tg_op when 'INSERT' then null else concat(old) end,
         case tg_op when 'DELETE' then null else concat(new) end
    from effectmatch.stage as s
   where ${OWN_STAGE} and not s.sealed;${REFUSE_OUTSIDE}
end`,
  },
  ...(['insert', 'update', 'delete'] as const).map((op) => ({
    name: `record_${op}`,
    parameters: '',
    returns: 'trigger',
    settings: `${PINNED} ${FORMATS} ${BY_INDEX}`,
    caller: 'nobody' as const,
    body: `
declare
  n bigint;
  was text;
  became text;
begin${op === 'insert' ? '' : "\n  select count(*), string_agg(concat(r), '') into n, was from old_rows as r;"}${
      op === 'delete' ? '' : "\n  select count(*), string_agg(concat(r), '') into n, became from new_rows as r;"
    }
  if n = 0 then return null; end if;
  insert into effectmatch.record (xid, relation, op, images, was, became)
  select s.xid, tg_relid, left(tg_op, 1)::"char", n, was, became
    from effectmatch.stage as s
   where ${OWN_STAGE} and not s.sealed;${REFUSE_OUTSIDE}
end`,
  })),
  {
    name: 'refuse_truncate',
    parameters: '',
    returns: 'trigger',
    settings: PINNED,
    caller: 'nobody',
    body: `
begin
  raise exception using errcode = 'EM002', message = 'EffectMatch: the execution login may not truncate a registered table';
end`,
  },
  {
    name: 'guard',
    parameters: '',
    returns: 'trigger',
    settings: `${PINNED} ${BY_INDEX}`,
    caller: 'nobody',
    body: `
begin
  if current_setting('synchronous_commit') in ('off', 'local') then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  perform from effectmatch.marker as m
    where m.ctid = nullif(current_setting('effectmatch.marker', true), '')::tid
      and m.occurrence is not distinct from new.occurrence and m.xid is not distinct from new.xid;
  if not found then
    raise exception using errcode = 'EM003',
      message = 'EffectMatch: this transaction cannot commit, because it was not promoted',
      hint = 'An operation must not COMMIT by itself, and must name constraints instead of SET CONSTRAINTS ALL IMMEDIATE.';
  end if;
  return null;
end`,
  },
  {
    name: 'open',
    parameters: 'opened text, sequences oid[], deadline_ms integer, lock_ms integer',
    returns: 'table (xid text, at_ms bigint, marker text, positions text)',
    settings: `${PINNED} ${BY_INDEX}`,
    caller: 'execution',
    body: `
declare
  stored_at tid;
begin
  perform set_config('lock_timeout', lock_ms::text, true), set_config('statement_timeout', deadline_ms::text, true),
    set_config('idle_in_transaction_session_timeout', deadline_ms::text, true);
  if current_setting('server_version_num')::integer >= 170000 then
    perform set_config('transaction_timeout', deadline_ms::text, true);
  end if;
  insert into effectmatch.stage (xid, occurrence) values (pg_current_xact_id(), opened)
    returning ctid into stored_at;
  perform set_config('effectmatch.stage', stored_at::text, true);
  -- In a serializable transaction this look would conflict with every marker of its time; there it is taken before.
  if current_setting('transaction_isolation') <> 'serializable' then
    select m.disposition into marker from effectmatch.marker as m where m.occurrence = opened;
  end if;
  positions := ${POSITIONS};
  xid := pg_current_xact_id()::text;
  at_ms := floor(extract(epoch from clock_timestamp()) * 1000);
  return next;
end`,
  },
  {
    name: 'find_marker',
    parameters: 'sought text',
    returns: 'text',
    settings: `${PINNED} ${BY_INDEX}`,
    caller: 'execution',
    body: `
begin
  return (select m.disposition from effectmatch.marker as m where m.occurrence = sought);
end`,
  },
  {
    name: 'read_rows',
    parameters: 'opened text, reads text[], mac bytea',
    returns: 'setof text',
    settings: `${PINNED} ${FORMATS}`,
    caller: 'execution',
    body: `
declare
  query text;
  image text;
begin
  if mac is distinct from effectmatch.sign(concat_ws(chr(10), 'reads', opened, array_to_string(reads, chr(10)))) then
    raise exception using errcode = 'EM004', message = 'EffectMatch: these reads were not asked for by the runtime';
  end if;
  foreach query in array reads loop
    image := null;
    execute query into image;
    return next image;
  end loop;
end`,
  },
  {
    name: 'observe',
    parameters: 'watched oid[], sequences oid[]',
    returns: 'table (relation oid, op "char", images bigint, was text, became text)',
    settings: `${PINNED} ${BY_INDEX}`,
    caller: 'execution',
    body: `
declare
  counted text;
  standing text;
  stored_at tid;
begin${FACTS}
  update effectmatch.stage as s set sealed = true, watched = observe.watched, facts = counted || ' ' || standing
   where ${OWN_STAGE} and not s.sealed
   returning s.ctid into stored_at;
  if not found then
    raise exception using errcode = 'EM005', message = 'EffectMatch: there is no open stage to observe';
  end if;
  perform set_config('effectmatch.stage', stored_at::text, true);
  return query select 0::oid, 'F'::"char", floor(extract(epoch from clock_timestamp()) * 1000)::bigint,
    concat_ws(chr(10), pg_current_xact_id(), counted, standing),
    ${POSITIONS};
  return query select r.relation, r.op, r.images, r.was, r.became
    from effectmatch.record as r
    where r.spread = hashtext(pg_current_xact_id()::text) and r.xid = pg_current_xact_id();
end`,
  },
  {
    name: 'promote',
    parameters: 'candidate text, watched oid[], promoted text, content text, seal_key text, seal_mac text, mac bytea',
    returns: 'void',
    settings: `${PINNED} ${BY_INDEX}`,
    caller: 'execution',
    body: `
declare
  stored_at tid;
begin
  if mac is distinct from
     effectmatch.sign(concat_ws(chr(10), 'promote', candidate, promoted, seal_key, seal_mac, content)) then
    raise exception using errcode = 'EM004', message = 'EffectMatch: this promotion was not asked for by the runtime';
  end if;
  if candidate is distinct from pg_current_xact_id()::text then
    raise exception using errcode = 'EM006', message = 'EffectMatch: this is not the transaction that was observed';
  end if;
  perform from effectmatch.stage as s
    where ${OWN_STAGE} and s.sealed and s.occurrence is not distinct from promoted
      and s.watched is not distinct from promote.watched;
  if not found then
    raise exception using errcode = 'EM006', message = 'EffectMatch: this is not the stage that was observed';
  end if;
  set constraints effectmatch.effectmatch_settled deferred;
  if current_setting('synchronous_commit') in ('off', 'local') then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  insert into effectmatch.marker (occurrence, disposition, text, seal_key, seal_mac, xid)
  values (promoted, 'committed', content, promote.seal_key, promote.seal_mac, pg_current_xact_id())
  returning ctid into stored_at;
  perform set_config('effectmatch.marker', stored_at::text, true);
end`,
  },
  {
    // Fires at COMMIT, after everything that was deferred before the promotion. Fired earlier, from within a trigger of
    // the application, it would let that trigger write after it.
    name: 'settle',
    parameters: '',
    returns: 'trigger',
    settings: PINNED,
    caller: 'nobody',
    body: `
declare
  watched oid[];
  observed text;
  counted text;
  standing text;
begin
  select array_remove(s.watched, tg_relid), s.facts into watched, observed
    from effectmatch.stage as s where ${OWN_STAGE};${FACTS}
  if observed is distinct from counted || ' ' || standing or pg_trigger_depth() <> 1
     or exists (select from pg_cursors as c where c.is_holdable)
     or pg_stat_get_xact_tuples_inserted(tg_relid) <> 1 then
    raise exception using errcode = 'EM007', message = 'EffectMatch: something was written after the observation',
      detail = counted || ' ' || standing;
  end if;
  delete from effectmatch.stage as s where ${OWN_STAGE};
  return null;
end`,
  },
  {
    name: 'reset',
    parameters: '',
    returns: 'void',
    settings: PINNED,
    caller: 'execution',
    body: `
begin
  perform pg_advisory_unlock_all();
  perform setseed(('x' || left(md5(gen_random_uuid()::text), 8))::bit(32)::integer / 2147483648.0);
  perform pg_stat_force_next_flush();
end`,
  },
  {
    name: 'sign',
    parameters: 'message text',
    returns: 'bytea',
    settings: PINNED,
    caller: 'nobody',
    body: `
begin
  return (select sha256(d.outer_pad || sha256(d.inner_pad || convert_to(message, 'UTF8'))) from effectmatch.deployment as d);
end`,
  },
  {
    name: 'describe',
    parameters: '',
    returns: 'table (backend text, version integer, inner_pad bytea, outer_pad bytea)',
    settings: PINNED,
    caller: 'control',
    body: `
begin
  return query select d.backend, d.version, d.inner_pad, d.outer_pad from effectmatch.deployment as d;
end`,
  },
];

/** The statement that creates or replaces one of them. */
export function createFunction({ name, parameters, returns, settings, body }: TrustedFunction): string {
  return (
    `create or replace function effectmatch.${name}(${parameters}) returns ${returns}\n` +
    `language plpgsql security definer ${settings} as $effectmatch$${body}\n$effectmatch$`
  );
}
