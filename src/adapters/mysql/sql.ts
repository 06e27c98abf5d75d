import { SqlFile } from '../../postgres/sql-file.ts';

/** Quotes an identifier. */
export function quoteName(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``;
}

/** Text as an SQL literal that is valid under every SQL mode and character set. */
export function quoteText(text: string): string {
  return `_utf8mb4 x'${Buffer.from(text).toString('hex')}'`;
}

/**
 * Text as a plain string literal, for account names and for text that the catalogue shows verbatim.
 */
export function quotePlain(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** The SQL that provisioning installs, in a file that a database administrator can review. */
export const SQL = new SqlFile(new URL('./sql/provision.sql', import.meta.url), {
  name: quoteName,
  literal: quotePlain,
});
