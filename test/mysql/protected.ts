import { type MysqlOptions, mysql, planProvisioning } from '../../src/adapters/mysql/index.ts';
import { freshDatabase, type MariadbDatabase } from './server.ts';

/** A database with a schema, provisioned for protected operations. */
export interface ProtectedMariadb extends AsyncDisposable {
  readonly db: MariadbDatabase;
  readonly options: MysqlOptions;
  /** The name of the control database. */
  readonly control: string;
  /** The adapter with other options than those the database was provisioned for. */
  factory(changes?: Partial<MysqlOptions>): ReturnType<typeof mysql>;
}

/** Creates a database, its tables, and everything the adapter needs; dropped with the scope. */
export async function protectedMariadb(
  schema: string,
  settings: Omit<MysqlOptions, 'control' | 'execution'>,
  given?: MariadbDatabase,
): Promise<ProtectedMariadb> {
  const db = given ?? (await freshDatabase());
  try {
    await db.run(schema);
    const control = db.unique('effectmatch');
    const options: MysqlOptions = {
      owner: db.unique('em_owner'),
      controlDatabase: control,
      control: db.url(db.unique('em_control'), 'secret of control'),
      execution: db.url(db.unique('em_exec'), 'secret of execution'),
      ...settings,
    };
    await (await planProvisioning(db.url(), options)).apply();
    return {
      ...{ db, options, control },
      factory: (changes = {}) => mysql({ ...options, ...changes }),
      [Symbol.asyncDispose]: () => db.drop(),
    };
  } catch (error) {
    await db.drop();
    throw error;
  }
}
