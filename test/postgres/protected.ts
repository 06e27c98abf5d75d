import {
  type PostgresOptions,
  planProvisioning,
  postgres,
} from '../../src/adapters/postgres/index.ts';
import { freshDatabase, type TestDatabase, type Version } from './server.ts';

/** A database with a schema, provisioned for protected operations by its superuser. */
export interface ProtectedDatabase extends AsyncDisposable {
  readonly db: TestDatabase;
  readonly options: PostgresOptions;
  /** The adapter with other options than those the database was provisioned for. */
  factory(changes?: Partial<PostgresOptions>): ReturnType<typeof postgres>;
}

/**
 * Creates a database, its tables, and everything the adapter needs in it; dropped at the end of the
 * scope.
 */
export async function protectedDatabase(
  schema: string,
  settings: Omit<PostgresOptions, 'control' | 'execution'>,
  server: { readonly version?: Version; readonly db?: TestDatabase } = {},
): Promise<ProtectedDatabase> {
  const db =
    server.db ??
    (await freshDatabase(server.version === undefined ? {} : { version: server.version }));
  try {
    await db.run(schema);
    // Provisioning makes it, so it is dropped with the others.
    db.role('em_others');
    const options: PostgresOptions = {
      owner: db.role('em_owner'),
      control: db.url(db.role('em_control')),
      execution: db.url(db.role('em_exec')),
      ...settings,
    };
    await (await planProvisioning(db.url(), options)).apply();
    return {
      db,
      options,
      factory: (changes = {}) => postgres({ ...options, ...changes }),
      [Symbol.asyncDispose]: () => db.drop(),
    };
  } catch (error) {
    await db.drop();
    throw error;
  }
}
