/** Requests in PostgreSQL, next to a ledger, for any number of machines. @module */
import '../node-version.ts';

import { EffectMatchError } from '../errors.ts';
import {
  asFault,
  Connection,
  type ConnectionOptions,
  type WireStatement,
} from '../postgres/connection.ts';
import { quoteName } from '../postgres/identifier.ts';
import {
  type RequestDatabase,
  SqlRequests,
  type SqlStatement,
  type SqlValue,
} from './sql-store.ts';
import type { RequestStore } from './store.ts';

export type { ConnectionOptions } from '../postgres/options.ts';

/** Where the tables are. */
export interface PostgresRequestsOptions {
  /** Defaults to `effectmatch_ledger_requests`. */
  readonly schema?: string;
}

const DEADLINE_MS = 30_000;
const NUMBERS: readonly string[] = [
  ...['generation', 'askedMs', 'expiresMs', 'createdMs', 'atMs'],
  ...['seq', 'number', 'attempt', 'delivered'],
];

/**
 * Opens requests next to a ledger in PostgreSQL, for any number of machines. `connection` is the
 * ledger's login. `effectmatch provision --ledger` creates the login and the tables.
 */
export async function openPostgresRequests(
  connection: ConnectionOptions,
  { schema = 'effectmatch_ledger_requests' }: PostgresRequestsOptions = {},
): Promise<RequestStore> {
  const store = new SqlRequests(new PostgresDatabase(connection, schema));
  try {
    await store.list({ limit: 1 });
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** Columns are written with underscores, and numbers arrive as text. */
class PostgresDatabase implements RequestDatabase {
  readonly #connection: ConnectionOptions;
  readonly #schema: string;
  #session: Promise<Connection> | undefined;
  #isClosed = false;

  constructor(connection: ConnectionOptions, schema: string) {
    this.#connection = connection;
    this.#schema = schema;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const session = this.#session;
    this.#session = undefined;
    await session?.then((open) => open.close()).catch(() => {});
  }

  async read(fields: readonly string[], statement: SqlStatement) {
    const { replies, failure } = await (await this.#open()).run([this.#translate(statement)]);
    if (failure !== undefined) throw await this.#failed(failure.error);
    return (replies[0]?.rows ?? []).map((row) => {
      const entries = fields.map((field, index) => {
        const text = row[index] ?? null;
        return [field, NUMBERS.includes(field) ? Number(text) : text] as const;
      });
      return Object.fromEntries(entries);
    });
  }

  /** A lock serialises writers, so that events become visible in the order of their numbers. */
  async write(statements: readonly SqlStatement[]): Promise<number> {
    const lock = 'select pg_advisory_xact_lock(hashtextextended($1, 0))';
    const { replies, failure } = await (await this.#open()).run([
      // Each statement must see what the writer before this one committed.
      { text: 'begin isolation level read committed' },
      { text: 'set local synchronous_commit = on' },
      { text: lock, values: [this.#schema] },
      ...statements.map((statement) => this.#translate(statement)),
      { text: 'commit' },
    ]);
    if (failure !== undefined) throw await this.#failed(failure.error);
    if (replies.at(-1)?.command !== 'COMMIT')
      throw await this.#failed(new Error('it was rolled back'));
    return replies.at(-2)?.rows.length ?? 0;
  }

  /** Translates placeholders, column names and table names to PostgreSQL's. */
  #translate({ sql, values }: SqlStatement): WireStatement {
    let place = 0;
    const text = sql
      .replace(/\?/g, () => `$${++place}`)
      .replace(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
      .replace(/\{(\w+)\}/g, (_, name) => `${quoteName(this.#schema)}.${name}`);
    return { text, values: values.map(asText) };
  }

  /** Closes the session, which may be in an open transaction. The next call opens a new one. */
  async #failed(error: unknown): Promise<unknown> {
    const session = this.#session;
    this.#session = undefined;
    await session?.then((open) => open.close()).catch(() => {});
    return unavailable(error);
  }

  async #open(): Promise<Connection> {
    if (this.#isClosed)
      throw new EffectMatchError('ERR_EM_STORE_UNAVAILABLE', 'the requests are closed');
    const last = this.#session;
    const known = await last?.catch(() => undefined);
    if (known?.isAlive) return known;
    if (this.#session === last) this.#session = undefined;
    this.#session ??= Connection.open(this.#connection, 'effectmatch requests', DEADLINE_MS);
    return await this.#session.catch((error) => {
      throw unavailable(error);
    });
  }
}

/** PostgreSQL text cannot contain NUL characters. */
function asText(value: SqlValue): string | null {
  return value === null ? null : String(value).replaceAll('\0', '\ufffd');
}

function unavailable(error: unknown): unknown {
  const what = 'the requests in PostgreSQL; `effectmatch provision --ledger` prepares them';
  return asFault(error, 'ERR_EM_STORE_UNAVAILABLE', what);
}
