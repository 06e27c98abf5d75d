import pg from 'pg';

let next = 0;

/** A database of its own, with a superuser session as the control connection would be pinned; dropped at the end. */
export async function openDatabase(setup: string) {
  const name = `em_${process.pid}_${next++}`;
  const base = process.env.EM_TRIAL_PG ?? 'postgres://postgres@127.0.0.1:55471';
  const admin = new pg.Client({ connectionString: `${base}/postgres` });
  await admin.connect();
  await admin.query(`create database "${name}"`);
  const clients: pg.Client[] = [];
  const connect = async (options = '', user?: string) => {
    const client = new pg.Client({ connectionString: `${base}/${name}`, options, ...(user !== undefined && { user }) });
    await client.connect();
    clients.push(client);
    return client;
  };
  const owner = await connect();
  await owner.query(setup);
  return {
    owner,
    connect,
    async [Symbol.asyncDispose]() {
      for (const client of clients) await client.end();
      await admin.query(`drop database "${name}" with (force)`);
      await admin.end();
    },
  };
}
