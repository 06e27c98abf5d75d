import { invalid } from '../../backend/manifest-schema.ts';
import { EffectMatchError, invariant } from '../../errors.ts';
import { asFault, type Connection, describeError, sqlState } from '../../postgres/connection.ts';
import type { Value } from '../../protocol/value.ts';
import { queryPinned } from './formats.ts';
import type { ColumnType, PostgresColumn } from './relation.ts';
import { decoderOf, encodeValue } from './value.ts';

/** One text (or constant expression of the schema) that a column's type has to read. */
interface Request {
  readonly type: ColumnType;
  /** The type whose input function reads it: that of the column, or the one beneath its domains. */
  readonly read: string;
  readonly source: { readonly text: string | null } | { readonly expression: string };
  /** Where it is stated, for messages. */
  readonly where: string;
}

/**
 * Values as columns would store them. Normalising asks once to say what there is to cast, lets the
 * database cast all of it in one round trip, and asks again for the results.
 */
export class CastBatch {
  readonly #requests = new Map<string, Request>();
  #results: ReadonlyMap<string, Value> | undefined;

  /**
   * The stated value as the column stores it. Before {@link CastBatch.run} it comes back as it was
   * stated.
   */
  value(column: PostgresColumn, value: Value, where: string): Value {
    if (value === null && column.notNull) throw invalid(where, 'it is NOT NULL; state a value');
    if (value === null && !column.type.domain) return null;
    const text = encodeValue(column.type, value);
    if (text !== null && typeof text !== 'string') throw invalid(where, text.why);
    return (
      this.#ask({ type: column.type, read: readWith(column, where), source: { text }, where }) ??
      value
    );
  }

  /** The value of a default that is a literal; null before {@link CastBatch.run}. */
  constant(column: PostgresColumn, expression: string, where: string): Value {
    if (!column.defaultBuiltIn) {
      throw invalid(
        where,
        `its default (${expression}) runs code of the application; state the value`,
      );
    }
    const { type } = column;
    return (
      this.#ask({ type, read: readWith(column, where), source: { expression }, where }) ?? null
    );
  }

  /** Whether the database has anything to do. */
  get isEmpty(): boolean {
    return this.#requests.size === 0;
  }

  /**
   * Casts everything that was asked for, with the rights of the execution login, in a transaction
   * that can write nothing and is rolled back. No code of the application runs: what a transaction
   * cannot take back would be left of it.
   */
  async run(session: Connection): Promise<void> {
    const requests = [...this.#requests.values()];
    const results = await castAll(session, requests);
    this.#results = new Map(
      [...this.#requests.keys()].map((key, index) => [key, results[index] ?? null]),
    );
  }

  #ask(request: Request): Value | undefined {
    const { source } = request;
    const what =
      'text' in source
        ? source.text === null
          ? 'null'
          : `text ${source.text}`
        : `default ${source.expression}`;
    const key = `${request.type.text} ${what}`;
    if (this.#results !== undefined) {
      const result = this.#results.get(key);
      invariant(result !== undefined, 'every value was asked for before the casts ran');
      return result;
    }
    if (!this.#requests.has(key)) this.#requests.set(key, request);
    return undefined;
  }
}

/**
 * Refuses a type whose values cannot be read without running code that nothing has certified yet.
 */
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
    if (error instanceof EffectMatchError) throw error;
    if (sqlState(error) === undefined)
      throw asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', 'values could not be cast');
    if (requests.length === 1) throw invalid(requests[0]?.where ?? '', describeError(error), error);
    // The message of the database does not say which value it means: look for the first one that
    // fails.
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
  const groups = Map.groupBy(requests.entries(), ([, { read }]) => read);
  const parts = [...groups.values()].flatMap((group) => {
    const [texts, constants] = partition(group);
    if (texts.length > 0)
      values.push(
        texts.map(([index]) => String(index)),
        texts.map(([, text]) => text),
      );
    const sources = [
      ...(texts.length > 0 ? [unnestSource(values.length)] : []),
      ...constants.map(constantSource),
    ];
    return sources.map((source) => castSource(group[0]?.[1], source));
  });
  const { rows } = await queryPinned(session, parts.join(' union all '), values);
  const outcome = new Map(rows.map(([index, text]) => [Number(index), text ?? null]));
  return requests.map(({ type, source }, index) => {
    const text = outcome.get(index);
    invariant(typeof text === 'string', 'every cast has a result');
    return 'text' in source && source.text === null ? null : decoderOf(type)(text);
  });
}

type Indexed<T> = readonly (readonly [index: number, item: T])[];

/**
 * Texts travel as parameters; constants are expressions of the schema and part of the statement.
 */
function partition(group: Indexed<Request>): [Indexed<string | null>, Indexed<string>] {
  const texts: [number, string | null][] = [];
  const constants: [number, string][] = [];
  for (const [index, { source }] of group) {
    if ('text' in source) texts.push([index, source.text]);
    else constants.push([index, source.expression]);
  }
  return [texts, constants];
}

/** Rows `n, t`: the numbers and texts in the two parameters before. */
function unnestSource(parameters: number): string {
  return (
    `rows from (pg_catalog.unnest($${parameters - 1}::pg_catalog.text[]), ` +
    `pg_catalog.unnest($${parameters}::pg_catalog.text[])) as s (n, t)`
  );
}

function constantSource([index, expression]: readonly [number, string]): string {
  return `(select '${index}'::pg_catalog.text, pg_catalog.concat((${expression}))) as s (n, t)`;
}

/**
 * A cast written with `::` would cut a text that is too long for the column; a column definition
 * list reads the text with the type's input function and modifier, as an assignment does, and runs
 * no user-defined cast. JSON is the exception: there, a text would become a JSON string, and no
 * modifier can be lost.
 */
function castSource(request: Request | undefined, source: string): string {
  invariant(request !== undefined, 'a group of casts has a type');
  const { type, read } = request;
  const isJson =
    type.baseSchema === 'pg_catalog' && (type.base === 'json' || type.base === 'jsonb');
  if (isJson) return `select s.n, pg_catalog.concat(s.t::${read}) from ${source}`;
  return (
    `select s.n, pg_catalog.concat(x.v) from ${source} cross join lateral ` +
    `pg_catalog.json_to_record(pg_catalog.json_build_object('v', s.t)) as x (v ${read})`
  );
}
