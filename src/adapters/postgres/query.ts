import { NO_ROWS, queryRefused, singleStatement } from '../../backend/query.ts';
import type { QueryLimits, QueryRows } from '../../contract/adapter.ts';
import type { Connection } from '../../postgres/connection.ts';
import type { CheckedPostgresAction } from './action.ts';
import { explainError } from './failure.ts';
import { collectResults } from './result-rows.ts';

/**
 * Runs one statement in a READ ONLY transaction that is always rolled back. The agent's statement
 * cannot change the mode, because a query ran before it. The server stops the statement at the time
 * limit. It sends one row more than is kept, which shows that there are more.
 */
export async function queryRows(
  session: Connection,
  { statements }: CheckedPostgresAction,
  { timeoutMs, rows }: QueryLimits,
): Promise<QueryRows> {
  const { sql: text, values } = singleStatement(statements);
  const { replies, failure } = await session.run([
    { text: 'begin isolation level repeatable read, read only' },
    { text: `set local statement_timeout = ${timeoutMs}` },
    { text: `set local lock_timeout = ${timeoutMs}` },
    { text: 'select 1' },
    { text, values, describe: true, maxRows: rows + 1 },
  ]);
  const rolledBack = await session.run([{ text: 'rollback' }]);
  if (rolledBack.failure !== undefined) session.destroy();
  if (failure !== undefined) throw queryRefused(explainError(failure.error, 'plain'));
  const found = replies[4];
  if (found?.columns === undefined) throw queryRefused(NO_ROWS);
  const [result] = collectResults([{ ...found, rows: found.rows.slice(0, rows) }]) ?? [];
  const isCut = found.rows.length > rows || (result?.omitted ?? 0) > 0;
  return { rows: result?.rows ?? [], more: isCut };
}
