import type { Control } from './control.ts';

/**
 * Whether these physical tables have their recorders, always enabled, and nothing was changed since the survey whose
 * fingerprint this is. A fingerprint does not return to an earlier value, so both looks together speak for the whole
 * time in between. What the observed transaction itself changed is not seen here: it wrote to catalogues for that,
 * and the counters say so.
 */
export async function areRecordersIntact(
  control: Control,
  fingerprint: string,
  oids: readonly string[],
): Promise<boolean> {
  const { rows } = await (await control.connection()).query(RECORDED, [`{${oids.join(',')}}`]);
  return rows[0]?.[0] === 't' && (await control.fingerprint()) === fingerprint;
}

/** Every table has a row recorder, or a statement recorder for each of the three operations. */
const RECORDED = `
select coalesce(pg_catalog.bool_and(coalesce(found.names, '') in ('effectmatch_record:record_row',
  'effectmatch_record_delete:record_delete effectmatch_record_insert:record_insert effectmatch_record_update:record_update')), true)
from pg_catalog.unnest($1::pg_catalog.oid[]) as w (oid)
cross join lateral (
  select pg_catalog.string_agg(t.tgname || ':' || p.proname, ' ' order by t.tgname) as names
  from pg_catalog.pg_trigger as t
    join pg_catalog.pg_proc as p on p.oid = t.tgfoid
    join pg_catalog.pg_namespace as n on n.oid = p.pronamespace and n.nspname = 'effectmatch'
  where t.tgrelid = w.oid and t.tgenabled = 'A' and p.proname <> 'refuse_truncate'
) as found`;
