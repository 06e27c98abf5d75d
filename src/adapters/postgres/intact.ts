import type { Connection } from '../../postgres/connection.ts';
import { SQL } from './sql.ts';

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
  const { rows } = await control.query(SQL.registered.get('recorders'), [`{${oids.join(',')}}`]);
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
