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

export type SqlValue = string | number | boolean | null;

/**
 * A statement that both engines understand: `{name}` is a table, `?` is a value, and columns are
 * named like the fields of the records.
 */
export interface SqlStatement {
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

/** What an engine does for {@link SqlRequests}. */
export interface RequestDatabase {
  /** Reads rows. `fields` names the selected columns in order. */
  read(
    fields: readonly string[],
    statement: SqlStatement,
  ): Promise<readonly Readonly<Record<string, unknown>>[]>;
  /**
   * Runs the statements in one transaction that is on disk when it returns, and that no other
   * writer can interleave with. Returns the number of rows that the last statement returned.
   */
  write(statements: readonly SqlStatement[]): Promise<number>;
  close(): Promise<void>;
}

const MAX_COUNT = 1000;
const LOG_KEPT_MS = 30 * 86_400_000;
const REQUEST: readonly (keyof StoredRequest)[] = [
  ...(['id', 'generation', 'by', 'run', 'adapter', 'operation', 'mode', 'askedMs'] as const),
  ...(['expiresMs', 'asked', 'state', 'license', 'occurrence', 'answeredBy'] as const),
  ...(['decline', 'detail', 'results'] as const),
];
const EVENT = ['seq', 'id', 'atMs', 'state', 'by', 'adapter', 'operation'];
const DELIVERY = ['number', 'receiver', 'seq', 'attempt', 'atMs', 'delivered', 'result'];
const TOKEN = ['id', 'digest', 'kind', 'holder', 'scopes', 'createdMs', 'expiresMs'];

type Condition = Parameters<RequestStore['change']>[1];

/** Requests in an SQL database. */
export class SqlRequests implements RequestStore {
  readonly #db: RequestDatabase;

  constructor(db: RequestDatabase) {
    this.#db = db;
  }

