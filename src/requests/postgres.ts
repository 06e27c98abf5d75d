/** Requests in PostgreSQL, next to a ledger, for any number of machines. @module */
import '../node-version.ts';

import { EffectMatchError } from '../errors.ts';
import {
  asFault,
  Connection,
  type ConnectionOptions,
  type ParameterValue,
  type TextRow,
  type WireStatement,
} from '../postgres/connection.ts';
import { quoteName } from '../postgres/identifier.ts';
import type { RequestEvent, RequestState } from './request.ts';
import type {
  Delivery,
  LoggedDelivery,
  RequestChange,
  RequestStore,
  StoredQuery,
  StoredRequest,
  StoredToken,
} from './store.ts';

export type { ConnectionOptions } from '../postgres/options.ts';

/** Where the tables are. */
export interface PostgresRequestsOptions {
  /** Defaults to `effectmatch_ledger_requests`. */
  readonly schema?: string;
}

const DEADLINE_MS = 30_000;
const LOG_KEPT_MS = 30 * 86_400_000;
const LOGGED = 'number, receiver, seq, attempt, at_ms, delivered, result';
const TOKEN = 'id, digest, kind, holder, scopes, created_ms, expires_ms';

/**
 * Opens requests next to a ledger in PostgreSQL, for any number of machines. `connection` is the
 * ledger's login. `effectmatch provision --ledger` creates the login and the tables.
 */
