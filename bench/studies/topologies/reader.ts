// Reads what is durable, backend by backend, with code that has no part in EffectMatch.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import type { OfficeFacts } from './office.ts';

/** The tags of all effects of one run, in order. */
export async function readTags(
  { folder, bank, crm }: OfficeFacts,
  run: string,
): Promise<readonly string[]> {
  const tags: string[] = [];
  const books = new DatabaseSync(join(folder, 'books.db'), { readOnly: true });
  tags.push(
    ...books
      .prepare('select tag from entry')
      .all()
      .map(({ tag }) => String(tag)),
  );
  books.close();
  const papers = readdirSync(join(folder, 'archive'));
  tags.push(...papers.map((name) => name.replace(/\.txt$/, '')));
  const headers = { authorization: `${bank.token}.${bank.account}` };
  const answer = await (await fetch(`${bank.origin}/payments`, { headers })).json();
  const { payments } = answer as { readonly payments: readonly { readonly memo: string }[] };
  tags.push(...payments.map(({ memo }) => memo));
  const client = new pg.Client({ connectionString: String(crm.control) });
  await client.connect();
  const { rows } = await client.query('select tag from entry');
  await client.end();
  tags.push(...rows.map(({ tag }) => String(tag)));
  return tags.filter((tag) => tag.startsWith(`${run}.`)).sort();
}
