import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { EffectMatchError } from '../errors.ts';
import {
  createPrivateFile,
  immediate,
  openDatabase,
  pinDurability,
  readPragma,
  retryWhileBusy,
  statement,
} from '../sqlite/connection.ts';
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

const APPLICATION_ID = 0x454d5251;
const VERSION = 2;
const MAX_COUNT = 1000;
const LOG_KEPT_MS = 30 * 86_400_000;
const BUSY = { deadlineMs: 10_000 };

const SCHEMA = `
  create table request (
    id text primary key, generation integer not null, state text not null, by text not null,
    run text not null, adapter text not null, operation text, mode text not null,
    askedMs integer not null, expiresMs integer not null, asked text not null,
    license text, occurrence text unique, answeredBy text, detail text, results text
  ) strict;
  create index request_by_state on request (state, askedMs, id);
  create index request_by_agent on request (by, askedMs, id);
  create index request_by_time on request (askedMs, id);
  create table event (
    seq integer primary key autoincrement, id text not null, atMs integer not null, state text not null
  ) strict;
  create table delivery (receiver text primary key, seq integer not null) strict;
  pragma application_id = ${APPLICATION_ID};`;
/** What version 2 added. */
const SINCE_VERSION_1 = `
  alter table request add column decline text;
  create table delivery_log (
    number integer primary key autoincrement, receiver text not null, seq integer not null,
    attempt integer not null, atMs integer not null, delivered integer not null, result text not null
  ) strict;
  create index delivery_log_by_receiver on delivery_log (receiver, number);
  create index delivery_log_by_time on delivery_log (atMs);
  create table token (
    id text primary key, digest text not null unique, kind text not null, holder text not null,
    scopes text not null, createdMs integer not null, expiresMs integer not null
  ) strict;
  pragma user_version = 2;`;

/** Opens requests in an SQLite file. Several processes may use it at once. */
export async function openSqliteRequests(file: string): Promise<RequestStore> {
  createPrivateFile(file);
  const db = openDatabase(file);
  try {
    await immediate(db, () => prepareFile(db, file), BUSY);
    await retryWhileBusy(() => db.exec('pragma journal_mode = wal'), BUSY);
    pinDurability(db);
    return new SqliteRequests(db);
  } catch (error) {
    db.close();
    throw error;
  }
}

function prepareFile(db: DatabaseSync, file: string): void {
  const [application, version] = [readPragma(db, 'application_id'), readPragma(db, 'user_version')];
  if (application === APPLICATION_ID && version === VERSION) return;
  const isEmpty = db.prepare('select 1 from sqlite_schema').get() === undefined;
  const isOlder = application === APPLICATION_ID && version === 1;
  if (isEmpty && application === 0) db.exec(SCHEMA);
  if (isOlder || (isEmpty && application === 0)) {
    db.exec(SINCE_VERSION_1);
    return;
  }
  const why =
    application === APPLICATION_ID
      ? 'it was written by a newer version of EffectMatch; install that one'
      : 'it belongs to another program; give requests a separate file';
  throw new EffectMatchError('ERR_EM_STORE_UNAVAILABLE', `the request file ${file}: ${why}`);
}

const COLUMNS = [
  ...['id', 'generation', 'by', 'run', 'adapter', 'operation', 'mode', 'askedMs', 'expiresMs'],
  ...['asked', 'state', 'license', 'occurrence', 'answeredBy', 'decline', 'detail', 'results'],
] as const;

