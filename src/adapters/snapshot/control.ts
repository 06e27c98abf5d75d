import { hash, randomBytes } from 'node:crypto';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { unavailable } from '../../backend/setup.ts';
import type { MarkerText } from '../../contract/proof.ts';
import { EffectMatchError } from '../../errors.ts';
import {
  immediate,
  readPragma,
  retryWhileBusy,
  setPragma,
  statement,
} from '../../sqlite/connection.ts';
import { markerTable } from '../../sqlite/marker-table.ts';
import { refused } from './options.ts';

const MARKER_TABLE = 'effectmatch_marker';
export const PROBE_TABLE = 'effectmatch_probe';
const META_TABLE = 'effectmatch_meta';
const STATE_TABLE = 'effectmatch_state';
const VERSION = '1';

const TABLES: { readonly [name: string]: string } = {
  [MARKER_TABLE]:
    'occurrence TEXT PRIMARY KEY NOT NULL, disposition TEXT NOT NULL, text TEXT NOT NULL, seal_key TEXT NOT NULL, seal_mac TEXT NOT NULL',
  [META_TABLE]: 'name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL',
  [PROBE_TABLE]: 'token TEXT PRIMARY KEY NOT NULL',
  // One row, so that a promotion changes only one page as long as the text fits.
  [STATE_TABLE]:
    'one INTEGER PRIMARY KEY NOT NULL CHECK (one = 1), backend TEXT NOT NULL, version INTEGER NOT NULL, digest TEXT NOT NULL, text TEXT NOT NULL',
};

/**
 * The marker table next to the document. Promotions are short; a void marker does not wait for one
 * that hangs.
 */
export const { insertMarker, markersOf } = markerTable({
  table: MARKER_TABLE,
  voidDeadlineMs: 250,
});

/** Identifies a state that is or was durable. The digest is of its canonical text. */
export interface StateVersion {
  readonly version: number;
  readonly digest: string;
}

/** A state that is or may become durable. */
export interface StoredState extends StateVersion {
  readonly text: string;
}

/** The digest of a state's text, as lower-case hex. */
export function digestState(text: string): string {
  return hash('sha256', text, 'hex');
}

/**
 * Creates the tables and the first version in an empty file, and returns the backend id, which is
 * random and stored in the file. Several processes may start at once, because one immediate
 * transaction does all of it.
 */
export async function ensureState(
  db: DatabaseSync,
  initial: string | undefined,
  options: { readonly deadlineMs: number },
): Promise<string> {
  const found = await retryWhileBusy(() => readSchema(db), options);
  if (found.length === 0) {
    if (initial === undefined) throw refused('the file holds no state yet; give the initial one');
    await retryWhileBusy(
      () => setPragma(db, { name: 'journal_mode', value: 'wal', reads: 'wal' }),
      options,
    );
    await immediate(db, () => createState(db, initial), options);
  }
  const problem = await retryWhileBusy(() => findProblem(db), options);
  if (problem !== undefined)
    throw refused(`the file is not a snapshot store of this release: ${problem}`);
  return await retryWhileBusy(() => readMeta(db), options);
}

function createState(db: DatabaseSync, initial: string): void {
  if (readSchema(db).length > 0) return;
  for (const [name, columns] of Object.entries(TABLES))
    db.exec(`create table ${name} (${columns}) strict`);
  db.prepare(`insert into ${META_TABLE} (name, value) values ('version', ?)`).run(VERSION);
  const backend = randomBytes(16).toString('hex');
  db.prepare(
    `insert into ${STATE_TABLE} (one, backend, version, digest, text) values (1, ?, 1, ?, ?)`,
  ).run(backend, digestState(initial), initial);
}

function readSchema(db: DatabaseSync): ReturnType<StatementSync['all']> {
  const sql = "select type, name, sql from sqlite_schema where name not like 'sqlite_autoindex_%'";
  return statement(db, sql).all();
}

/** For each connection, the `data_version` at the last full check that found no problem. */
const lookedAt = new WeakMap<DatabaseSync, unknown>();

/**
 * Finds a problem in the file's schema: a table with a different shape, or anything that is not
 * ours. A trigger would run during the promotion and change data that was not compared. The schema
 * is read again after any other connection has committed, which `data_version` shows. This
 * connection runs only our statements, and none of them changes the schema.
 */
