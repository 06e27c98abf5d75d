import { SqlFile } from '../../postgres/sql-file.ts';

/** An identifier as SQL text. */
export function quoteName(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``;
}

/** Text as an SQL literal that means the same under every SQL mode and character set. */
export function quoteText(text: string): string {
  return `_utf8mb4 x'${Buffer.from(text).toString('hex')}'`;
}

/** Text as a plain string: what a name of an account must be, and what the catalogue shows as it is. */
export function quotePlain(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** What provisioning installs, in a file that a database administrator can review. */
export const SQL = new SqlFile(new URL('./sql/provision.sql', import.meta.url), {
  name: quoteName,
  literal: quotePlain,
});