  async insert(request: StoredRequest): Promise<StoredRequest> {
    const { id, askedMs, state } = request;
    const { sql, values } = insertInto('request', { ...request });
    await this.#db.write([
      {
        sql: `insert into {event} (id, atMs, state) select ?, ?, ?
          where not exists (select 1 from {request} where id = ?)`,
        values: [id, askedMs, state, id],
      },
      { sql: `${sql} on conflict (id) do nothing`, values },
    ]);
    return (await this.find(id)) as StoredRequest;
  }

  async find(id: string): Promise<StoredRequest | undefined> {
    const [found] = await this.#requests('where id = ?', [id]);
    return found;
  }

  async count(state: RequestState): Promise<number> {
    const sql = `select id from {request} where state = ? limit ${MAX_COUNT}`;
    return (await this.#db.read(['id'], { sql, values: [state] })).length;
  }

  async search(beginning: string): Promise<readonly string[]> {
    const sql = 'select id from {request} where id >= ? and id < ? order by id limit 2';
    const rows = await this.#db.read(['id'], { sql, values: [beginning, `${beginning}~`] });
    return rows.map(({ id }) => String(id));
  }

  async change(id: string, only: Condition, change: RequestChange, atMs: number): Promise<boolean> {
    const isNews = change.license !== undefined || change.asked !== undefined;
    return await this.#update(id, only, change, { atMs, isNews });
  }

  async renew(
    id: string,
    only: Parameters<RequestStore['renew']>[1],
    renewed: Pick<StoredRequest, 'asked' | 'expiresMs'>,
    atMs: number,
  ): Promise<boolean> {
    const generation = only.generation + 1;
    const cleared = { license: null, occurrence: null, answeredBy: null, decline: null };
    const fields = { state: 'pending', generation, ...renewed, ...cleared, detail: null } as const;
    return await this.#update(id, only, fields, { atMs, isNews: true });
  }

  /** Adds an event if `isNews` or the state changes. The event comes first: it needs the old state. */
  async #update(
    id: string,
    { from, generation, unsigned = false, asked }: Condition,
    fields: Partial<StoredRequest> & Pick<StoredRequest, 'state'>,
    { atMs, isNews }: { readonly atMs: number; readonly isNews: boolean },
  ): Promise<boolean> {
    const { state } = fields;
    const terms = ['id = ?', 'generation = ?', `state in (${placesFor(from)})`];
    const matched: SqlValue[] = [id, generation, ...from];
    if (unsigned) terms.push('license is null');
    if (asked !== undefined) {
      terms.push('asked = ?');
      matched.push(asked);
    }
    const where = terms.join(' and ');
    const sets = Object.keys(fields).map((name) => `${name} = ?`);
    const changed = await this.#db.write([
      {
        sql: `insert into {event} (id, atMs, state) select id, ?, ? from {request}
          where ${where}${isNews ? '' : ' and state <> ?'}`,
        values: [atMs, state, ...matched, ...(isNews ? [] : [state])],
      },
      {
        sql: `update {request} set ${sets.join(', ')} where ${where} returning id`,
        values: [...Object.values(fields), ...matched],
      },
    ]);
    return changed > 0;
  }

  async list(query: StoredQuery): Promise<readonly StoredRequest[]> {
    const { state, by, adapter, askedBeforeMs, limit, after } = query;
    const terms: [string, SqlValue | undefined][] = [
      ['state = ?', state],
      ['by = ?', by],
      ['adapter = ?', adapter],
      ['askedMs < ?', askedBeforeMs],
      ['(askedMs, id) < (select askedMs, id from {request} where id = ?)', after],
    ];
    const given = terms.flatMap(([term, value]) => (value === undefined ? [] : [{ term, value }]));
    const where = given.length === 0 ? '' : `where ${given.map(({ term }) => term).join(' and ')}`;
    const values = [...given.map(({ value }) => value), limit];
    return await this.#requests(`${where} order by askedMs desc, id desc limit ?`, values);
  }

  async events(afterSeq: number, limit: number): Promise<readonly RequestEvent[]> {
    const sql = `select e.seq, e.id, e.atMs, e.state, r.by, r.adapter, r.operation
      from {event} as e join {request} as r on r.id = e.id where e.seq > ? order by e.seq limit ?`;
    const rows = await this.#db.read(EVENT, { sql, values: [afterSeq, limit] });
    return rows.map(({ atMs, operation, ...row }) => {
      const event = { ...row, at: new Date(Number(atMs)).toISOString() };
      return (operation === null ? event : { ...event, operation }) as unknown as RequestEvent;
    });
  }

  async delivered(receiver: string): Promise<number> {
    const sql = 'select seq from {delivery} where receiver = ?';
    const [row] = await this.#db.read(['seq'], { sql, values: [receiver] });
    return Number(row?.seq ?? 0);
  }

  async logDelivery(delivery: Delivery): Promise<void> {
    const { receiver, seq, delivered, atMs } = delivery;
    const confirm = {
      sql: `insert into {delivery} as d (receiver, seq) values (?, ?)
        on conflict (receiver) do update set seq = excluded.seq where d.seq < excluded.seq`,
      values: [receiver, seq],
    };
    const forget = {
      sql: 'delete from {delivery_log} where atMs < ?',
      values: [atMs - LOG_KEPT_MS],
    };
    const log = insertInto('delivery_log', { ...delivery });
    await this.#db.write([log, ...(delivered ? [confirm] : []), forget]);
  }

  async deliveries(after: number, limit: number): Promise<readonly LoggedDelivery[]> {
    return await this.#logged('where number > ? order by number limit ?', [after, limit]);
  }

  async lastDelivery(receiver: string): Promise<LoggedDelivery | undefined> {
    const rest = 'where receiver = ? order by number desc limit 1';
    const [last] = await this.#logged(rest, [receiver]);
    return last;
  }

  async addToken({ scopes, ...token }: StoredToken): Promise<void> {
    await this.#db.write([insertInto('token', { ...token, scopes: scopes.join(' ') })]);
  }

  async findToken(digest: string): Promise<StoredToken | undefined> {
    const [found] = await this.#tokens('where digest = ?', [digest]);
    return found;
  }

  async tokens(): Promise<readonly StoredToken[]> {
    return await this.#tokens(`order by createdMs desc, id limit ${MAX_COUNT}`, []);
  }

  async endToken(id: string, atMs: number): Promise<boolean> {
    const sql = `update {token} set expiresMs = case when expiresMs < ? then expiresMs else ? end
      where id = ? returning id`;
    return (await this.#db.write([{ sql, values: [atMs, atMs, id] }])) > 0;
  }

  async close(): Promise<void> {
    await this.#db.close();
  }

  async #requests(rest: string, values: readonly SqlValue[]): Promise<readonly StoredRequest[]> {
    const sql = `select ${REQUEST.join(', ')} from {request} ${rest}`;
    return (await this.#db.read(REQUEST, { sql, values })) as unknown as StoredRequest[];
  }

  async #logged(rest: string, values: readonly SqlValue[]): Promise<readonly LoggedDelivery[]> {
    const columns = DELIVERY.map((name) =>
      name === 'delivered' ? 'case when delivered then 1 else 0 end as delivered' : name,
    );
    const sql = `select ${columns.join(', ')} from {delivery_log} ${rest}`;
    const rows = await this.#db.read(DELIVERY, { sql, values });
    return rows.map(
      (row) => ({ ...row, delivered: row.delivered === 1 }) as unknown as LoggedDelivery,
    );
  }

  async #tokens(rest: string, values: readonly SqlValue[]): Promise<readonly StoredToken[]> {
    const sql = `select ${TOKEN.join(', ')} from {token} ${rest}`;
    const rows = await this.#db.read(TOKEN, { sql, values });
    return rows.map(
      (row) => ({ ...row, scopes: String(row.scopes).split(' ') }) as unknown as StoredToken,
    );
  }
}

function insertInto(table: string, record: Readonly<Record<string, SqlValue>>): SqlStatement {
  const names = Object.keys(record);
  const sql = `insert into {${table}} (${names.join(', ')}) values (${placesFor(names)})`;
  return { sql, values: Object.values(record) };
}

function placesFor(values: readonly unknown[]): string {
  return values.map(() => '?').join(', ');
}
