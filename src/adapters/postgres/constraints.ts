import type { Connection } from '../../postgres/connection.ts';
import { quoteQualified } from '../../postgres/identifier.ts';
import { SQL } from './sql.ts';

/**
 * The statement that fires every deferrable constraint of the database now, except our own
 * guard: that one must wait for COMMIT. It runs as the execution login, because triggers run with the
 * rights of the role that fires them, and so names nothing in a schema that this login may not use:
 * registered tables are in none, and their partitions follow.
 */
export async function readDeferrable(control: Connection, executor: string): Promise<string> {
  const { rows } = await control.query(SQL.registered.get('deferrable'), [executor]);
  const names = rows.map(([schema, name]) =>
    quoteQualified({ schema: String(schema), name: String(name) }),
  );
  return names.length === 0 ? '' : `set constraints ${names.join(', ')} immediate`;
}
