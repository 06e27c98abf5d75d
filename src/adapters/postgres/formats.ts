import type { Connection, ParameterValue, Reply } from '../../postgres/connection.ts';

/**
 * Settings that decide how values are printed and read, and what expressions of the catalogue look
 * like. Recorders pin those that decide about printing, so a stored value always has one text.
 */
export const PINNED_FORMATS: Readonly<Record<string, string>> = {
  datestyle: 'ISO, YMD',
  timezone: 'UTC',
  intervalstyle: 'postgres',
  bytea_output: 'hex',
  extra_float_digits: '1',
  lc_monetary: 'C',
  quote_all_identifiers: 'off',
  xmloption: 'content',
  array_nulls: 'on',
  standard_conforming_strings: 'on',
};

/** No object of the application answers for one of the system. */
export const PINNED_SEARCH_PATH = 'pg_catalog, pg_temp';

const FORMATS = Object.entries(PINNED_FORMATS).map(
  ([name, value]) => `set local ${name} = '${value}';`,
);
const BEGIN =
  `begin read only; ${FORMATS.join(' ')}` +
  ` set local search_path = ${PINNED_SEARCH_PATH}; set local row_security = off;`;

/**
 * One statement in a separate transaction that can write nothing and is rolled back, under pinned
 * formats and names and without policies. All of it is sent at once, so it costs one round trip. If
 * the first part fails, the rest is not used. The connection must not be in a transaction, which
 * this would end.
 */
export async function queryPinned(
  connection: Pick<Connection, 'query' | 'script'>,
  text: string,
  values: readonly ParameterValue[] = [],
): Promise<Reply> {
  const parts = [
    connection.script(BEGIN),
    connection.query(text, values),
    connection.script('rollback'),
  ] as const;
  const ends = await Promise.allSettled(parts);
  const failed = ends.find((end) => end.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
  return await parts[1];
}
