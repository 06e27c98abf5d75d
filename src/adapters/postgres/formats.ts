import type { Bound, Connection, Reply } from '../../postgres/connection.ts';

/**
 * Settings that decide how values are printed. Recorders pin them, so a stored value has one text
 * wherever it is read.
 */
export const PRINTING_FORMATS: Readonly<Record<string, string>> = {
  datestyle: 'ISO, YMD',
  timezone: 'UTC',
  intervalstyle: 'postgres',
  bytea_output: 'hex',
  extra_float_digits: '1',
  lc_monetary: 'C',
  quote_all_identifiers: 'off',
};

/** The same, and those that matter for reading text and for expressions of the catalogue. */
export const PINNED_FORMATS: Readonly<Record<string, string>> = {
  ...PRINTING_FORMATS,
  xmloption: 'content',
  array_nulls: 'on',
  standard_conforming_strings: 'on',
};

const PIN_FORMATS = Object.entries(PINNED_FORMATS)
  .map(([name, value]) => `set local ${name} = '${value}';`)
  .join(' ');

/** No object of the application answers for one of the system, and no policy of it runs. */
export const PINNED_SEARCH_PATH = 'pg_catalog, pg_temp';
const PIN_NAMES = `set local search_path = ${PINNED_SEARCH_PATH}; set local row_security = off;`;

/**
 * What of a session is pinned: `formats` alone keeps the search path that functions of the
 * application expect.
 */
export type Pins = 'formats' | 'formats and names';

/**
 * One statement in a transaction of its own that can write nothing and is rolled back, under pinned
 * settings. All of it is sent at once, so it costs one round trip. Where the first part fails,
 * nothing of the rest is believed. The connection must not be in a transaction, which this would
 * end.
 */
export async function queryPinned(
  connection: Pick<Connection, 'query' | 'script'>,
  pins: Pins,
  { text, values = [] }: { readonly text: string; readonly values?: readonly Bound[] },
): Promise<Reply> {
  const settings = pins === 'formats' ? PIN_FORMATS : `${PIN_FORMATS} ${PIN_NAMES}`;
  const parts = [
    connection.script(`begin read only; ${settings}`),
    connection.query(text, values),
    connection.script('rollback'),
  ] as const;
  const ends = await Promise.allSettled(parts);
  const failed = ends.find((end) => end.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
  return await parts[1];
}
