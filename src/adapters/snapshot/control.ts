import { hash, randomBytes } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { EffectMatchError } from '../../errors.ts';
import { immediate, retryWhileBusy, setPragma, statement } from '../../sqlite/connection.ts';
import { refused } from './declared.ts';

export const MARKER_TABLE = 'effectmatch_marker';
export const PROBE_TABLE = 'effectmatch_probe';
const META_TABLE = 'effectmatch_meta';
const POINTER_TABLE = 'effectmatch_pointer';
const STATE_TABLE = 'effectmatch_state';
const VERSION = '1';

const TABLES: { readonly [name: string]: string } = {
  [MARKER_TABLE]:
    'occurrence TEXT PRIMARY KEY NOT NULL, disposition TEXT NOT NULL, text TEXT NOT NULL, seal_key TEXT NOT NULL, seal_mac TEXT NOT NULL',
  [META_TABLE]: 'name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL',
  [POINTER_TABLE]: 'one INTEGER PRIMARY KEY NOT NULL CHECK (one = 1), version INTEGER NOT NULL, digest TEXT NOT NULL',
  [PROBE_TABLE]: 'token TEXT PRIMARY KEY NOT NULL',
  [STATE_TABLE]: 'version INTEGER PRIMARY KEY NOT NULL, text TEXT NOT NULL',
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
 * Creates the tables and the first version in an empty file, and returns the backend id: random, drawn once, kept in
 * the file. Safe when several processes start at once, because all of it happens in one immediate transaction.
 */
export async function ensureState(
  db: DatabaseSync,
  initial: string | undefined,
  options: { readonly deadlineMs: number },
): Promise<string> {
  const found = await retryWhileBusy(() => readSchema(db), options);
  if (found.length === 0) {
    if (initial === undefined) throw refused('the file holds no state yet; give the initial one');
    await retryWhileBusy(() => setPragma(db, { name: 'journal_mode', value: 'wal', reads: 'wal' }), options);
    await immediate(db, () => createState(db, initial), options);
  }
  const problem = await retryWhileBusy(() => findProblem(db), options);
  if (problem !== undefined) throw refused(`the file is not a snapshot store of this release: ${problem}`);
  return await retryWhileBusy(() => readMeta(db), options);
}

function createState(db: DatabaseSync, initial: string): void {
  if (readSchema(db).length > 0) return;
  for (const [name, columns] of Object.entries(TABLES)) db.exec(`create table ${name} (${columns}) strict`);
  const meta = db.prepare(`insert into ${META_TABLE} (name, value) values (?, ?)`);
  meta.run('version', VERSION);
  meta.run('backend', randomBytes(16).toString('hex'));
  db.prepare(`insert into ${STATE_TABLE} (version, text) values (1, ?)`).run(initial);
  db.prepare(`insert into ${POINTER_TABLE} (one, version, digest) values (1, 1, ?)`).run(digestState(initial));
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
  return rows.map(({ type, name, sql }) => ({ type: String(type), name: String(name), sql: String(sql) }));
}

/**
 * What is wrong with the file's schema: another shape than ours, or anything beside it. A trigger would run inside the
 * promotion and change what nobody compared.
 */
export function findProblem(db: DatabaseSync): string | undefined {
  const found = readSchema(db);
  for (const [name, columns] of Object.entries(TABLES)) {
    const expected = `CREATE TABLE ${name} (${columns}) strict`;
    if (found.find((object) => object.name === name)?.sql !== expected) return `the table ${name} is not as created`;
  }
  const stranger = found.find(({ name }) => !Object.hasOwn(TABLES, name));
  return stranger && `${stranger.type} "${stranger.name}" does not belong there; keep other data in another file`;
}

function readMeta(db: DatabaseSync): string {
  const rows = statement(db, `select name, value from main.${META_TABLE}`).all();
  const meta = Object.fromEntries(rows.map((row) => [String(row.name), String(row.value)]));
  if (meta.version !== VERSION) {
    throw new EffectMatchError(
      'ERR_EM_STORE_NEWER',
      `the snapshot store has version ${meta.version}, this release knows ${VERSION}; use the newer release`,
    );
  }
  if (!/^[0-9a-f]{32}$/.test(meta.backend ?? '')) throw refused('the backend id is not readable; restore the file');
  return meta.backend ?? '';
}

/** The backend id in a file whose schema is known to be ours. */
export function readBackend(db: DatabaseSync): unknown {
  return statement(db, `select value from main.${META_TABLE} where name = 'backend'`).get()?.value;
}

/** The durable state, in one statement and so of one moment. A text that is not what the pointer says is a fault. */
export function readCurrent(db: DatabaseSync): Current {
  const row = statement(
    db,
    `select p.version, p.digest, s.text from main.${POINTER_TABLE} p left join main.${STATE_TABLE} s using (version)`,
  ).get();
  const version = Number(row?.version);
  const digest = String(row?.digest);
  if (typeof row?.text !== 'string' || digestState(row.text) !== digest) {
    throw new EffectMatchError(
      'ERR_EM_ADAPTER_UNAVAILABLE',
      'the stored state is not the one its pointer names; restore the file from a backup',
    );
  }
  return { version, digest, text: row.text };
}

/** Makes the next state the durable one inside the open transaction; false when the base no longer is. */
export function advanceState(db: DatabaseSync, base: Version, next: Current): boolean {
  const moved = db
    .prepare(`update main.${POINTER_TABLE} set version = ?, digest = ? where one = 1 and version = ? and digest = ?`)
    .run(next.version, next.digest, base.version, base.digest);
  if (Number(moved.changes) !== 1) return false;
  db.prepare(`insert into main.${STATE_TABLE} (version, text) values (?, ?)`).run(next.version, next.text);
  // Whoever still works on an old version has its own copy and cannot promote it any more.
  db.prepare(`delete from main.${STATE_TABLE} where version <> ?`).run(next.version);
  return true;
}
