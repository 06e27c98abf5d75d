import { OPERATION, tableNames } from './books.ts';
import { connect, type Path } from './paths.ts';
import type { Site } from './site.ts';

/**
 * The obvious way to know what an operation did, written for the comparison: nobody else may write
 * any of the tables meanwhile, all rows are copied before, and the difference is taken after.
 * Copies and difference stay in the server, which is faster than fetching the rows.
 */
export async function openLockAndSnapshot(
  site: Site,
  relations: number,
  clients: number,
): Promise<Path> {
  const connections = await connect(site.plainUrl, clients);
  const tables = tableNames(relations);
  const lock = `begin; lock table ${tables.join(', ')} in exclusive mode`;
  const snapshot = tables
    .map(
      (table) =>
        `create temp table before_${table} on commit drop as select t::text as image from ${table} as t`,
    )
    .join('; ');
  const difference = tables
    .flatMap((table) => {
      const [before, after] = [
        `select image from before_${table}`,
        `select t::text from ${table} as t`,
      ];
      return [
        `select '${table}', 'gone', image from (${before} except all ${after}) as gone`,
        `select '${table}', 'new', image from (${after} except all ${before}) as new(image)`,
      ];
    })
    .join(' union all ');
  return {
    name: 'lock and snapshot',
    writesOnce: false,
    approve: async () => {},
    async run(id, index) {
      const client = connections.client(index);
      await client.query(lock);
      await client.query(snapshot);
      await client.query(OPERATION, [id]);
      const { rows } = await client.query(difference);
      // A changed balance is one row gone and one new, three inserts are three new; the invoice may
      // be paid already.
      if (rows.length < 5) throw new Error(`the snapshots differ in ${rows.length} rows`);
      await client.query('commit');
    },
    [Symbol.asyncDispose]: () => connections[Symbol.asyncDispose](),
  };
}
