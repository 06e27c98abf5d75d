import { NO_ROWS, queryRefused, singleStatement } from '../../backend/query.ts';
import { ResultCollector } from '../../backend/results.ts';
import type { QueryLimits, QueryRows, StatementResult } from '../../contract/adapter.ts';
import { bindValues, type CheckedMysqlAction } from './action.ts';
import { type AdmittedTexts, refusalOf } from './admission.ts';
import { explainError } from './failure.ts';
import type { MysqlSettings } from './options.ts';
import { receiverOf } from './result-rows.ts';
import type { ExecutionSession } from './sessions.ts';

const NOTHING: StatementResult = { rows: [], omitted: 0 };

interface QueryTools {
  readonly settings: MysqlSettings;
  readonly admitted: AdmittedTexts;
}

/**
 * Runs one statement in a READ ONLY transaction. The parser refuses statements that could end the
 * transaction, and the recorders refuse every write outside a stage.
 */
export async function queryRows(
  { connection }: ExecutionSession,
  { statements }: CheckedMysqlAction,
  { timeoutMs, rows: most }: QueryLimits,
  tools: QueryTools,
): Promise<QueryRows> {
  const { sql, values } = singleStatement(statements);
  const seconds = timeoutMs / 1000;
  await connection.query(
    `set session max_statement_time = ${seconds}, sql_select_limit = ${most + 1},
      innodb_lock_wait_timeout = ${Math.ceil(seconds)}, lock_wait_timeout = ${Math.ceil(seconds)}`,
  );
  await connection.query('start transaction read only');
  const refusal = await refusalOf(sql, 'the statement', { session: connection, ...tools });
  if (refusal !== undefined) throw queryRefused(refusal.detail);
  const collected = new ResultCollector();
  const ran = await connection
    .select(sql, bindValues(values), receiverOf(collected, most), most + 1)
    .catch((error: unknown) => {
      throw queryRefused(explainError(error, 'plain'));
    });
  if (ran.kind === 'mismatch')
    throw queryRefused(`the statement takes ${ran.takes} values, and there are ${values.length}`);
  if (ran.rows === undefined) throw queryRefused(NO_ROWS);
  const { results: [{ rows, omitted } = NOTHING] = [] } = collected;
  return { rows, more: ran.rows > most || omitted > 0 };
}
