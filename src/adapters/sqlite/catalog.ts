import type { DatabaseSync } from 'node:sqlite';
import type { ForeignKeyColumn } from '../../backend/foreign-keys.ts';
import { quoteName, readPragma, statement } from '../../sqlite/connection.ts';

/** One row of `sqlite_schema`. */
export interface SchemaObject {
  readonly type: string;
  readonly name: string;
  readonly table: string;
  readonly sql: string | null;
}

export interface SqliteColumn {
  readonly name: string;
  readonly type: string;
  readonly notNull: boolean;
  /** The text of its DEFAULT clause, null where it has none. */
  readonly defaultText: string | null;
}

/** What the catalogue says about one relation. */
export interface SqliteRelation {
  readonly name: string;
  /** The same name, as manifests and records have it. */
  readonly target: string;
  readonly kind: string;
  readonly strict: boolean;
  readonly withoutRowid: boolean;
  /**
   * Stored columns in schema order. Generated ones are not among them: they follow from the others.
   */
  readonly columns: readonly SqliteColumn[];
  readonly computed: readonly string[];
  /** Key columns in key order. */
  readonly key: readonly string[];
  /**
   * The column that stands for the rowid (INTEGER PRIMARY KEY): SQLite assigns its values.
   */
  readonly rowidAlias: string | undefined;
  readonly foreignKeys: readonly ForeignKeyColumn[];
}

/** The schema of the main database as one connection saw it. */
export interface SqliteCatalog {
  /** Everything that was read, as one text: equal texts mean an unchanged schema. */
  readonly text: string;
  readonly objects: readonly SchemaObject[];
  readonly settings: Readonly<Record<string, unknown>>;
  /** Relations by exact name. */
  readonly relations: ReadonlyMap<string, SqliteRelation>;
}

/** Pragmas that belong to the file and change what its content means or how durable a commit is. */
const FILE_SETTINGS = [
  'schema_version',
  'user_version',
  'application_id',
  'journal_mode',
  'encoding',
  'auto_vacuum',
] as const;

/**
 * What is compared at every step of a candidate: counters in the file's header that move with every
 * change of the schema or of what the application keeps there, and the journal mode, which decides
 * what makes a commit durable.
 */
export const VERSIONS = [
  'schema_version',
  'user_version',
  'application_id',
  'journal_mode',
] as const;

/** The versions as one text. */
export function readVersions(db: DatabaseSync): string {
  return VERSIONS.map((name) => `${name} ${String(readPragma(db, name))}`).join(', ');
}

/** The versions that a catalogue was read with. */
export function versionsOf(catalog: SqliteCatalog): string {
  return VERSIONS.map((name) => `${name} ${String(catalog.settings[name])}`).join(', ');
}

/**
 * The schema as it is now, read row by row only where a version moved. Rows of `sqlite_schema` that
 * someone edits without moving `schema_version` are not read here, and by no open connection
 * either: SQLite keeps the schema it has parsed until that counter moves. What agent SQL runs on is
 * therefore what the connection it runs on has parsed, and {@link readCatalog} is called on that
 * connection, under the write lock, before its first use.
 */
export function refreshCatalog(db: DatabaseSync, known: SqliteCatalog): SqliteCatalog {
  return readVersions(db) === versionsOf(known) ? known : readCatalog(db, known);
}

const SCHEMA_ROWS = 'select type, name, tbl_name, rootpage, sql from sqlite_schema order by rowid';

/**
 * Reads the schema fresh: one scan of `sqlite_schema` and six pragmas. The relations are described
 * again only when that text is not `known`'s, and `known` itself is returned when it is.
 */
export function readCatalog(db: DatabaseSync, known?: SqliteCatalog): SqliteCatalog {
  const settings = Object.fromEntries(FILE_SETTINGS.map((name) => [name, readPragma(db, name)]));
  const rows = statement(db, SCHEMA_ROWS).all();
  const text = JSON.stringify([settings, rows]);
  if (known?.text === text) return known;
  const objects = rows.map((row) => ({
    type: String(row.type),
    name: String(row.name),
    table: String(row.tbl_name),
    sql: row.sql === null ? null : String(row.sql),
  }));
  return { text, objects, settings, relations: describeRelations(db) };
}

