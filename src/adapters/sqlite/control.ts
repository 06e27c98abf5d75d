import { randomBytes } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { EffectMatchError } from '../../errors.ts';
import { immediate, retryWhileBusy, statement } from '../../sqlite/connection.ts';
import { markerTable } from '../../sqlite/marker-table.ts';
import type { SqliteCatalog } from './catalog.ts';

/** Names that start with this belong to EffectMatch: agent SQL neither reads nor writes them. */
const CONTROL_PREFIX = 'effectmatch_';
const MARKER_TABLE = 'effectmatch_marker';
const META_TABLE = 'effectmatch_meta';
export const PROBE_TABLE = 'effectmatch_probe';
const VERSION = '1';

/**
 * Occurrences are random. With the rows in a separate b-tree, a new marker goes behind the last
 * one and its occurrence into a small index; in one b-tree by occurrence it would go between any
 * two, and every third one would split a page, which a commit has to write.
 */
const TABLES: { readonly [name: string]: string } = {
  [MARKER_TABLE]:
    '(occurrence TEXT PRIMARY KEY NOT NULL, disposition TEXT NOT NULL, text TEXT NOT NULL, seal_key TEXT NOT NULL, seal_mac TEXT NOT NULL) strict',
  [META_TABLE]: '(name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) strict, without rowid',
  [PROBE_TABLE]: '(token TEXT PRIMARY KEY NOT NULL) strict, without rowid',
};

/** The markers. A live stage holds the file longer than a void marker waits. */
export const { findMarker, insertMarker, markersOf } = markerTable({
  table: MARKER_TABLE,
  voidDeadlineMs: 250,
});

/** Whether a table name is one of ours, in any spelling that SQLite takes for the same. */
export function isControlName(name: string): boolean {
  return foldName(name).startsWith(CONTROL_PREFIX);
}

/**
 * A name as SQLite compares names: upper and lower case of the ASCII letters are the same, all
 * others are not.
 */
export function foldName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/**
 * Creates the control tables where they are missing and returns the backend id: random, drawn once,
 * kept in the file. Safe when several processes start at once, because all of it happens in one
 * immediate transaction.
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
 * The backend id as a connection sees it; undefined where there is none, or where it was removed
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

/** The backend id in a file whose schema is known to be ours. */
export function readBackend(db: DatabaseSync): unknown {
  return statement(db, `select value from main.${META_TABLE} where name = 'backend'`).get()?.value;
}

/**
 * What is wrong with the control tables: another shape than ours, or anything attached to them. A
 * trigger on the marker table would run inside the promotion, with the fence lifted.
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
    // An index without a text comes from the definition of its table.
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
