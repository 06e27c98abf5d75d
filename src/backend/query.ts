import { EffectMatchError } from '../errors.ts';

/** Returns the statement of a query, which must be the only one. */
export function singleStatement<Statement>(statements: readonly Statement[]): Statement {
  const [statement] = statements;
  if (statement === undefined || statements.length > 1)
    throw queryRefused('a query is one statement');
  return statement;
}

/** The error for a query that was not answered. The query has changed nothing. */
export function queryRefused(why: string): EffectMatchError<'ERR_EM_QUERY_REFUSED'> {
  const words = why.slice(0, 1000).toWellFormed();
  return new EffectMatchError('ERR_EM_QUERY_REFUSED', `the query was not answered: ${words}`);
}

/** Why a query without rows is refused. */
export const NO_ROWS = 'the statement returns no rows';
