import type { Connection } from '../../postgres/connection.ts';

/**
 * The recorders of physical tables, by object id: which versions of which triggers and functions
 * they are.
 */
export type Recorders = ReadonlyMap<string, string>;

/**
 * Reads the recorders of these tables. A table that lacks one, or has one that does not always
 * fire, is left out.
 */
export async function readRecorders(
  control: Connection,
  oids: readonly string[],
): Promise<Recorders> {
  const { rows } = await control.query(RECORDED, [`{${oids.join(',')}}`]);
  return new Map(rows.map(([oid, versions]) => [String(oid), String(versions)]));
}

/**
 * Whether these tables have the recorders that the survey found. A row version does not come back
 * once it was changed, so both looks together speak for the whole time in between. What the
 * observed transaction itself changed is not seen here: it wrote to catalogues for that, and the
 * counters say so.
 */
export async function areRecordersIntact(
  control: Connection,
  known: Recorders,
  oids: readonly string[],
): Promise<boolean> {
  const now = await readRecorders(control, oids);
  return oids.every((oid) => now.has(oid) && now.get(oid) === known.get(oid));
}

/** Tables with a row recorder, or with a statement recorder for each of the three operations. */
const RECORDED = `
select w.oid, found.versions
from pg_catalog.unnest($1::pg_catalog.oid[]) as w (oid)
cross join lateral (
  select pg_catalog.string_agg(t.tgname || ':' || p.proname, ' ' order by t.tgname) as names,
    pg_catalog.string_agg(pg_catalog.concat_ws(':', t.oid, t.xmin, p.oid, p.xmin), ' ' order by t.tgname) as versions
  from pg_catalog.pg_trigger as t
    join pg_catalog.pg_proc as p on p.oid = t.tgfoid
    join pg_catalog.pg_namespace as n on n.oid = p.pronamespace and n.nspname = 'effectmatch'
  where t.tgrelid = w.oid and t.tgenabled = 'A' and p.proname <> 'refuse_truncate'
) as found
where found.names in ('effectmatch_record:record_row',
  'effectmatch_record_delete:record_delete effectmatch_record_insert:record_insert effectmatch_record_update:record_update')`;
