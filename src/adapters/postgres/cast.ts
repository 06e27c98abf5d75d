import { invalid } from '../../backend/manifest-schema.ts';
import { invariant } from '../../errors.ts';
import { asFault, type Connection, describeError, sqlState } from '../../postgres/connection.ts';
import type { Value } from '../../protocol/value.ts';
import { queryPinned } from './formats.ts';
import type { ColumnType, PostgresColumn } from './relation.ts';
import { decoderOf, encodeValue } from './value.ts';

/** One text, or one constant expression of the schema, to be read as a column's type. */
interface Request {
  readonly type: ColumnType;
  /** The type whose input function reads it: the column's type, or the type beneath its domains. */
  readonly read: string;
  readonly text: string | null;
  readonly expression?: string;
  /** Where it appears in the manifest, for messages. */
  readonly where: string;
}

/**
 * Casts values to what columns would store. Normalising runs twice: first to collect the values,
 * which the database then casts in one round trip, and again to use the results.
 */
export class CastBatch {
  readonly #requests = new Map<string, Request>();
  #results: ReadonlyMap<string, Value> | undefined;

  /**
   * The stated value as the column stores it. Before {@link CastBatch.run}, the value as stated.
   */
  value(column: PostgresColumn, value: Value, where: string): Value {
    if (value === null && column.notNull) throw invalid(where, 'it is NOT NULL; state a value');
    if (value === null && !column.type.domain) return null;
    const text = encodeValue(column.type, value);
    if (text !== null && typeof text !== 'string') throw invalid(where, text.why);
    const request = { type: column.type, read: readWith(column, where), text, where };
    return this.#ask(request) ?? value;
  }

  /** The value of a default that is a literal; null before {@link CastBatch.run}. */
  constant(column: PostgresColumn, expression: string, where: string): Value {
    if (!column.defaultBuiltIn) {
      const what = `its default (${expression}) runs code of the application`;
      throw invalid(where, `${what}; state the value`);
    }
    const read = readWith(column, where);
    return this.#ask({ type: column.type, read, text: null, expression, where }) ?? null;
  }

  /** Whether there is nothing to cast. */
  get isEmpty(): boolean {
    return this.#requests.size === 0;
  }

  /**
   * Casts everything that was asked for as the execution login, in a read-only transaction that is
   * rolled back. No application code runs, because a rollback cannot undo everything that such code
   * may do.
   */
  async run(session: Connection): Promise<void> {
    const requests = [...this.#requests.values()];
    const results = await castAll(session, requests);
    this.#results = new Map(
      [...this.#requests.keys()].map((key, index) => [key, results[index] ?? null]),
    );
  }

  #ask(request: Request): Value | undefined {
    const { type, text, expression } = request;
    const key = JSON.stringify([type.text, text, expression]);
    if (this.#results !== undefined) {
      const result = this.#results.get(key);
      invariant(result !== undefined, 'every value was asked for before the casts ran');
      return result;
    }
    if (!this.#requests.has(key)) this.#requests.set(key, request);
    return undefined;
  }
}

/** Refuses a type whose values cannot be read without running code that is not certified yet. */
function readWith({ type: { reading } }: PostgresColumn, at: string): string {
  if (reading.kind === 'built-in') return reading.text;
  throw invalid(
    at,
    `no value of it can be cast before the boundary is certified, because ${reading.why};` +
      ' state any(), or give the column a type that built-in functions read',
  );
}

async function castAll(
  session: Connection,
  requests: readonly Request[],
): Promise<readonly Value[]> {
  try {
    return await castTogether(session, requests);
  } catch (error) {
    if (sqlState(error) === undefined)
      throw asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', 'values could not be cast');
    if (requests.length === 1) throw invalid(requests[0]?.where ?? '', describeError(error), error);
    // The database's message does not say which value it means, so search for the first that fails.
    const middle = Math.ceil(requests.length / 2);
    const first = await castAll(session, requests.slice(0, middle));
    return [...first, ...(await castAll(session, requests.slice(middle)))];
  }
}

async function castTogether(
  session: Connection,
  requests: readonly Request[],
): Promise<readonly Value[]> {
  const values: (string | null)[][] = [];
  // Texts of one type are passed together as parameters; an expression is part of the statement.
  const groups = Map.groupBy(requests.entries(), ([index, { read, expression }]) =>
    expression === undefined ? read : `${index} ${read}`,
  );
  const parts = [...groups.values()].map((group) => {
    const [[index, request] = []] = group;
    invariant(request !== undefined, 'a group of casts has a type');
    if (request.expression !== undefined) {
      const text = `pg_catalog.concat((${request.expression}))`;
      return castSource(request, `(select '${index}'::pg_catalog.text, ${text}) as s (n, t)`);
    }
    const numbers = group.map(([number]) => String(number));
    const texts = group.map(([, { text }]) => text);
    const end = values.push(numbers, texts);
    const lists = [end - 1, end].map((at) => `pg_catalog.unnest($${at}::pg_catalog.text[])`);
    return castSource(request, `rows from (${lists.join(', ')}) as s (n, t)`);
  });
  const { rows } = await queryPinned(session, parts.join(' union all '), values);
  const outcome = new Map(rows.map(([index, text]) => [Number(index), text]));
  return requests.map(({ type, text: stated, expression }, index) => {
    const text = outcome.get(index);
    invariant(typeof text === 'string', 'every cast has a result');
    return stated === null && expression === undefined ? null : decoderOf(type)(text);
  });
}

/**
 * A cast with `::` would truncate a text that is too long for the column. A column definition list
 * reads it with the type's input function and modifier, as an assignment does, and runs no
 * user-defined cast. JSON types use `::`, because the list would turn the text into a JSON string,
 * and they have no modifier to lose.
 */
function castSource({ type, read }: Request, source: string): string {
  const isJson =
    type.baseSchema === 'pg_catalog' && (type.base === 'json' || type.base === 'jsonb');
  if (isJson) return `select s.n, pg_catalog.concat(s.t::${read}) from ${source}`;
  return (
    `select s.n, pg_catalog.concat(x.v) from ${source} cross join lateral ` +
    `pg_catalog.json_to_record(pg_catalog.json_build_object('v', s.t)) as x (v ${read})`
  );
}
