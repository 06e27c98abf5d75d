import {
  BY_INDEX,
  CALLS_INTACT,
  COUNTED,
  FORMATS,
  OWN_STAGE,
  PINNED,
  POSITIONS,
  PRINTED,
  REFUSE_OUTSIDE,
  STANDING,
} from './fragments.ts';

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

/** What the runtime signs these parts with, from the row `d` of the deployment. */
const SIGNED = (parts: string) =>
  `sha256(d.outer_pad || sha256(d.inner_pad || convert_to(concat_ws(chr(10), ${parts}), 'UTF8')))`;

/**
 * The functions in the order in which they can be created. Bodies are compared with the catalogue
 * at admission.
 */
export const FUNCTIONS: readonly TrustedFunction[] = [
  {
    name: 'record_row',
    parameters: '',
    returns: 'trigger',
    settings: `${PINNED} ${PRINTED} ${BY_INDEX}`,
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
    settings: `${PINNED} ${PRINTED} ${BY_INDEX}`,
    caller: 'nobody' as const,
    body: `
declare
  n bigint;
  was text;
  became text;
begin${op === 'insert' ? '' : "\n  select count(*), string_agg(concat(r), '') into n, was from old_rows as r;"}${
      op === 'delete'
        ? ''
        : "\n  select count(*), string_agg(concat(r), '') into n, became from new_rows as r;"
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
    parameters:
      'opened text, sequences oid[], deadline_ms integer, lock_ms integer, ' +
      'out xid text, out at_ms bigint, out marker text, out positions text, out done text',
    returns: 'record',
    settings: `${PINNED} ${BY_INDEX}`,
    caller: 'execution',
    body: `
begin
  -- In a serializable transaction the look for a marker would conflict with every marker of its time; there it is taken before.
  -- The time is that of the transaction, which is what now() says in it, however long ago it began.
  insert into effectmatch.stage as s (xid, occurrence) values (pg_current_xact_id(), opened)
    returning s.xid::text, floor(extract(epoch from now()) * 1000),
      case when current_setting('transaction_isolation') <> 'serializable'
           then (select m.disposition from effectmatch.marker as m where m.occurrence = opened) end,
      ${POSITIONS},
      concat(set_config('effectmatch.stage', s.ctid::text, true),
        set_config('lock_timeout', lock_ms::text, true), set_config('statement_timeout', deadline_ms::text, true),
        set_config('idle_in_transaction_session_timeout', deadline_ms::text, true),
        case when current_setting('server_version_num')::integer >= 170000
             then set_config('transaction_timeout', deadline_ms::text, true) end)
    into xid, at_ms, marker, positions, done;
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
  perform from effectmatch.deployment as d
   where mac is not distinct from ${SIGNED("'reads', opened, array_to_string(reads, chr(10))")};
  if not found then
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
  done text;
begin
  update effectmatch.stage as s set sealed = true
   where ${OWN_STAGE} and not s.sealed
   returning set_config('effectmatch.stage', s.ctid::text, true) into done;
  if not found then
    raise exception using errcode = 'EM005', message = 'EffectMatch: there is no open stage to observe';
  end if;
  return query
    select 0::oid, 'F'::"char", ceil(extract(epoch from clock_timestamp()) * 1000)::bigint,
      concat_ws(chr(10), pg_current_xact_id(), ${COUNTED},
      ${STANDING}),
      ${POSITIONS}
    union all
    select r.relation, r.op, r.images, r.was, r.became
      from effectmatch.record as r
     where r.spread = hashtext(pg_current_xact_id()::text) and r.xid = pg_current_xact_id();
end`,
  },
  {
    // Every command of a transaction that writes or locks gets the next number, whatever it writes:
    // the number of the marker is that of the observation and one more for each lock that the
    // runtime took in between, or the marker is not written. The stage comes after it, so that the
    // last check cannot have run before.
    name: 'promote',
    parameters:
      'candidate text, locks integer, promoted text, content text, seal_key text, seal_mac text, mac bytea',
    returns: 'void',
    settings: `${PINNED} ${BY_INDEX}`,
    caller: 'execution',
    body: `
declare
  command bigint;
  done text;
begin
  insert into effectmatch.marker as m (occurrence, disposition, text, seal_key, seal_mac, xid)
  select promoted, 'committed', content, promote.seal_key, promote.seal_mac, pg_current_xact_id()
    from effectmatch.deployment as d
   where mac is not distinct from ${SIGNED("'promote', candidate, locks, promoted, promote.seal_key, promote.seal_mac, content")}
  returning m.cmin::text::bigint, set_config('effectmatch.marker', m.ctid::text, true) into command, done;
  if not found then
    raise exception using errcode = 'EM004', message = 'EffectMatch: this promotion was not asked for by the runtime';
  end if;
  update effectmatch.stage as s set marked = command
   where ${OWN_STAGE} and s.sealed and s.occurrence is not distinct from promoted
     and s.cmin::text::bigint + 1 + locks = command and candidate is not distinct from pg_current_xact_id()::text
  returning set_config('effectmatch.stage', s.ctid::text, true) into done;
  if not found then
    raise exception using errcode = 'EM006', message = 'EffectMatch: this is not the candidate that was observed';
  end if;
end`,
  },
  {
    // Fires at COMMIT, after everything that was deferred before the promotion. Fired earlier, from
    // within a trigger of the application, it would let that trigger write after it. Any write
    // since the promotion has taken a number. What makes a commit volatile is undone here, because
    // whatever ran before could have set it.
    name: 'settle',
    parameters: '',
    returns: 'trigger',
    settings: `${PINNED} ${BY_INDEX}`,
    caller: 'nobody',
    body: `
declare
  passed bigint;
  done text;
begin
  update effectmatch.stage as s set sealed = true
   where ${OWN_STAGE} and s.marked is not null and pg_trigger_depth() = 1
     and not exists (select from pg_cursors as c where c.is_holdable) and ${CALLS_INTACT}
  returning s.cmin::text::bigint - s.marked into passed;
  if passed is distinct from 2 then
    raise exception using errcode = 'EM007', message = 'EffectMatch: something was written after the observation';
  end if;
  if current_setting('synchronous_commit') in ('off', 'local') then
    done := set_config('synchronous_commit', 'on', true);
  end if;
  return null;
end`,
  },
  {
    // Part of a reset; answers whether the runtime's own prepared calls are there, and nobody
    // else's.
    name: 'reset',
    parameters: '',
    returns: 'boolean',
    settings: PINNED,
    caller: 'execution',
    body: `
begin
  return concat(pg_advisory_unlock_all(), pg_stat_force_next_flush(),
      setseed(('x' || left(md5(gen_random_uuid()::text), 8))::bit(32)::integer / 2147483648.0)) = ''
    and ${CALLS_INTACT};
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
export function createFunction({
  name,
  parameters,
  returns,
  settings,
  body,
}: TrustedFunction): string {
  return (
    `create or replace function effectmatch.${name}(${parameters}) returns ${returns}\n` +
    `language plpgsql security definer ${settings} as $effectmatch$${body}\n$effectmatch$`
  );
}
