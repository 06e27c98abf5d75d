import { CALLS } from '../calls.ts';
import { PINNED_FORMATS, PINNED_SEARCH_PATH, PRINTING_FORMATS } from '../formats.ts';

/**
 * Settings under which every trusted function runs. The search path keeps application objects from
 * answering for the system's; the formats make a row image a function of the stored row alone.
 */
export const PINNED = `set search_path = ${PINNED_SEARCH_PATH} set row_security = off`;
/**
 * For functions that look into our own tables. Their plans are cached when the tables are empty,
 * and a plan that reads the whole of an empty table would read the whole of a full one for as long
 * as the session lives.
 */
export const BY_INDEX = 'set enable_seqscan = off';
/**
 * What makes a row image a function of the stored row alone. Every setting is set at every call, so
 * there are no more.
 */
export const PRINTED = setAll(PRINTING_FORMATS);
/** What texts mean in queries, besides. */
export const FORMATS = setAll(PINNED_FORMATS);

function setAll(settings: Readonly<Record<string, string>>): string {
  return Object.entries(settings)
    .map(([name, value]) => `set ${name} = '${value}'`)
    .join(' ');
}

/** Every write of this transaction on watched relations, as the backend itself counts them. */
export const COUNTED = `array_to_string(array(
      select concat(o, ':', i, '/', u, '/', d)
        from (select o, pg_stat_get_xact_tuples_inserted(o) as i, pg_stat_get_xact_tuples_updated(o) as u,
                     pg_stat_get_xact_tuples_deleted(o) as d
                from unnest(watched) as w(o)) as counters
       where i <> 0 or u <> 0 or d <> 0), ' ')`;

/** What the witnesses rest on, and what may still write at COMMIT. */
export const STANDING = `concat_ws(' ', current_setting('session_replication_role'), current_setting('track_counts'),
      current_setting('client_encoding'), current_setting('transaction_isolation'),
      (select count(*) from pg_cursors as c where c.is_holdable),
      (select count(*) from pg_prepared_statements as p where p.from_sql))`;

/**
 * Whether the calls that the runtime prepared are still those, and nobody prepared anything else by
 * a statement.
 */
export const CALLS_INTACT = `(select count(*) filter (where starts_with(p.name, 'effectmatch_')) = ${Object.keys(CALLS).length}
        and not bool_or(p.from_sql) from pg_prepared_statements as p)`;

/**
 * Where sequences stand, in the order asked, and how often this session turned to each since its
 * statistics were last sent: a draw reads the sequence's only block once, whatever becomes of the
 * transaction, and so does this look. There is nothing before the colon until the first value was
 * drawn.
 */
export const POSITIONS = `array_to_string(array(
      select concat(pg_sequence_last_value(s), ':', pg_stat_get_xact_blocks_fetched(s))
        from unnest(sequences) as given(s)), ' ')`;

/**
 * This transaction's stage, by where it is stored. A look through the index would make serializable
 * transactions conflict with every other that opens a stage meanwhile; a look at a row of one's own
 * conflicts with nobody. The place is kept in a setting that anybody may change: whoever does finds
 * nothing, or is refused.
 */
export const OWN_STAGE = `s.ctid = nullif(current_setting('effectmatch.stage', true), '')::tid
     and s.xid is not distinct from pg_current_xact_id()`;

/** How a recorder ends: without a stage that is open and not yet observed, the write is refused. */
export const REFUSE_OUTSIDE = `
  if not found then
    raise exception using errcode = 'EM001',
      message = 'EffectMatch: the execution login wrote outside an open stage, or after it was observed',
      hint = 'Run the operation through the runtime; a deferred trigger or a held cursor must not write at COMMIT.';
  end if;
  return null;`;
