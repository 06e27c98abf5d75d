import { Connection } from '../../../src/postgres/connection.ts';
import { freshDatabase } from '../../postgres/server.ts';

/**
 * A database of its own, set up by a superuser, with a connection as adapters have it; gone with
 * disposal.
 */
export async function openDatabase(setup: string) {
  const database = await freshDatabase();
  await database.run(setup);
  const control = await Connection.open(database.url(), 'test control');
  await control.query('set synchronous_commit = off');
  const opened = [control];
  return {
    control,
    database,
    /** A session of a login of this name that has nothing but what `grants` gives it. */
    async login(name: string, grants: (role: string) => string): Promise<Connection> {
      const role = database.role(name);
      await database.run(`create role "${role}" login; ${grants(role)}`);
      const connection = await Connection.open(database.url(role), 'test login');
      opened.push(connection);
      return connection;
    },
    async [Symbol.asyncDispose]() {
      for (const connection of opened) await connection.close();
      await database.drop();
    },
  };
}