export function findProblem(db: DatabaseSync): string | undefined {
  // Read this first: a commit between the two reads then makes the next check a full one.
  const committed = readPragma(db, 'data_version');
  if (committed !== undefined && lookedAt.get(db) === committed) return undefined;
  const problem = checkSchema(readSchema(db));
  if (problem === undefined) lookedAt.set(db, committed);
  return problem;
}

function checkSchema(found: ReturnType<typeof readSchema>): string | undefined {
  for (const [name, columns] of Object.entries(TABLES)) {
    const table = found.find((object) => object.name === name);
    if (table?.sql !== `CREATE TABLE ${name} (${columns}) strict`)
      return `the table ${name} is not as created`;
  }
  const other = found.find(({ name }) => !Object.hasOwn(TABLES, String(name)));
  if (other === undefined) return undefined;
  return `${other.type} "${other.name}" does not belong there; keep other data in another file`;
}

function readMeta(db: DatabaseSync): string {
  const version = statement(db, `select value from main.${META_TABLE} where name = 'version'`).get()
    ?.value;
  if (version !== VERSION) {
    throw new EffectMatchError(
      'ERR_EM_STORE_NEWER',
      `the snapshot store has version ${String(version)}, this release knows ${VERSION}; use the newer release`,
    );
  }
  const backend = String(statement(db, `select backend from main.${STATE_TABLE}`).get()?.backend);
  if (!/^[0-9a-f]{32}$/.test(backend))
    throw refused('the backend id is not readable; restore the file');
  return backend;
}

/** What a candidate is made from. */
export interface StagedBase extends StoredState {
  readonly backend: string;
  /** The marker of the occurrence, if there is one. */
  readonly marker: Pick<MarkerText, 'disposition'> | undefined;
}

/** Reads the durable state in one statement, so that all of it is from one moment. */
export function readBase(db: DatabaseSync, occurrence: string): StagedBase {
  const [backend, disposition, ...stored] = readRow(
    db,
    `select backend, (select disposition from main.${MARKER_TABLE} where occurrence = ?),
       version, digest, text
     from main.${STATE_TABLE}`,
    occurrence,
  );
  const marker = disposition === null ? undefined : { disposition: dispositionOf(disposition) };
  return { ...storedState(stored), backend: String(backend), marker };
}

function dispositionOf(disposition: unknown): MarkerText['disposition'] {
  return disposition === 'committed' ? 'committed' : 'void';
}

/** Reads the durable state. Throws if the text does not match its digest. */
export function readStored(db: DatabaseSync): StoredState {
  return storedState(readRow(db, `select version, digest, text from main.${STATE_TABLE}`));
}

function storedState([version, digest, text]: readonly unknown[]): StoredState {
  if (typeof text === 'string' && digestState(text) === digest)
    return { version: Number(version), digest, text };
  throw unavailable(
    'the stored state is not the one its digest names; restore the file from a backup',
  );
}

/** Reads which state is durable, without its text. */
export function readVersion(db: DatabaseSync): StateVersion {
  const [version, digest] = readRow(db, `select version, digest from main.${STATE_TABLE}`);
  return { version: Number(version), digest: String(digest) };
}

/** Returns the only row as an array, which is faster than an object. */
function readRow(db: DatabaseSync, sql: string, ...values: readonly string[]): readonly unknown[] {
  const prepared = statement(db, sql);
  prepared.setReturnArrays(true);
  const row: unknown = prepared.get(...values);
  return Array.isArray(row) ? row : [];
}

/**
 * Makes the next state durable in the open transaction. Otherwise reports whether the state has
 * moved on from the base or the backend was replaced.
 */
export function advanceState(
  db: DatabaseSync,
  base: StateVersion & { readonly backend: string },
  next: StoredState,
): 'advanced' | 'moved' | 'replaced' {
  const { changes } = statement(
    db,
    `update main.${STATE_TABLE} set version = ?, digest = ?, text = ?
     where one = 1 and backend = ? and version = ? and digest = ?`,
  ).run(next.version, next.digest, next.text, base.backend, base.version, base.digest);
  if (Number(changes) === 1) return 'advanced';
  const found = statement(db, `select backend from main.${STATE_TABLE}`).get();
  return found?.backend === base.backend ? 'moved' : 'replaced';
}
