/**
 * Settings that decide how values are printed and read. Recorders pin the same ones, so the same stored value has the
 * same text wherever it is read.
 */
export const PINNED_FORMATS = {
  datestyle: 'ISO, YMD',
  timezone: 'UTC',
  intervalstyle: 'postgres',
  bytea_output: 'hex',
  extra_float_digits: '1',
  lc_monetary: 'C',
  xmloption: 'content',
  array_nulls: 'on',
  quote_all_identifiers: 'off',
} as const;

/** Names of reg* types are printed as short as the search path allows; with this one, only system objects are short. */
export const PINNED_SEARCH_PATH = 'pg_catalog, pg_temp';

/** Statements that pin the formats for the rest of a transaction. */
export const PIN_FORMATS = Object.entries(PINNED_FORMATS)
  .map(([name, value]) => `SET LOCAL ${name} = '${value}';`)
  .join(' ');

/** Startup options of a session whose formats, search path and row security are pinned from the start. */
export const PINNED_OPTIONS = Object.entries({
  ...PINNED_FORMATS,
  search_path: PINNED_SEARCH_PATH,
  row_security: 'off',
})
  .map(([name, value]) => `-c ${name}=${value.replaceAll(' ', '\\ ')}`)
  .join(' ');