class SqliteRequests implements RequestStore {
  readonly #db: DatabaseSync;

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  async insert(request: StoredRequest): Promise<StoredRequest> {
    const places = COLUMNS.map(() => '?').join(', ');
    return await immediate(
      this.#db,
      () => {
        const sql = `insert into request (${COLUMNS.join(', ')}) values (${places}) on conflict do nothing`;
        const values = COLUMNS.map((column) => request[column] as SQLInputValue);
        const { changes } = statement(this.#db, sql).run(...values);
        if (changes === 1) this.#addEvent(request.id, request.askedMs, request.state);
        return this.#find(request.id) as StoredRequest;
      },
      BUSY,
    );
  }

  async find(id: string): Promise<StoredRequest | undefined> {
    return await retryWhileBusy(() => this.#find(id), BUSY);
  }

  async count(state: RequestState): Promise<number> {
    const sql = `select count(*) as n from (select 1 from request where state = ? limit ${MAX_COUNT})`;
    const [row] = await retryWhileBusy(() => statement(this.#db, sql).all(state), BUSY);
    return Number(row?.n);
  }

  async search(beginning: string): Promise<readonly string[]> {
    const sql = 'select id from request where id >= ? and id < ? order by id limit 2';
    const read = () => statement(this.#db, sql).all(beginning, `${beginning}~`);
    return (await retryWhileBusy(read, BUSY)).map(({ id }) => String(id));
  }

  async change(
    id: string,
    only: Parameters<RequestStore['change']>[1],
    change: RequestChange,
    atMs: number,
  ): Promise<boolean> {
    return await immediate(
      this.#db,
      () => {
        const found = this.#find(id);
        if (found === undefined || !isAllowed(found, only)) return false;
        const { state, license, asked } = change;
        this.#set(id, change);
        const isNews = state !== found.state || license !== undefined || asked !== undefined;
        if (isNews) this.#addEvent(id, atMs, state);
        return true;
      },
      BUSY,
    );
  }

  async renew(
    id: string,
    only: Parameters<RequestStore['renew']>[1],
    { asked, expiresMs }: Pick<StoredRequest, 'asked' | 'expiresMs'>,
    atMs: number,
  ): Promise<boolean> {
    const cleared = {
      license: null,
      occurrence: null,
      answeredBy: null,
      decline: null,
      detail: null,
    };
    return await immediate(
      this.#db,
      () => {
        const found = this.#find(id);
        if (found === undefined || !isAllowed(found, only)) return false;
        const generation = found.generation + 1;
        this.#set(id, { state: 'pending', generation, asked, expiresMs, ...cleared });
        this.#addEvent(id, atMs, 'pending');
        return true;
      },
      BUSY,
    );
  }

  async list(query: StoredQuery): Promise<readonly StoredRequest[]> {
    const { state, by, adapter, askedBeforeMs, limit, after } = query;
    const terms: [string, SQLInputValue | undefined][] = [
      ['state = ?', state],
      ['by = ?', by],
      ['adapter = ?', adapter],
      ['askedMs < ?', askedBeforeMs],
      ['(askedMs, id) < (select askedMs, id from request where id = ?)', after],
    ];
    const given = terms.filter(([, value]) => value !== undefined);
    const where = given.length === 0 ? '' : `where ${given.map(([term]) => term).join(' and ')}`;
    const sql = `select * from request ${where} order by askedMs desc, id desc limit ?`;
    const values = [...given.map(([, value]) => value as SQLInputValue), limit];
    const rows = await retryWhileBusy(() => statement(this.#db, sql).all(...values), BUSY);
    return rows as unknown as StoredRequest[];
  }

  async events(afterSeq: number, limit: number): Promise<readonly RequestEvent[]> {
    const sql = `select e.seq, e.id, e.atMs, e.state, r.by, r.adapter, r.operation
      from event as e join request as r on r.id = e.id where e.seq > ? order by e.seq limit ?`;
    const rows = await retryWhileBusy(() => statement(this.#db, sql).all(afterSeq, limit), BUSY);
    return rows.map(({ atMs, operation, ...row }) => {
      const event = { ...row, at: new Date(Number(atMs)).toISOString() };
      return (operation === null ? event : { ...event, operation }) as unknown as RequestEvent;
    });
  }

  async delivered(receiver: string): Promise<number> {
    const sql = 'select seq from delivery where receiver = ?';
    const row = await retryWhileBusy(() => statement(this.#db, sql).get(receiver), BUSY);
    return Number(row?.seq ?? 0);
  }

  async logDelivery(delivery: Delivery): Promise<void> {
    const { receiver, seq, attempt, atMs, delivered, result } = delivery;
    const values = [receiver, seq, attempt, atMs, Number(delivered), result];
    const log = `insert into delivery_log (receiver, seq, attempt, atMs, delivered, result)
      values (?, ?, ?, ?, ?, ?)`;
    const confirm = `insert into delivery (receiver, seq) values (?, ?)
      on conflict (receiver) do update set seq = max(seq, excluded.seq)`;
    await immediate(
      this.#db,
      () => {
        statement(this.#db, log).run(...values);
        if (delivered) statement(this.#db, confirm).run(receiver, seq);
        statement(this.#db, 'delete from delivery_log where atMs < ?').run(atMs - LOG_KEPT_MS);
      },
      BUSY,
    );
  }

  async deliveries(after: number, limit: number): Promise<readonly LoggedDelivery[]> {
    const sql = 'select * from delivery_log where number > ? order by number limit ?';
    const rows = await retryWhileBusy(() => statement(this.#db, sql).all(after, limit), BUSY);
    return rows.map(readDelivery);
  }

  async lastDelivery(receiver: string): Promise<LoggedDelivery | undefined> {
    const sql = 'select * from delivery_log where receiver = ? order by number desc limit 1';
    const row = await retryWhileBusy(() => statement(this.#db, sql).get(receiver), BUSY);
    return row && readDelivery(row);
  }

  async addToken(token: StoredToken): Promise<void> {
    const { id, digest, kind, holder, scopes, createdMs, expiresMs } = token;
    const values = [id, digest, kind, holder, scopes.join(' '), createdMs, expiresMs];
    const sql = `insert into token (id, digest, kind, holder, scopes, createdMs, expiresMs)
      values (?, ?, ?, ?, ?, ?, ?)`;
    await immediate(this.#db, () => void statement(this.#db, sql).run(...values), BUSY);
  }

  async findToken(digest: string): Promise<StoredToken | undefined> {
    const sql = 'select * from token where digest = ?';
    const row = await retryWhileBusy(() => statement(this.#db, sql).get(digest), BUSY);
    return row && readToken(row);
  }

  async tokens(): Promise<readonly StoredToken[]> {
    const sql = `select * from token order by createdMs desc, id limit ${MAX_COUNT}`;
    const rows = await retryWhileBusy(() => statement(this.#db, sql).all(), BUSY);
    return rows.map(readToken);
  }

  async endToken(id: string, atMs: number): Promise<boolean> {
    const sql = 'update token set expiresMs = min(expiresMs, ?) where id = ?';
    const end = () => statement(this.#db, sql).run(atMs, id).changes;
    return (await immediate(this.#db, end, BUSY)) === 1;
  }

  async close(): Promise<void> {
    if (this.#db.isOpen) this.#db.close();
  }

  #find(id: string): StoredRequest | undefined {
    const row = statement(this.#db, 'select * from request where id = ?').get(id);
    return row as unknown as StoredRequest | undefined;
  }

  #set(id: string, fields: Partial<StoredRequest>): void {
    const names = Object.keys(fields) as (keyof StoredRequest)[];
    const sql = `update request set ${names.map((name) => `${name} = ?`).join(', ')} where id = ?`;
    statement(this.#db, sql).run(...names.map((name) => fields[name] as SQLInputValue), id);
  }

  #addEvent(id: string, atMs: number, state: string): void {
    const sql = 'insert into event (id, atMs, state) values (?, ?, ?)';
    statement(this.#db, sql).run(id, atMs, state);
  }
}

function readDelivery(row: Record<string, unknown>): LoggedDelivery {
  return { ...row, delivered: row.delivered === 1 } as unknown as LoggedDelivery;
}

function readToken(row: Record<string, unknown>): StoredToken {
  return { ...row, scopes: String(row.scopes).split(' ') } as unknown as StoredToken;
}

function isAllowed(
  { state, generation, license, asked }: StoredRequest,
  only: Parameters<RequestStore['change']>[1],
): boolean {
  if (only.asked !== undefined && only.asked !== asked) return false;
  if (only.unsigned === true && license !== null) return false;
  return only.from.includes(state) && only.generation === generation;
}
