import { statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { WallClock } from '../../contract/clock.ts';
import { EffectMatchError } from '../../errors.ts';
import {
  asFault,
  createPrivateFile,
  immediate,
  openDatabase,
  pinDurability,
  primaryCode,
  reading,
  readPragma,
  retryWhileBusy,
} from '../../sqlite/connection.ts';
import { DatabaseSync } from '../../sqlite/engine.ts';
import { pendingMigrations } from '../migrate.ts';
import { APPLICATION_ID, MIGRATIONS } from './schema.ts';

/** How long an operation waits for other writers, and the clock for leases. */
interface Timing {
  readonly deadlineMs: number;
  readonly clock: WallClock;
}

/** An open ledger file. */
export interface LedgerFile extends Timing {
  readonly file: string;
  /** COMMIT returns once the commit is flushed, unless a transaction opts out. */
  readonly db: DatabaseSync;
}

/**
 * Opens the file as a ledger store, and creates or migrates it if needed. Many processes may do so
 * at once. A file that belongs to another program or a newer release is refused before anything in
 * it changes. One connection does all the work: if two took turns writing, each commit would make
 * SQLite drop the other's page cache.
 */
export async function openStore(path: string, timing: Timing): Promise<LedgerFile> {
  const file = resolve(path);
  createFile(file);
  let db: DatabaseSync | undefined;
  try {
    const opened = openDatabase(file);
    db = opened;
    await retryWhileBusy(() => refuseForeign(opened, file), timing);
    await retryWhileBusy(() => useWriteAheadLog(opened, file), timing);
    await immediate(opened, () => migrate(opened, file), timing);
    await retryWhileBusy(() => checkSchema(opened, file), timing);
    return { ...timing, file, db: opened };
  } catch (error) {
    db?.close();
    throw unusable(error, file);
  }
}

/**
 * Turns SQLite's errors about the file into a fault that says what to do. Other errors are returned
 * unchanged.
 */
export function unusable(error: unknown, file: string): unknown {
  if (primaryCode(error) === undefined) return error;
  const what =
    `the ledger ${file} cannot be used; check that it is an undamaged SQLite file on a disk with free space and that ` +
    'this user may write to it and its folder, or restore it from a backup';
  return asFault(error, 'ERR_EM_STORE_UNAVAILABLE', what);
}

/** The schema objects as SQL text, without SQLite's internal ones. */
function schemaOf(db: DatabaseSync): readonly string[] {
  const rows = db
    .prepare(
      "select sql from sqlite_schema where name not like 'sqlite\\_%' escape '\\' order by sql",
    )
    .all();
  return rows.map(({ sql }) => String(sql));
}

/**
 * Describes the first unexpected or missing schema object; undefined if the schema is as the
 * migrations leave it.
 */
export function schemaDifference(db: DatabaseSync): string | undefined {
  const found = new Set(schemaOf(db));
  const wanted = new Set(expectedSchema());
  const extra = found.difference(wanted).values().next().value;
  if (extra !== undefined)
    return `it contains something that no release created: ${firstLine(extra)}`;
  const missing = wanted.difference(found).values().next().value;
  return missing === undefined ? undefined : `something is missing from it: ${firstLine(missing)}`;
}

function firstLine(sql: string): string {
  return sql.split('\n')[0] ?? sql;
}

function expectedSchema(): readonly string[] {
  const db = new DatabaseSync(':memory:');
  try {
    for (const { sql } of MIGRATIONS) db.exec(sql);
    return schemaOf(db);
  } finally {
    db.close();
  }
}

/** Creates the file if it is missing, or says what is wrong with the path. */
function createFile(file: string): void {
  if (!statSync(dirname(file), { throwIfNoEntry: false })?.isDirectory()) {
    throw unavailable(file, `its folder ${dirname(file)} does not exist; create the folder first`);
  }
  const found = statSync(file, { throwIfNoEntry: false });
  if (found?.isFile()) return;
  if (found !== undefined)
    throw unavailable(file, 'it is not a regular file; give the path of a file');
  try {
    createPrivateFile(file);
  } catch (error) {
    throw asFault(
      error,
      'ERR_EM_STORE_UNAVAILABLE',
      `the ledger ${file} cannot be created; check the folder's rights`,
    );
  }
}

/**
 * Reads in one transaction, so that a store being created by another process is never seen
 * half-made.
 */
function refuseForeign(db: DatabaseSync, file: string): void {
  reading(db, () => pendingMigrations(MIGRATIONS, ownVersion(db, file), file));
}

function ownVersion(db: DatabaseSync, file: string): number {
  const application = readPragma(db, 'application_id');
  const version = Number(readPragma(db, 'user_version'));
  const objects = Number(
    db.prepare('select count(*) as objects from sqlite_schema').get()?.objects,
  );
  if (application === APPLICATION_ID && version > 0) return version;
  if (application === 0 && version === 0 && objects === 0) return 0;
  throw unavailable(file, 'it belongs to another program; give the ledger a separate file');
}

function useWriteAheadLog(db: DatabaseSync, file: string): void {
  const mode = db.prepare('pragma journal_mode = wal').get()?.journal_mode;
  if (mode !== 'wal') {
    throw unavailable(
      file,
      `SQLite cannot keep a write-ahead log there (${mode}); use a local disk`,
    );
  }
  pinDurability(db);
}

/**
 * Runs inside one immediate transaction: if many processes open the file, one migrates and the
 * others find it done.
 */
function migrate(db: DatabaseSync, file: string): void {
  for (const { version, sql } of pendingMigrations(MIGRATIONS, ownVersion(db, file), file)) {
    db.exec(sql);
    db.exec(`pragma application_id = ${APPLICATION_ID}; pragma user_version = ${version}`);
  }
}

function checkSchema(db: DatabaseSync, file: string): void {
  const difference = schemaDifference(db);
  if (difference !== undefined)
    throw unavailable(file, `${difference}; restore the file from a backup`);
}

function unavailable(file: string, why: string): EffectMatchError<'ERR_EM_STORE_UNAVAILABLE'> {
  return new EffectMatchError(
    'ERR_EM_STORE_UNAVAILABLE',
    `the ledger ${file} cannot be used: ${why}`,
  );
}
