import { existsSync } from 'node:fs';
import { basename, extname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { readCatalog, type SqliteCatalog } from '../../adapters/sqlite/catalog.ts';
import { isControlName } from '../../adapters/sqlite/control.ts';
import { inspectRelation } from '../../adapters/sqlite/relation.ts';
import { messageOf } from '../../errors.ts';
import { openDatabase, quoteName } from '../../sqlite/connection.ts';
import { GuidedError } from '../fault.ts';
import { columnsSetToNow, type DatabaseSchema, namesWritten, type TableSchema } from './schema.ts';

/** Reads the schema of an SQLite file, opened read-only. */
export function inspectSqlite(file: string): DatabaseSchema {
  if (!existsSync(file)) {
    const next =
      'give the path of an existing SQLite file, or the address of a PostgreSQL or MariaDB database (postgres://…, mysql://…); nothing was written';
    throw new GuidedError('ERR_EM_NOT_FOUND', `no database at ${file}`, next);
  }
  try {
    using db = openDatabase(file, { readOnly: true });
    return readSchema(db, file);
  } catch (cause) {
    const message = `${file} cannot be read as an SQLite database: ${messageOf(cause)}`;
    const next =
      'check that it is a database file and that no other program has it locked; nothing was written';
    throw new GuidedError('ERR_EM_ADAPTER_UNAVAILABLE', message, next, cause);
  }
}

function readSchema(db: DatabaseSync, file: string): DatabaseSchema {
  const catalog = readCatalog(db);
  const tables = [...catalog.relations.values()]
    .filter(({ kind }) => kind === 'table' || kind === 'virtual')
    .filter(({ name }) => !/^sqlite_/i.test(name) && !isControlName(name))
    .map(({ name }) => describeTable(db, catalog, name))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const suggestedName = basename(file, extname(file));
  return { kind: 'sqlite', suggestedName, tables, functions: [], views: [], roleSuffix: '' };
}

const TYPES = {
  INTEGER: 'number | bigint',
  REAL: 'number',
  TEXT: 'string',
  BLOB: 'Uint8Array | string | number | bigint',
  NUMERIC: 'number | bigint | string',
} as const;

function describeTable(db: DatabaseSync, catalog: SqliteCatalog, name: string): TableSchema {
  const inspection = inspectRelation(catalog, name);
  const relation = catalog.relations.get(name);
  const key = relation?.key ?? [];
  const columns = (relation?.columns ?? []).map((column) => ({
    name: column.name,
    type: TYPES[column.affinity],
    nullable: !column.notNull && !key.includes(column.name),
  }));
  const triggers = catalog.objects
    .filter(({ type, table }) => type === 'trigger' && equalNames(table, name))
    .map((trigger) => ({ name: trigger.name, body: bodyOf(trigger.sql ?? '') }));
  const others = columns.map((column) => column.name).filter((column) => !key.includes(column));
  return {
    name,
    key,
    columns,
    ...(inspection.kind === 'unusable' && { unusable: inspection.why }),
    volatile: columnsSetToNow(others, triggers, ({ body }, column) =>
      setsToNow(body, name, column),
    ),
    triggers: triggers.map((trigger) => ({ name: trigger.name, writes: writesOf(trigger.body) })),
    cascadesFrom: readCascades(db, name),
  };
}

/** Drops the event (`update of … on t`), which writes nothing. The body starts with BEGIN. */
function bodyOf(sql: string): string {
  return sql.slice(Math.max(0, sql.search(/\bbegin\b/i)));
}

function writesOf(body: string): readonly string[] {
  return namesWritten(body).map((name) => name.replace(/^"(.*)"$/s, '$1').replaceAll('""', '"'));
}

const NOW = `(?:current_timestamp|current_time|current_date|unixepoch\\s*\\(|(?:datetime|date|time|julianday|strftime)\\s*\\([^)]*\\bnow\\b)`;

/** Whether the body updates this table and sets the column to the current time. */
function setsToNow(body: string, table: string, column: string): boolean {
  if (!writesOf(body).some((name) => equalNames(name, table))) return false;
  const assignment = `"?\\b${RegExp.escape(column)}\\b"?\\s*=\\s*\\(?\\s*${NOW}`;
  return new RegExp(assignment, 'i').test(body);
}

const PASSIVE = ['NO ACTION', 'RESTRICT', 'NONE'];

function readCascades(db: DatabaseSync, name: string): readonly string[] {
  const rows = db.prepare(`pragma foreign_key_list(${quoteName(name)})`).all();
  const acting = rows.filter(({ on_delete, on_update }) =>
    [on_delete, on_update].some((action) => !PASSIVE.includes(String(action).toUpperCase())),
  );
  return [...new Set(acting.map(({ table }) => String(table)))];
}

function equalNames(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}
