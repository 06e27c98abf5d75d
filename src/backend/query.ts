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

/** Limits how many queries run at the same time. */
export class QueryLimit {
  readonly #max: number;
  #running = 0;

  constructor(max: number) {
    this.#max = max;
  }

  async run<T>(query: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#max)
      throw queryRefused('too many other queries are running; ask again later');
    this.#running += 1;
    try {
      return await query();
    } finally {
      this.#running -= 1;
    }
  }
}

/** Why a query without rows is refused. */
export const NO_ROWS = 'the statement returns no rows';
