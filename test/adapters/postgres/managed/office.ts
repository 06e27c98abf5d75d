import {
  type PostgresOptions,
  planProvisioning,
  postgres,
} from '../../../../src/adapters/postgres/index.ts';
import { quoteName } from '../../../../src/postgres/identifier.ts';
import { freshDatabase, type TestDatabase, type Version } from '../../../postgres/server.ts';

/** What a provider gives to a customer, and what that customer made of it. */
export interface ManagedDatabase extends AsyncDisposable {
  readonly db: TestDatabase;
  /** The login of the customer: owns its schema, may create roles and schemas. */
  readonly customer: string;
  readonly options: PostgresOptions;
  factory(changes?: Partial<PostgresOptions>): ReturnType<typeof postgres>;
}

/**
 * A database of a superuser in which one login owns a schema, has CREATEROLE and CREATE on the
 * database, and nothing more; provisioned by that login.
 */
export async function managedDatabase(
  schema: string,
  settings: Partial<PostgresOptions> & Pick<PostgresOptions, 'relations'>,
  server: { readonly version?: Version; readonly db?: TestDatabase; readonly before?: string } = {},
): Promise<ManagedDatabase> {
  const { version } = server;
  const db = server.db ?? (await freshDatabase(version === undefined ? {} : { version }));
  try {
    const customer = db.role('customer');
    const name = quoteName(customer);
    await db.run(
      `create role ${name} login createrole; grant create on database ${quoteName(db.name)} to ${name};
       create schema app authorization ${name}; ${server.before ?? ''}`,
    );
    await db.run(`set role ${name}; ${schema}`);
    const options: PostgresOptions = {
      boundary: 'managed',
      owner: db.role('em_owner'),
      control: db.url(db.role('em_control')),
      execution: db.url(db.role('em_exec')),
      ...settings,
    };
    await (await planProvisioning(db.url(customer), options)).apply();
    return {
      db,
      customer,
      options,
      factory: (changes = {}) => postgres({ ...options, ...changes }),
      [Symbol.asyncDispose]: () => db.drop(),
    };
  } catch (error) {
    await db.drop();
    throw error;
  }
}
