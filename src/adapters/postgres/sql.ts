import { SqlFile } from '../../postgres/sql-file.ts';

const open = (name: string) => new SqlFile(new URL(`./sql/${name}.sql`, import.meta.url));

/** The SQL of this adapter, in files that a database administrator can review. */
export const SQL = {
  /** Reads what is registered. */
  registered: open('registered'),
  /** Reads what a survey judges. */
  catalog: open('catalog'),
  rights: open('rights'),
  outlets: open('outlets'),
  /** Lists of the server's own functions, roles, libraries and extensions. */
  builtins: open('builtins'),
  /** Detects whether that has changed. */
  fingerprint: open('fingerprint'),
  /** What provisioning installs: schema `effectmatch`, recorders, roles and rights. */
  tables: open('tables'),
  functions: open('functions'),
  guards: open('guards'),
  recorders: open('recorders'),
  provision: open('provision'),
};
