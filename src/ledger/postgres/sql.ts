import { DOLLAR_QUOTE, SqlFile } from '../../postgres/sql-file.ts';

const open = (name: string) => new SqlFile(new URL(`./sql/${name}.sql`, import.meta.url));

/** Increased when the tables change in a way that an older runtime cannot handle. */
export const VERSION = '1';

/** The SQL of this ledger, in files that a database administrator can review. */
export const SQL = {
  /** The tables that provisioning creates. */
  tables: open('tables'),
  /** The function that writes decisions. */
  decide: open('decide'),
  provision: open('provision'),
  /** The tables for agents' requests, next to the ledger. */
  requests: open('requests'),
  /** The ledger's queries. */
  queries: open('queries'),
};

/** The body of the function that writes decisions, as the server stores it. */
export function decideBody(schema: string): string {
  const [, body = ''] = SQL.decide.get('decide', { schema }).split(DOLLAR_QUOTE);
  return body;
}
