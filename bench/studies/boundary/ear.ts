import pg from 'pg';
import type { TestDatabase } from '../../../test/postgres/server.ts';

/** Listens for notifications that must never arrive. */
export interface Ear extends AsyncDisposable {
  /**
   * All notifications since the last call. None is missed, because the server delivers them in
   * commit order.
   */
  heard(): Promise<readonly string[]>;
}

/** Listens on a channel in a separate superuser session. */
export async function listen(db: TestDatabase, channel: string): Promise<Ear> {
  const client = new pg.Client({ connectionString: db.url() });
  const heard: string[] = [];
  let arrived: (payload: string) => void = () => {};
  client.on('notification', ({ payload = '' }) => {
    heard.push(payload);
    arrived(payload);
  });
  await client.connect();
  await client.query(`listen ${channel}`);
  let asked = 0;
  return {
    async heard() {
      asked += 1;
      const last = `asked ${asked}`;
      const { promise, resolve } = Promise.withResolvers<void>();
      arrived = (payload) => void (payload === last && resolve());
      await db.run(`select pg_notify('${channel}', '${last}')`);
      await promise;
      const before = heard.splice(0, heard.indexOf(last));
      heard.shift();
      return before;
    },
    [Symbol.asyncDispose]: () => client.end(),
  };
}
