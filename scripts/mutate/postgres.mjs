// The PostgreSQL server of one workshop: started once, used by every test that runs there, cleared
// after each of them.
import pg from 'pg';
import { environmentOf, startServer } from '../../test/postgres/server.ts';

const LEFT_DATABASES =
  "select datname as name from pg_database where datname <> 'postgres' and not datistemplate";
const LEFT_ROLES =
  "select rolname as name from pg_roles where rolname <> 'postgres' and rolname !~ '^pg_'";

export async function openPostgres() {
  let server = await startServer();
  return {
    environment: () => environmentOf(server),
    /** A test that was cut short dropped nothing. What cannot be dropped goes with the server. */
    async clear() {
      try {
        await dropAll(server.adminUrl);
      } catch {
        await server.stop();
        server = await startServer();
      }
    },
    close: () => server.stop(),
  };
}

async function dropAll(connectionString) {
  const client = new pg.Client({
    connectionString,
    connectionTimeoutMillis: 10_000,
    query_timeout: 30_000,
  });
  client.on('error', () => {});
  try {
    await client.connect();
    const names = async (sql) =>
      (await client.query(sql)).rows.map(({ name }) => client.escapeIdentifier(name));
    for (const name of await names(LEFT_DATABASES))
      await client.query(`drop database ${name} with (force)`);
    for (const name of await names(LEFT_ROLES)) await client.query(`drop role ${name}`);
  } finally {
    await client.end().catch(() => {});
  }
}
