import type pg from 'pg';
import type { EscapeCase } from './case.ts';

/** Hears every channel that the case names, from now on. */
export async function listenFor(
  client: pg.Client,
  attempt: EscapeCase,
): Promise<readonly string[]> {
  const heard: string[] = [];
  client.on('notification', ({ channel }) => heard.push(channel));
  const named = [...JSON.stringify(attempt).matchAll(/notify\W{1,4}(\w{1,40})/gi)].map(
    (match) => match[1] ?? '',
  );
  for (const channel of new Set(['leak', ...named])) await client.query(`listen "${channel}"`);
  return heard;
}

const OWN = 'effectmatch-escapes';

/**
 * Watches the log of the server for logical messages, which no table shows and some of which
 * survive a rollback. Its own message at the end has to be found: a watch that sees nothing is no
 * witness.
 */
export async function openMessageWatch(
  client: pg.Client,
): Promise<{ sent(): Promise<readonly string[]> }> {
  await client.query('create extension if not exists pg_walinspect');
  const since = await client.query('select pg_current_wal_insert_lsn() as at');
  return {
    async sent() {
      // A transaction that is flushed to disk takes everything before it along.
      await client.query(`select pg_logical_emit_message(true, '${OWN}', 'x')`);
      const { rows } = await client.query(
        `select description from pg_get_wal_records_info($1, pg_current_wal_flush_lsn()) where resource_manager = 'LogicalMessage'`,
        [since.rows[0].at],
      );
      const found = rows.map(({ description }) => String(description));
      if (!found.some((text) => text.includes(OWN)))
        throw new Error('the watch did not see its own message');
      return found
        .filter((text) => !text.includes(OWN))
        .map((text) => `a logical message was written: ${text}`);
    },
  };
}
