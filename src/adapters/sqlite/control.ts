import { randomBytes } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { EffectMatchError } from '../../errors.ts';
import { immediate, retryWhileBusy, statement } from '../../sqlite/connection.ts';
import { markerTable } from '../../sqlite/marker-table.ts';
import type { SqliteCatalog } from './catalog.ts';

/** The prefix of EffectMatch's own names. Agent SQL can neither read nor write them. */
const CONTROL_PREFIX = 'effectmatch_';
const MARKER_TABLE = 'effectmatch_marker';
const META_TABLE = 'effectmatch_meta';
export const PROBE_TABLE = 'effectmatch_probe';
const VERSION = '1';

/**
 * Occurrences are random. In a rowid table, a new marker is appended and only its occurrence goes
 * into a small index. In one b-tree by occurrence, markers would be inserted anywhere, and every
 * third one would split a page that the commit must write.
 */
const TABLES: { readonly [name: string]: string } = {
  [MARKER_TABLE]:
    '(occurrence TEXT PRIMARY KEY NOT NULL, disposition TEXT NOT NULL, text TEXT NOT NULL, seal_key TEXT NOT NULL, seal_mac TEXT NOT NULL) strict',
  [META_TABLE]: '(name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) strict, without rowid',
  [PROBE_TABLE]: '(token TEXT PRIMARY KEY NOT NULL) strict, without rowid',
};

/** The markers. A void marker waits less time than a live stage holds the file. */
export const { findMarker, insertMarker, markersOf } = markerTable({
  table: MARKER_TABLE,
  voidDeadlineMs: 250,
});

/** Whether SQLite would treat a name as one of ours. */
export function isControlName(name: string): boolean {
  return foldName(name).startsWith(CONTROL_PREFIX);
}

/** Folds a name the way SQLite compares names: only ASCII letters are case-insensitive. */
export function foldName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/**
 * Creates missing control tables and returns the backend id, which is random and stored in the
 * file. Several processes may start at once, because one immediate transaction does all of it.
 */
export async function ensureControlTables(
  db: DatabaseSync,
  options: { readonly deadlineMs: number },
): Promise<string> {
  const found = await retryWhileBusy(() => readMeta(db), options);
  if (found !== undefined) return found;
  await immediate(
    db,
    () => {
      for (const [name, shape] of Object.entries(TABLES))
        db.exec(`create table if not exists ${name} ${shape}`);
      const insert = db.prepare(
        `insert into ${META_TABLE} (name, value) values (?, ?) on conflict do nothing`,
      );
      insert.run('version', VERSION);
      insert.run('backend', randomBytes(16).toString('hex'));
    },
    options,
  );
  const created = await retryWhileBusy(() => readMeta(db), options);
  if (created === undefined) throw damaged('they were created and cannot be read');
  return created;
}

/**
 * Reads the backend id. It is undefined if the file has none, for example because it was removed
 * from a copy.
 */
export function readMeta(db: DatabaseSync): string | undefined {
  const tables = db
    .prepare('select count(*) as n from sqlite_schema where type = ? and name in (?, ?, ?)')
    .get('table', MARKER_TABLE, META_TABLE, PROBE_TABLE);
  if (tables?.n !== 3) return undefined;
  const rows = db.prepare(`select name, value from ${META_TABLE}`).all();
  const meta = Object.fromEntries(rows.map((row) => [String(row.name), String(row.value)]));
  if (meta.version !== undefined && meta.version !== VERSION) {
    throw new EffectMatchError(
      'ERR_EM_STORE_NEWER',
      `the control tables have version ${meta.version}, this release knows ${VERSION}; use the newer release`,
    );
  }
  const { backend } = meta;
  if (backend !== undefined && !/^[0-9a-f]{32}$/.test(backend))
    throw damaged('the backend id is not readable');
  return backend;
}

/** Reads the backend id from a file that is known to have our schema. */
export function readBackend(db: DatabaseSync): unknown {
  return statement(db, `select value from main.${META_TABLE} where name = 'backend'`).get()?.value;
}

/**
 * Reports control tables that have a different shape or have something attached. A trigger on the
 * marker table would run during promotion, while the fence is down.
 */
export function controlProblems(catalog: SqliteCatalog): readonly string[] {
  const problems = Object.entries(TABLES).flatMap(([name, shape]) => {
    const object = catalog.objects.find(
      (candidate) => candidate.type === 'table' && candidate.name === name,
    );
    return object?.sql === `CREATE TABLE ${name} ${shape}`
      ? []
      : [`the table ${name} is not as this release creates it`];
  });
  for (const { type, name, table, sql } of catalog.objects) {
    // An index without SQL text comes from its table's definition.
    const ours =
      (type === 'table' && Object.hasOwn(TABLES, name)) || (type === 'index' && sql === null);
    if (!ours && (isControlName(name) || isControlName(table)))
      problems.push(`${type} "${name}" is in the control area`);
  }
  return problems;
}

function damaged(what: string): EffectMatchError {
  return new EffectMatchError(
    'ERR_EM_ADAPTER_REFUSED',
    `the control tables ${CONTROL_PREFIX}* are damaged: ${what}; restore the file from a backup`,
  );
}
