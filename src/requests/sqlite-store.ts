import type { DatabaseSync } from 'node:sqlite';
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
import { type RequestDatabase, SqlRequests, type SqlStatement } from './sql-store.ts';
import type { RequestStore } from './store.ts';

const APPLICATION_ID = 0x454d5251;
const VERSION = 2;
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
    return new SqlRequests(new SqliteDatabase(db));
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

/** SQLite writes one transaction at a time, and names tables and columns as the statements do. */
class SqliteDatabase implements RequestDatabase {
  readonly #db: DatabaseSync;

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  async read(_fields: readonly string[], statement: SqlStatement) {
    return await retryWhileBusy(() => this.#run(statement), BUSY);
  }

  async write(statements: readonly SqlStatement[]): Promise<number> {
    const run = () => statements.map((one) => this.#run(one).length);
    return (await immediate(this.#db, run, BUSY)).at(-1) ?? 0;
  }

  async close(): Promise<void> {
    if (this.#db.isOpen) this.#db.close();
  }

  #run({ sql, values }: SqlStatement) {
    const bound = values.map((value) => (typeof value === 'boolean' ? Number(value) : value));
    return statement(this.#db, sql.replace(/[{}]/g, '')).all(...bound);
  }
}
