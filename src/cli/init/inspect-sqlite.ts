import { existsSync } from 'node:fs';
import { basename, extname, resolve } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { affinityOf, type Catalog, readCatalog } from '../../adapters/sqlite/catalog.ts';
import { isControlName } from '../../adapters/sqlite/control.ts';
import { inspectRelation } from '../../adapters/sqlite/relation.ts';
import { openDatabase, quoteName } from '../../sqlite/connection.ts';
import { GuidedError } from '../guided-error.ts';
import { type FoundDatabase, type FoundTable, type FoundTrigger, namesWritten } from './found.ts';

/** Reads the schema of an SQLite file. The file is opened for reading only. */
export function inspectSqlite(file: string): FoundDatabase {
  if (!existsSync(file)) {
    throw new GuidedError(
      'ERR_EM_NOT_FOUND',
      `there is no database at ${resolve(file)}`,
      'give the path of an existing SQLite file, or the address of a PostgreSQL database (postgres://…); nothing was written',
    );
  }
  try {
    using db = openDatabase(file, { readOnly: true });
    return readSchema(db, file);
  } catch (cause) {
    const words = cause instanceof Error ? cause.message : String(cause);
    throw new GuidedError(
      'ERR_EM_ADAPTER_UNAVAILABLE',
      `${resolve(file)} cannot be read as an SQLite database: ${words}`,
      'check that it is a database file and that no other program has it locked; nothing was written',
      { cause },
    );
  }
}

function readSchema(db: DatabaseSync, file: string): FoundDatabase {
  const catalog = readCatalog(db);
  const own = [...catalog.relations.values()].filter(
    ({ name, kind }) =>
      ['table', 'virtual'].includes(kind) && !/^sqlite_/i.test(name) && !isControlName(name),
  );
  return {
    kind: 'sqlite',
    suggestedName: basename(file, extname(file)),
    tables: own
      .map(({ name }) => describeTable(db, catalog, name))
      .sort((a, b) => (a.name < b.name ? -1 : 1)),
    functions: [],
    views: [],
  };
}

const TYPES = {
  INTEGER: 'number | bigint',
  REAL: 'number',
  TEXT: 'string',
  BLOB: 'Uint8Array | string | number | bigint',
  NUMERIC: 'number | bigint | string',
} as const;

function describeTable(db: DatabaseSync, catalog: Catalog, name: string): FoundTable {
  const inspection = inspectRelation(catalog, name);
  const key = catalog.relations.get(name)?.key ?? [];
  const relation = catalog.relations.get(name);
  const columns = relation?.columns.map((column) => column.name) ?? [];
  const triggers = catalog.objects.filter(
    ({ type, table }) => type === 'trigger' && equalNames(table, name),
  );
  return {
    name,
    key,
    columns:
      relation?.columns.map((column) => ({
        name: column.name,
        type: TYPES[affinityOf(relation, column)],
        nullable: !column.notNull && !key.includes(column.name),
      })) ?? [],
    ...(inspection.kind === 'unusable' && { unusable: inspection.why }),
    volatile: columns
      .filter((column) => !key.includes(column))
      .flatMap((column) => {
        const by = triggers.find(({ sql }) => setsToNow(sql ?? '', name, column));
        return by === undefined ? [] : [{ column, by: by.name }];
      }),
    triggers: triggers.map(
      ({ name: trigger, sql }): FoundTrigger => ({ name: trigger, writes: writesOf(sql ?? '') }),
    ),
    cascadesFrom: readCascades(db, name),
  };
}

/** The event of a trigger (`update of … on t`) is no write; its body begins with BEGIN. */
function bodyOf(sql: string): string {
  return sql.slice(Math.max(0, sql.search(/\bbegin\b/i)));
}

function writesOf(sql: string): readonly string[] {
  return namesWritten(bodyOf(sql)).map((name) =>
    name.replace(/^"(.*)"$/s, '$1').replaceAll('""', '"'),
  );
}

/** Whether the body updates this table and gives the column the time of the moment. */
function setsToNow(sql: string, table: string, column: string): boolean {
  const body = bodyOf(sql);
  if (!writesOf(sql).some((name) => equalNames(name, table))) return false;
  const now = `(?:current_timestamp|current_time|current_date|unixepoch\\s*\\(|(?:datetime|date|time|julianday|strftime)\\s*\\([^)]*\\bnow\\b)`;
  return new RegExp(`"?\\b${RegExp.escape(column)}\\b"?\\s*=\\s*\\(?\\s*${now}`, 'i').test(body);
}

function readCascades(db: DatabaseSync, name: string): readonly string[] {
  const rows = db.prepare(`pragma foreign_key_list(${quoteName(name)})`).all();
  const acting = rows.filter((row) =>
    [row.on_delete, row.on_update].some((action) => !isPassive(String(action))),
  );
  return [...new Set(acting.map((row) => String(row.table)))];
}

function isPassive(action: string): boolean {
  return ['NO ACTION', 'RESTRICT', 'NONE'].includes(action.toUpperCase());
}

function equalNames(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}