function describeRelations(db: DatabaseSync): ReadonlyMap<string, SqliteRelation> {
  const rows = db
    .prepare("select name, type, wr, strict from pragma_table_list where schema = 'main'")
    .all();
  const relations = new Map(
    rows.map((row) => {
      const name = String(row.name);
      const kind = String(row.type);
      const columns =
        kind === 'table' ? describeColumns(db, name) : { columns: [], computed: [], key: [] };
      const withoutRowid = row.wr === 1;
      const rowidAlias =
        withoutRowid || columns.key.length !== 1 || hasKeyIndex(db, name)
          ? undefined
          : columns.key[0];
      return [
        name,
        {
          name,
          target: name,
          kind,
          strict: row.strict === 1,
          withoutRowid,
          ...columns,
          rowidAlias,
        },
      ];
    }),
  );
  return new Map(
    [...relations].map(([name, relation]) => {
      const foreignKeys =
        relation.kind === 'table' ? describeForeignKeys(db, name, [...relations.values()]) : [];
      return [name, { ...relation, foreignKeys }];
    }),
  );
}

/** SQLite keeps the names of what is referred to as they were written, in any case. */
function describeForeignKeys(
  db: DatabaseSync,
  target: string,
  relations: readonly Pick<SqliteRelation, 'name' | 'columns' | 'key'>[],
): readonly ForeignKeyColumn[] {
  const rows = db.prepare(`pragma foreign_key_list(${quoteName(target)})`).all();
  return rows.map(({ table, from, to, seq }) => {
    const parent = relations.find(({ name }) => isSameName(name, String(table)));
    // Without columns it refers to the primary key.
    const referred =
      to === null
        ? parent?.key[Number(seq)]
        : parent?.columns.find(({ name }) => isSameName(name, String(to)))?.name;
    const refersTo =
      parent === undefined || referred === undefined
        ? undefined
        : { target: parent.name, column: referred };
    return { target, column: String(from), refersTo };
  });
}

function isSameName(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}

function describeColumns(
  db: DatabaseSync,
  name: string,
): Pick<SqliteRelation, 'columns' | 'computed' | 'key'> {
  const rows = db.prepare(`pragma table_xinfo(${quoteName(name)})`).all();
  const stored = rows.filter((row) => row.hidden === 0);
  return {
    columns: stored.map((row) => ({
      name: String(row.name),
      type: String(row.type),
      notNull: row.notnull === 1,
      defaultText: row.dflt_value === null ? null : String(row.dflt_value),
    })),
    computed: rows.filter((row) => row.hidden !== 0).map((row) => String(row.name)),
    key: stored
      .filter((row) => Number(row.pk) > 0)
      .sort((a, b) => Number(a.pk) - Number(b.pk))
      .map((row) => String(row.name)),
  };
}

/** A primary key of a rowid table that needs no separate index is the rowid itself. */
function hasKeyIndex(db: DatabaseSync, name: string): boolean {
  return keyIndex(db, name) !== undefined;
}

/** The index that enforces the primary key, undefined where the rowid does. */
export function keyIndex(db: DatabaseSync, table: string): string | undefined {
  const rows = db.prepare(`pragma index_list(${quoteName(table)})`).all();
  const row = rows.find((candidate) => candidate.origin === 'pk');
  return row === undefined ? undefined : String(row.name);
}

/** The collation of each key column of an index, in order. */
export function indexCollations(db: DatabaseSync, index: string): readonly string[] {
  const rows = db.prepare(`pragma index_xinfo(${quoteName(index)})`).all();
  return rows.filter((row) => row.key === 1).map((row) => String(row.coll));
}

/**
 * How SQLite decides what a column makes of a value, by the words in its declared type (datatype3,
 * section 3.1).
 */
export function affinityOf(
  { strict }: SqliteRelation,
  { type }: SqliteColumn,
): 'INTEGER' | 'TEXT' | 'BLOB' | 'REAL' | 'NUMERIC' {
  if (strict && /^any$/i.test(type)) return 'BLOB';
  if (/int/i.test(type)) return 'INTEGER';
  if (/char|clob|text/i.test(type)) return 'TEXT';
  if (type === '' || /blob/i.test(type)) return 'BLOB';
  return /real|floa|doub/i.test(type) ? 'REAL' : 'NUMERIC';
}

/**
 * Whether a column can hold a REAL zero with either sign. Only columns without affinity keep it:
 * REAL drops the sign, INTEGER and NUMERIC make it an integer, TEXT makes it text.
 */
export function keepsSignedZero(relation: SqliteRelation, column: SqliteColumn): boolean {
  return (
    affinityOf(relation, column) === 'BLOB' && !(relation.strict && /^blob$/i.test(column.type))
  );
}
