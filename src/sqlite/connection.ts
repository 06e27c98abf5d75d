import { closeSync, openSync } from 'node:fs';
import { resolve } from 'node:path';
import type { StatementSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { EffectMatchError, type ErrorCode, invariant, messageOf } from '../errors.ts';
import { DatabaseSync } from './engine.ts';

/** Primary result codes that callers check. They are the low byte of an extended code. */
export const SQLITE = {
  BUSY: 5,
  LOCKED: 6,
  READONLY: 8,
  IOERR: 10,
  FULL: 13,
  CANTOPEN: 14,
  CONSTRAINT: 19,
  AUTH: 23,
  NOTADB: 26,
} as const;

/** Every connection refuses larger values, so that one statement cannot exhaust the process. */
export const MAX_VALUE_BYTES = 256 * 1024 * 1024;

/**
 * Opens a file without the features that hostile SQL could use: no extensions, defensive mode, no
 * schema functions with side effects, no double-quoted strings and no ATTACH. It never waits inside
 * SQLite, which would block the event loop. Settings are read back, because SQLite ignores unknown
 * pragmas.
 */
export function openDatabase(
  file: string,
  options: { readonly readOnly?: boolean } = {},
): DatabaseSync {
  demandPlainPath(file);
  const db = new DatabaseSync(resolve(file), {
    readOnly: options.readOnly ?? false,
    timeout: 0,
    allowExtension: false,
    defensive: true,
    enableForeignKeyConstraints: true,
    enableDoubleQuotedStringLiterals: false,
    limits: { attach: 0, length: MAX_VALUE_BYTES },
  });
  try {
    setPragma(db, { name: 'trusted_schema', value: 'off', reads: 0 });
    setPragma(db, { name: 'cell_size_check', value: 'on', reads: 1 });
    invariant(
      readPragma(db, 'foreign_keys') === 1,
      'foreign keys are enforced on every connection',
    );
  } catch (error) {
    db.close();
    throw error;
  }
  return db;
}

/**
 * Creates a missing database file that only its owner can access. SQLite gives its log and index
 * the same mode. It never opens an existing file, because closing any handle of a file releases the
 * locks that SQLite holds on it in the same process.
 */
export function createPrivateFile(file: string): void {
  demandPlainPath(file);
  try {
    closeSync(openSync(resolve(file), 'wx', 0o600));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  }
}

function demandPlainPath(file: string): void {
  if (file !== '' && !file.startsWith(':') && !/^file:/i.test(file) && !file.includes('\0')) return;
  throw new EffectMatchError(
    'ERR_EM_CONFIG_INVALID',
    `"${file}" is not a plain file path; give the path of a database file, not a URI or an in-memory database`,
  );
}

/**
 * Makes sure that COMMIT returns only after it is flushed to disk. A rollback journal needs EXTRA:
 * with FULL, the directory entry of the deleted journal may survive a power cut and roll back the
 * commit. Returns the journal mode.
 */
export function pinDurability(db: DatabaseSync): string {
  const mode = readPragma(db, 'journal_mode');
  const wanted = mode === 'wal' ? FULL : EXTRA;
  // Setting a pragma makes SQLite recompile every statement of the connection, so a pinned one is
  // only checked.
  if (pinned.get(db) === mode && readPragma(db, 'synchronous') === wanted.reads)
    return String(mode);
  setPragma(db, wanted);
  if (process.platform === 'darwin') {
    // A plain fsync does not reach the disk on macOS. Other systems ignore these pragmas.
    setPragma(db, { name: 'fullfsync', value: 'on', reads: 1 });
    setPragma(db, { name: 'checkpoint_fullfsync', value: 'on', reads: 1 });
  }
  pinned.set(db, mode);
  return String(mode);
}

/** The journal mode for which a connection's durability is pinned. */
const pinned = new WeakMap<DatabaseSync, unknown>();
const FULL = { name: 'synchronous', value: 'full', reads: 2 } as const;
const EXTRA = { name: 'synchronous', value: 'extra', reads: 3 } as const;

/** Sets a pragma and checks that it reads back as `reads`. */
export function setPragma(
  db: DatabaseSync,
  pragma: { readonly name: string; readonly value: string; readonly reads: number | string },
): void {
  db.exec(`pragma ${pragma.name} = ${pragma.value}`);
  const found = readPragma(db, pragma.name);
  invariant(
    found === pragma.reads,
    `pragma ${pragma.name} is ${pragma.value} (it reads back as ${found})`,
  );
}

const statements = new WeakMap<DatabaseSync, Map<string, StatementSync>>();

/**
 * Compiles one of our statements and keeps it as long as its connection, because compiling costs
 * more than running.
 */
export function statement(db: DatabaseSync, sql: string): StatementSync {
  let known = statements.get(db);
  if (known === undefined) {
    known = new Map();
    statements.set(db, known);
  }
  let prepared = known.get(sql);
  if (prepared === undefined) {
    prepared = db.prepare(sql);
    known.set(sql, prepared);
  }
  return prepared;
}

/** Reads a pragma that returns one value. SQLite recompiles it after any pragma was set. */
export function readPragma(db: DatabaseSync, name: string): unknown {
  const prepared = statement(db, `pragma ${name}`);
  prepared.setReturnArrays(true);
  const row: unknown = prepared.get();
  return Array.isArray(row) ? row[0] : undefined;
}

/**
 * Runs `body` between BEGIN IMMEDIATE and COMMIT and returns its result after the commit. `body` is
 * synchronous and must be repeatable: if the file is busy at any point, including COMMIT,
 * everything is rolled back and retried for up to `deadlineMs` milliseconds, without blocking the
 * event loop. After that it throws `ERR_EM_STORE_BUSY`. An error of `body` is rethrown after the
 * rollback. If COMMIT fails for any reason other than busy or a constraint, it throws
 * `ERR_EM_STORE_UNAVAILABLE`: the change may or may not be durable.
 */
export function immediate<T>(
  db: DatabaseSync,
  body: () => T,
  options: { readonly deadlineMs: number },
): Promise<T> {
  return retryWhileBusy(() => runImmediate(db, body), options);
}

/**
 * Like {@link immediate}, but without the flush, on a connection with a write-ahead log. Other
 * processes see the commit. The next flushed commit of any process makes it durable too, because
 * the log is flushed as a whole and read from its start.
 */
export function immediateUnflushed<T>(
  db: DatabaseSync,
  body: () => T,
  options: { readonly deadlineMs: number },
): Promise<T> {
  return retryWhileBusy(() => {
    db.exec('pragma synchronous = normal');
    try {
      return runImmediate(db, body);
    } finally {
      flushAgain(db);
    }
  }, options);
}

/** Closes a connection that cannot flush again, because nothing unflushed may count as flushed. */
function flushAgain(db: DatabaseSync): void {
  try {
    setPragma(db, FULL);
  } catch (error) {
    if (db.isOpen) db.close();
    throw asFault(
      error,
      'ERR_EM_STORE_UNAVAILABLE',
      'the connection no longer flushes and was closed',
    );
  }
}

/** Runs reads in one transaction: they see one moment, and the file is locked once. */
export function reading<T>(db: DatabaseSync, look: () => T): T {
  statement(db, 'begin').run();
  try {
    return look();
  } finally {
    if (db.isTransaction) statement(db, 'rollback').run();
  }
}

function runImmediate<T>(db: DatabaseSync, body: () => T): T {
  statement(db, 'begin immediate').run();
  try {
    const result = body();
    commit(db);
    return result;
  } catch (error) {
    if (db.isTransaction) db.exec('rollback');
    throw error;
  }
}

function commit(db: DatabaseSync): void {
  try {
    statement(db, 'commit').run();
  } catch (error) {
    if (db.isTransaction && (isBusy(error) || primaryCode(error) === SQLITE.CONSTRAINT))
      throw error;
    throw asFault(
      error,
      'ERR_EM_STORE_UNAVAILABLE',
      'COMMIT failed; whether it became durable is not known',
    );
  }
  invariant(!db.isTransaction, 'a COMMIT that returned has ended the transaction');
}

/**
 * Calls `attempt` until it does not fail with SQLITE_BUSY, for up to `deadlineMs` milliseconds,
 * with growing jittered pauses. After that it throws `ERR_EM_STORE_BUSY`. It waits here and not
 * inside SQLite, so that the event loop keeps running.
 */
export async function retryWhileBusy<T>(
  attempt: () => T,
  options: { readonly deadlineMs: number },
): Promise<T> {
  let until: number | undefined;
  for (let tries = 0; ; tries += 1) {
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error)) throw error;
      const now = performance.now();
      until ??= now + options.deadlineMs;
      const left = until - now;
      if (left <= 0) {
        throw asFault(
          error,
          'ERR_EM_STORE_BUSY',
          `locked by another writer for ${options.deadlineMs} ms`,
        );
      }
      const longest = Math.min(25, 2 ** Math.min(tries, 5));
      await sleep(Math.min(left, longest * (0.5 + Math.random() / 2)));
    }
  }
}

/** The primary result code of a SQLite error; undefined for other errors. */
export function primaryCode(error: unknown): number | undefined {
  const code = extendedCode(error);
  return code === undefined ? undefined : code & 0xff;
}

/** The extended result code of a SQLite error; undefined for other errors. */
export function extendedCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error)) return undefined;
  return typeof error.errcode === 'number' ? error.errcode : undefined;
}

/** Another connection is in the way. Nothing happened, and retrying is safe. */
export function isBusy(error: unknown): boolean {
  const code = primaryCode(error);
  return code === SQLITE.BUSY || code === SQLITE.LOCKED;
}

/** Wraps an error in one of our codes. Keeps SQLite's message and the cause. */
export function asFault<C extends ErrorCode>(
  error: unknown,
  code: C,
  what: string,
): EffectMatchError<C> {
  const words = messageOf(error);
  return new EffectMatchError(code, `${what}: ${words}`, { cause: error });
}

/** Whether a separate connection sees a row with this token. */
export function hasToken(file: string, table: string, token: string): boolean {
  using independent = openDatabase(file, { readOnly: true });
  const sql = `select 1 from main.${table} where token = ?`;
  return independent.prepare(sql).get(token) !== undefined;
}

/** Quotes an identifier. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
