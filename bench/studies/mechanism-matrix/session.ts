import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { type Place, type Row, type RowStep, type Snapshot, SQLITE_FILE, TABLES } from './task.ts';

/** One transaction in a database, as an application without EffectMatch has it. */
export interface Session extends AsyncDisposable {
  query(sql: string, values?: readonly (string | number)[]): Promise<readonly Row[]>;
  /**
   * How many rows the backend itself counted as written in this transaction, by triggers as well.
   */
  countWrites(): Promise<number>;
  snapshot(): Promise<Snapshot>;
}

export async function openSession(place: Place, where: RowStep['where']): Promise<Session> {
  return where === 'postgres' ? await openPostgres(place.postgres ?? '') : openSqlite(place.folder);
}

async function openPostgres(connectionString: string): Promise<Session> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  const query: Session['query'] = async (sql, values = []) =>
    (await client.query(sql, [...values])).rows as Row[];
  return {
    query,
    async countWrites() {
      const [row] = await query(
        'select coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::int as n from pg_stat_xact_user_tables',
      );
      return Number(row?.n);
    },
    snapshot: () => readAll(query, TABLES.postgres),
    [Symbol.asyncDispose]: () => client.end(),
  };
}

function openSqlite(folder: string): Session {
  const db = new DatabaseSync(join(folder, SQLITE_FILE));
  const query: Session['query'] = async (sql, values = []) => {
    const statement = db.prepare(sql.replace(/\$(\d)/g, '?$1').replace(' for update', ''));
    return statement.all(...values).map((row) => ({ ...row }) as Row);
  };
  return {
    query,
    // The connection is as old as its only transaction.
    async countWrites() {
      const [row] = await query('select total_changes() as n');
      return Number(row?.n);
    },
    snapshot: () => readAll(query, TABLES.sqlite),
    async [Symbol.asyncDispose]() {
      db.close();
    },
  };
}

async function readAll(query: Session['query'], tables: readonly string[]): Promise<Snapshot> {
  const snapshot: Record<string, readonly Row[]> = {};
  for (const table of tables) snapshot[table] = await query(`select * from ${table} order by id`);
  return snapshot;
}
