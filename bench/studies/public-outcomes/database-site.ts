import pg from 'pg';
import { nameTarget, quoteName } from '../../../src/postgres/identifier.ts';
import { type ProtectedDatabase, protectedDatabase } from '../../../test/postgres/protected.ts';
import { startServer, type TestDatabase } from '../../../test/postgres/server.ts';
import { type DatabasePacket, rowsOf, type Tables, type TextRow } from '../../approvals/rows.ts';
import { loadChinook, loadCustomers, loadSetup, type TaskName } from '../../data/mcpmark.ts';
import { digestOf } from '../../facts.ts';
import type { Keys } from './database-effects.ts';
import { DATABASE_TASKS, type Fixture } from './database-tasks.ts';

/** The role that owns the application's tables and functions. It is not a superuser. */
const APPLICATION = 'shop';

/** A server with the sample database, from which every run gets a separate copy. */
export interface DatabaseSite extends AsyncDisposable {
  /**
   * A fresh copy with the task's setup, and with a fixture beneath the tables where one is named.
   */
  open(task: TaskName, fixture: Fixture | undefined): Promise<TestDatabase>;
  /** What an approval may be calculated from. */
  packet(task: TaskName): Promise<DatabasePacket>;
}

export async function openDatabaseSite(folder: string): Promise<DatabaseSite> {
  const server = await startServer();
  try {
    const chinook = await server.createDatabase('chinook');
    await chinook.run(
      `create role ${APPLICATION} login; grant all on schema public to ${APPLICATION}`,
    );
    await runAsApplication(chinook, loadChinook(folder));
    const templates = new Map<string, Promise<TestDatabase>>();
    const templateOf = async (task: TaskName, fixture: Fixture | undefined) => {
      const db = await server.createDatabase(undefined, { template: 'chinook' });
      await runAsApplication(db, loadSetup(folder, task));
      if (fixture !== undefined) await runAsApplication(db, DATABASE_TASKS[task].fixtures[fixture]);
      return db;
    };
    const open: DatabaseSite['open'] = async (task, fixture) => {
      const name = `${task} ${fixture}`;
      const template = templates.get(name) ?? templateOf(task, fixture);
      templates.set(name, template);
      return await server.createDatabase(undefined, { template: (await template).name });
    };
    return {
      open,
      async packet(task) {
        await using db = await open(task, undefined);
        const byName = {
          Track: await readIds(db, 'Track', 'Name'),
          Album: await readIds(db, 'Album', 'Title'),
          Artist: await readIds(db, 'Artist', 'Name'),
        };
        const initial = await readTables(db, DATABASE_TASKS[task].keys);
        return { task, initial, customers: loadCustomers(folder), byName };
      },
      [Symbol.asyncDispose]: () => server.stop(),
    };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

async function runAsApplication(db: TestDatabase, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: db.url(APPLICATION) });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}

/** A login of the application, as one without EffectMatch uses it. */
export async function connectAsApplication(db: TestDatabase): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: db.url(APPLICATION) });
  await client.connect();
  return client;
}

/** The same database with EffectMatch provisioned in it. */
export async function protect(db: TestDatabase, keys: Keys): Promise<ProtectedDatabase> {
  const relations = Object.keys(keys).map((name) => nameTarget({ schema: 'public', name }));
  return await protectedDatabase('', { relations }, { db });
}

/** Every row of these relations as text, read by the superuser, who takes part in no run. */
export async function readTables(db: TestDatabase, keys: Keys): Promise<Tables> {
  const tables: { [relation: string]: readonly TextRow[] } = {};
  for (const relation of Object.keys(keys)) {
    const columns = await db.run(
      `select attname::text as name from pg_attribute
       where attrelid = $1::regclass and attnum > 0 and not attisdropped order by attnum`,
      [quoteName(relation)],
    );
    const list = columns.map(
      ({ name }) => `${quoteName(String(name))}::text as ${quoteName(String(name))}`,
    );
    tables[relation] = (await db.run(
      `select ${list.join(', ')} from ${quoteName(relation)}`,
    )) as readonly TextRow[];
  }
  return tables;
}

/** Whether both hold the same rows, in whatever order. */
export function sameTables(keys: Keys, one: Tables, other: Tables): boolean {
  return digestTables(keys, one) === digestTables(keys, other);
}

/** Equal for equal rows, in whatever order. */
export function digestTables(keys: Keys, tables: Tables): string {
  const textOf = (row: TextRow) =>
    JSON.stringify(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1)));
  const relations = Object.keys(keys).sort();
  return digestOf(relations.map((name) => [name, ...rowsOf(tables, name).map(textOf).sort()]));
}

async function readIds(
  db: TestDatabase,
  relation: string,
  name: string,
): Promise<readonly string[]> {
  const id = quoteName(`${relation}Id`);
  const rows = await db.run(
    `select ${id}::text as id from ${quoteName(relation)} order by ${quoteName(name)}, ${id}`,
  );
  return rows.map((row) => String(row.id));
}
