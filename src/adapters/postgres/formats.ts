import type { Connection, ParameterValue, Reply } from '../../postgres/connection.ts';

/**
 * Settings that affect how values are printed and read, and how catalogue expressions are shown.
 * Recorders pin those that affect printing, so that a stored value always has the same text.
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

/** Keeps application objects from shadowing system objects. */
export const PINNED_SEARCH_PATH = 'pg_catalog, pg_temp';

const FORMATS = Object.entries(PINNED_FORMATS).map(
  ([name, value]) => `set local ${name} = '${value}';`,
);
const BEGIN =
  `begin read only; ${FORMATS.join(' ')}` +
  ` set local search_path = ${PINNED_SEARCH_PATH}; set local row_security = off;`;

/**
 * Runs one statement in a separate read-only transaction that is rolled back, with pinned formats
 * and search path and without policies. All parts are sent at once, so it takes one round trip.
 * Throws if any part fails. Do not call it inside a transaction, which it would end.
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