export async function openPostgresRequests(
  connection: ConnectionOptions,
  { schema = 'effectmatch_ledger_requests' }: PostgresRequestsOptions = {},
): Promise<RequestStore> {
  const store = new PostgresRequests(connection, schema);
  try {
    await store.list({ limit: 1 });
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** The column of each field, in the order in which they are read. */
const COLUMNS: Readonly<Record<keyof StoredRequest, string>> = {
  id: 'id',
  generation: 'generation',
  by: 'by',
  run: 'run',
  adapter: 'adapter',
  operation: 'operation',
  mode: 'mode',
  askedMs: 'asked_ms',
  expiresMs: 'expires_ms',
  asked: 'asked',
  state: 'state',
  license: 'license',
  occurrence: 'occurrence',
  answeredBy: 'answered_by',
  decline: 'decline',
  detail: 'detail',
  results: 'results',
};
const FIELDS = Object.keys(COLUMNS) as (keyof StoredRequest)[];
const NUMBERS: readonly string[] = ['generation', 'askedMs', 'expiresMs'];
const SELECTED = FIELDS.map((field) => `r.${COLUMNS[field]}`).join(', ');

class PostgresRequests implements RequestStore {
  readonly #connection: ConnectionOptions;
  readonly #schema: string;
  #session: Promise<Connection> | undefined;
  #isClosed = false;

  constructor(connection: ConnectionOptions, schema: string) {
    this.#connection = connection;
    this.#schema = schema;
  }

  async insert(request: StoredRequest): Promise<StoredRequest> {
    const values = FIELDS.map((field) => asText(request[field]));
    const places = values.map((_, index) => `$${index + 1}`).join(', ');
    const names = FIELDS.map((field) => COLUMNS[field]).join(', ');
    const text = `with made as (
        insert into ${this.#table('request')} (${names}) values (${places})
        on conflict (id) do nothing returning id, asked_ms, state)
      insert into ${this.#table('event')} (id, at_ms, state) select id, asked_ms, state from made`;
    await this.#write({ text, values });
    return (await this.find(request.id)) as StoredRequest;
  }

  async find(id: string): Promise<StoredRequest | undefined> {
    const text = `select ${SELECTED} from ${this.#table('request')} as r where r.id = $1`;
    const [row] = await this.#read(text, [id]);
    return row && readRow(row);
  }

  async count(state: RequestState): Promise<number> {
    const text = `select pg_catalog.count(*) from (
      select 1 from ${this.#table('request')} as r where r.state = $1 limit 1000) as found`;
    const [row] = await this.#read(text, [state]);
    return Number(row?.[0]);
  }

  async search(beginning: string): Promise<readonly string[]> {
    const text = `select r.id from ${this.#table('request')} as r
      where r.id >= $1 and r.id < $2 order by r.id limit 2`;
    return (await this.#read(text, [beginning, `${beginning}~`])).map(([id]) => String(id));
  }

  async change(
    id: string,
    only: Parameters<RequestStore['change']>[1],
    change: RequestChange,
    atMs: number,
  ): Promise<boolean> {
    const isNews = change.license !== undefined || change.asked !== undefined;
    return await this.#update(id, only, change, atMs, isNews);
  }

  async renew(
    id: string,
    only: Parameters<RequestStore['renew']>[1],
    renewed: Pick<StoredRequest, 'asked' | 'expiresMs'>,
    atMs: number,
  ): Promise<boolean> {
    const cleared = {
      license: null,
      occurrence: null,
      answeredBy: null,
      decline: null,
      detail: null,
    };
    const generation = only.generation + 1;
    const fields = { state: 'pending', generation, ...renewed, ...cleared } as const;
    return await this.#update(id, only, fields, atMs, true);
  }

  /** Uses one statement, so that the second of two writers sees that the request has changed. */
  async #update(
    id: string,
    only: Parameters<RequestStore['change']>[1],
    fields: Partial<StoredRequest> & Pick<StoredRequest, 'state'>,
    atMs: number,
    always = false,
  ): Promise<boolean> {
    const names = Object.keys(fields) as (keyof StoredRequest)[];
    const sets = names.map((name, index) => `${COLUMNS[name]} = $${index + 7}`).join(', ');
    const request = this.#table('request');
    const text = `with changed as (
        update ${request} as r set ${sets}
        from (select id, state from ${request} where id = $1 for update) as was
        where r.id = was.id and r.generation = $2 and r.state = any ($3)
          and (r.license is null or ${only.unsigned !== true})
          and ($6::text is null or r.asked = $6) returning was.state),
      noted as (
        insert into ${this.#table('event')} (id, at_ms, state)
        select $1, $4, $5 from changed where ${always} or changed.state <> $5)
      select from changed`;
    const conditions = [id, asText(only.generation), only.from, asText(atMs), fields.state];
    const values = [
      ...conditions,
      only.asked ?? null,
      ...names.map((name) => asText(fields[name] ?? null)),
    ];
    return (await this.#write({ text, values })) > 0;
  }

  async list(query: StoredQuery): Promise<readonly StoredRequest[]> {
    const { state, by, adapter, askedBeforeMs, limit, after } = query;
    const request = this.#table('request');
    const terms: [term: (place: string) => string, value: string | number | undefined][] = [
      [(place) => `r.state = ${place}`, state],
      [(place) => `r.by = ${place}`, by],
      [(place) => `r.adapter = ${place}`, adapter],
      [(place) => `r.asked_ms < ${place}`, askedBeforeMs],
      [
        (place) =>
          `(r.asked_ms, r.id) < (select l.asked_ms, l.id from ${request} as l where l.id = ${place})`,
        after,
      ],
    ];
    const given = terms.filter(([, value]) => value !== undefined);
    const conditions = given.map(([term], index) => term(`$${index + 2}`)).join(' and ');
    const text = `select ${SELECTED} from ${request} as r
      ${conditions === '' ? '' : `where ${conditions}`}
      order by r.asked_ms desc, r.id desc limit $1`;
    const values = [String(limit), ...given.map(([, value]) => asText(value ?? null))];
    return (await this.#read(text, values)).map(readRow);
  }

  async events(afterSeq: number, limit: number): Promise<readonly RequestEvent[]> {
    const text = `select e.seq, e.id, e.at_ms, e.state, r.by, r.adapter, r.operation
      from ${this.#table('event')} as e join ${this.#table('request')} as r on r.id = e.id
      where e.seq > $1 order by e.seq limit $2`;
    const rows = await this.#read(text, [String(afterSeq), String(limit)]);
    return rows.map(([seq, id, atMs, state, by, adapter, operation]) => ({
      ...({ id, state, by, adapter } as Pick<RequestEvent, 'id' | 'state' | 'by' | 'adapter'>),
      seq: Number(seq),
      at: new Date(Number(atMs)).toISOString(),
      ...(operation != null && { operation }),
    }));
  }

  async delivered(receiver: string): Promise<number> {
    const text = `select seq from ${this.#table('delivery')} where receiver = $1`;
    const [row] = await this.#read(text, [receiver]);
    return Number(row?.[0] ?? 0);
  }

  async logDelivery(delivery: Delivery): Promise<void> {
    const { receiver, seq, attempt, atMs, delivered, result } = delivery;
    const log = this.#table('delivery_log');
    const text = `with logged as (
        insert into ${log} (receiver, seq, attempt, at_ms, delivered, result)
        values ($1, $2, $3, $4, $5, $6)),
      pruned as (delete from ${log} where at_ms < $7)
      insert into ${this.#table('delivery')} as d (receiver, seq)
      select $1, $2::bigint where $5::boolean
      on conflict (receiver) do update set seq = greatest(d.seq, excluded.seq)`;
    const numbers = [String(seq), String(attempt), String(atMs)];
    const kept = String(atMs - LOG_KEPT_MS);
    await this.#write({ text, values: [receiver, ...numbers, String(delivered), result, kept] });
  }

  async deliveries(after: number, limit: number): Promise<readonly LoggedDelivery[]> {
    const text = `select ${LOGGED} from ${this.#table('delivery_log')}
      where number > $1 order by number limit $2`;
    return (await this.#read(text, [String(after), String(limit)])).map(readDelivery);
  }

  async lastDelivery(receiver: string): Promise<LoggedDelivery | undefined> {
    const text = `select ${LOGGED} from ${this.#table('delivery_log')}
      where receiver = $1 order by number desc limit 1`;
    const [row] = await this.#read(text, [receiver]);
    return row && readDelivery(row);
  }

  async addToken(token: StoredToken): Promise<void> {
    const { id, digest, kind, holder, scopes, createdMs, expiresMs } = token;
    const text = `insert into ${this.#table('token')} (${TOKEN})
      values ($1, $2, $3, $4, $5, $6, $7)`;
    const words = [id, digest, kind, holder, scopes.join(' ')];
    await this.#write({ text, values: [...words, String(createdMs), String(expiresMs)] });
  }

  async findToken(digest: string): Promise<StoredToken | undefined> {
    const text = `select ${TOKEN} from ${this.#table('token')} where digest = $1`;
    const [row] = await this.#read(text, [digest]);
    return row && readToken(row);
  }

  async tokens(): Promise<readonly StoredToken[]> {
    const text = `select ${TOKEN} from ${this.#table('token')}
      order by created_ms desc, id limit 1000`;
    return (await this.#read(text, [])).map(readToken);
  }

  async endToken(id: string, atMs: number): Promise<boolean> {
    const text = `update ${this.#table('token')} set expires_ms = least(expires_ms, $2)
      where id = $1 returning id`;
    return (await this.#write({ text, values: [id, String(atMs)] })) > 0;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const session = this.#session;
    this.#session = undefined;
    await session?.then((open) => open.close()).catch(() => {});
  }

  #table(name: string): string {
    return `${quoteName(this.#schema)}.${name}`;
  }

  /**
   * Runs one transaction that is on disk when it returns, and returns the number of rows. A lock
   * serialises writers, so that events become visible in the order of their numbers.
   */
  async #write(statement: WireStatement): Promise<number> {
    const lock = 'select pg_advisory_xact_lock(hashtextextended($1, 0))';
    const { replies, failure } = await (await this.#open()).run([
      { text: 'begin' },
      { text: 'set local synchronous_commit = on' },
      { text: lock, values: [this.#schema] },
      statement,
      { text: 'commit' },
    ]);
    if (failure !== undefined) throw await this.#failed(failure.error);
    if (replies[4]?.command !== 'COMMIT') throw await this.#failed(new Error('it was rolled back'));
    return replies[3]?.rows.length ?? 0;
  }

  async #read(text: string, values: readonly ParameterValue[]): Promise<readonly TextRow[]> {
    const { replies, failure } = await (await this.#open()).run([{ text, values }]);
    if (failure !== undefined) throw await this.#failed(failure.error);
    return replies[0]?.rows ?? [];
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

function readRow(row: TextRow): StoredRequest {
  const entries = FIELDS.map((field, index) => {
    const text = row[index] ?? null;
    return [field, NUMBERS.includes(field) ? Number(text) : text] as const;
  });
  return Object.fromEntries(entries) as unknown as StoredRequest;
}

function readDelivery(row: TextRow): LoggedDelivery {
  const [number, receiver, seq, attempt, atMs, delivered, result] = row;
  return {
    number: Number(number),
    receiver: String(receiver),
    seq: Number(seq),
    attempt: Number(attempt),
    atMs: Number(atMs),
    delivered: delivered === 't',
    result: String(result),
  };
}

function readToken(row: TextRow): StoredToken {
  const [id, digest, kind, holder, scopes, createdMs, expiresMs] = row.map(String);
  return {
    ...({ id, digest, kind, holder } as Pick<StoredToken, 'id' | 'digest' | 'kind' | 'holder'>),
    scopes: String(scopes).split(' '),
    createdMs: Number(createdMs),
    expiresMs: Number(expiresMs),
  };
}

/** PostgreSQL text cannot contain NUL characters. */
function asText(value: string | number | null): string | null {
  return value === null ? null : String(value).replaceAll('\0', '\ufffd');
}

function unavailable(error: unknown): unknown {
  const what = 'the requests in PostgreSQL; `effectmatch provision --ledger` prepares them';
  return asFault(error, 'ERR_EM_STORE_UNAVAILABLE', what);
}
