import { DOLLAR_QUOTE, SqlFile } from '../../postgres/sql-file.ts';

const open = (name: string) => new SqlFile(new URL(`./sql/${name}.sql`, import.meta.url));

/** Raised when tables change in a way that an older runtime must not meet. */
export const VERSION = '1';

/** The SQL of this ledger, in files that a database administrator can review. */
export const SQL = {
  /** What provisioning makes. */
  tables: open('tables'),
  /** The function that writes decisions. */
  decide: open('decide'),
  provision: open('provision'),
  /** The requests of agents, next to it. */
  requests: open('requests'),
  /** What the ledger asks and writes. */
  queries: open('queries'),
};

/** The body of the function that writes decisions, as the server keeps it. */
export function decideBody(schema: string): string {
  const [, body = ''] = SQL.decide.get('decide', { schema }).split(DOLLAR_QUOTE);
  return body;
}
