import { EffectMatchError } from '../errors.ts';

/** The one statement that a query is. */
export function singleStatement<Statement>(statements: readonly Statement[]): Statement {
  const [statement] = statements;
  if (statement === undefined || statements.length > 1)
    throw queryRefused('a query is one statement');
  return statement;
}

/** A query that was not answered, and why. It has changed nothing. */
export function queryRefused(why: string): EffectMatchError<'ERR_EM_QUERY_REFUSED'> {
  const words = why.slice(0, 1000).toWellFormed();
  return new EffectMatchError('ERR_EM_QUERY_REFUSED', `the query was not answered: ${words}`);
}

/** Why a query is refused that has nothing to show. */
export const NO_ROWS = 'the statement returns no rows';
