import { hash, randomBytes } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { EffectMatchError } from '../../errors.ts';
import {
  immediate,
  readPragma,
  retryWhileBusy,
  setPragma,
  statement,
} from '../../sqlite/connection.ts';
import { refused } from './declared.ts';

export const MARKER_TABLE = 'effectmatch_marker';
export const PROBE_TABLE = 'effectmatch_probe';
const META_TABLE = 'effectmatch_meta';
const STATE_TABLE = 'effectmatch_state';
const VERSION = '1';

const TABLES: { readonly [name: string]: string } = {
  [MARKER_TABLE]:
    'occurrence TEXT PRIMARY KEY NOT NULL, disposition TEXT NOT NULL, text TEXT NOT NULL, seal_key TEXT NOT NULL, seal_mac TEXT NOT NULL',
  [META_TABLE]: 'name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL',
  [PROBE_TABLE]: 'token TEXT PRIMARY KEY NOT NULL',
  // One row, so that a promotion changes one page of it as long as the text fits there.
  [STATE_TABLE]:
    'one INTEGER PRIMARY KEY NOT NULL CHECK (one = 1), backend TEXT NOT NULL, version INTEGER NOT NULL, digest TEXT NOT NULL, text TEXT NOT NULL',
};

/** A state that is or was durable. The digest is of its canonical text. */
export interface Version {
  readonly version: number;
  readonly digest: string;
}

/** The durable state with its text. */
export interface Current extends Version {
  readonly text: string;
}

/** Lower-case hex of a state's content. */
export function digestState(text: string): string {
  return hash('sha256', text, 'hex');
}

/**
 * Creates the tables and the first version in an empty file, and returns the backend id: random,
 * drawn once, kept in the file. Safe when several processes start at once, because all of it
 * happens in one immediate transaction.
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

interface SchemaObject {
  readonly type: string;
  readonly name: string;
  readonly sql: string;
}

function readSchema(db: DatabaseSync): readonly SchemaObject[] {
  const rows = statement(
    db,
    "select type, name, sql from sqlite_schema where name not like 'sqlite_autoindex_%'",
  ).all();
  return rows.map(({ type, name, sql }) => ({
    type: String(type),
    name: String(name),
    sql: String(sql),
  }));
}

/**
 * For each connection the `data_version` at its last complete look, where that found nothing wrong.
 */
const lookedAt = new WeakMap<DatabaseSync, unknown>();

/**
 * What is wrong with the file's schema: another shape than ours, or anything beside it. A trigger
 * would run inside the promotion and change what nobody compared. Everything is read again as soon
 * as any other connection has committed anything at all, which is what `data_version` tells; this
 * one runs our statements only, and none changes the schema.
 */
export function findProblem(db: DatabaseSync): string | undefined {
  // Asked before: what is committed between the two then makes the next look a complete one.
  const committed = readPragma(db, 'data_version');
  if (committed !== undefined && lookedAt.get(db) === committed) return undefined;
  const problem = checkSchema(db);
  if (problem === undefined) lookedAt.set(db, committed);
  return problem;
}

function checkSchema(db: DatabaseSync): string | undefined {
  const found = readSchema(db);
  for (const [name, columns] of Object.entries(TABLES)) {
    const expected = `CREATE TABLE ${name} (${columns}) strict`;
    if (found.find((object) => object.name === name)?.sql !== expected)
      return `the table ${name} is not as created`;
  }
  const stranger = found.find(({ name }) => !Object.hasOwn(TABLES, name));
  return (
    stranger &&
    `${stranger.type} "${stranger.name}" does not belong there; keep other data in another file`
  );
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

/** What a candidate is made from, and whether it can still be promoted. */
export interface Base extends Current {
  readonly backend: string;
  /** Whether there is a marker of the occurrence. */
  readonly isDecided: boolean;
}

/**
 * The durable state, in one statement and so of one moment. A text that is not what its digest says
 * is a fault.
 */
export function readBase(db: DatabaseSync, occurrence: string): Base {
  const [backend, decided, ...current] = readRow(
    db,
    `select backend, exists (select 1 from main.${MARKER_TABLE} where occurrence = ?), version, digest, text
     from main.${STATE_TABLE}`,
    occurrence,
  );
  return { ...currentOf(current), backend: String(backend), isDecided: decided === 1 };
}

/** The same without its circumstances. */
export function readCurrent(db: DatabaseSync): Current {
  return currentOf(readRow(db, `select version, digest, text from main.${STATE_TABLE}`));
}

function currentOf([version, digest, text]: readonly unknown[]): Current {
  if (typeof text !== 'string' || digestState(text) !== digest) {
    throw new EffectMatchError(
      'ERR_EM_ADAPTER_UNAVAILABLE',
      'the stored state is not the one its digest names; restore the file from a backup',
    );
  }
  return { version: Number(version), digest, text };
}

/**
 * Which state is durable. Its text is not read: whoever made something of it has had it, and
 * promotes on this.
 */
export function readVersion(db: DatabaseSync): Version {
  const [version, digest] = readRow(db, `select version, digest from main.${STATE_TABLE}`);
  return { version: Number(version), digest: String(digest) };
}

/** The only row as a list of its values: to name them would take longer than to read them. */
function readRow(db: DatabaseSync, sql: string, ...values: readonly string[]): readonly unknown[] {
  const prepared = statement(db, sql);
  prepared.setReturnArrays(true);
  const row: unknown = prepared.get(...values);
  return Array.isArray(row) ? row : [];
}

/**
 * Makes the next state the durable one inside the open transaction, or says what is durable instead
 * of the base.
 */
export function advanceState(
  db: DatabaseSync,
  base: Version & { readonly backend: string },
  next: Current,
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
