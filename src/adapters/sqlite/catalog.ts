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
  readonly affinity: ColumnAffinity;
  /**
   * Whether it can store both 0.0 and -0.0. Only columns without affinity can: REAL drops the sign,
   * INTEGER and NUMERIC convert to an integer, and TEXT converts to text.
   */
  readonly keepsSignedZero: boolean;
  readonly notNull: boolean;
  /** The text of the DEFAULT clause; null if there is none. */
  readonly defaultText: string | null;
}

export type ColumnAffinity = 'INTEGER' | 'TEXT' | 'BLOB' | 'REAL' | 'NUMERIC';

/** A relation as the catalogue describes it. */
export interface SqliteRelation {
  readonly name: string;
  /** The name that manifests and records use. */
  readonly target: string;
  readonly kind: string;
  readonly strict: boolean;
  readonly withoutRowid: boolean;
  /**
   * Stored columns in schema order. Generated columns are excluded: they follow from the others.
   */
  readonly columns: readonly SqliteColumn[];
  readonly computed: readonly string[];
  /** Key columns in key order. */
  readonly key: readonly string[];
  /** The column that is an alias of the rowid (INTEGER PRIMARY KEY). SQLite assigns its values. */
  readonly rowidAlias: string | undefined;
  readonly foreignKeys: readonly ForeignKeyColumn[];
}

/** The schema of the main database as one connection read it. */
export interface SqliteCatalog {
  /** Everything that was read, as one text. Equal texts mean an unchanged schema. */
  readonly text: string;
  readonly objects: readonly SchemaObject[];
  readonly settings: Readonly<Record<string, unknown>>;
  /** What {@link readVersions} read. */
  readonly versions: string;
  /** Relations by exact name. */
  readonly relations: ReadonlyMap<string, SqliteRelation>;
}

/** Pragmas of the file that affect the meaning of its content or the durability of a commit. */
const FILE_SETTINGS = [
  'schema_version',
  'user_version',
  'application_id',
  'journal_mode',
  'encoding',
  'auto_vacuum',
] as const;

/**
 * What is compared at every step of a candidate: counters in the file header that change with the
 * schema or with the application's own header values, and the journal mode, which determines when a
 * commit is durable.
 */
export const VERSIONS = [
  'schema_version',
  'user_version',
  'application_id',
  'journal_mode',
] as const;

/** Reads the versions as one text. */
export function readVersions(db: DatabaseSync): string {
  return describeVersions((name) => readPragma(db, name));
}

function describeVersions(read: (name: string) => unknown): string {
  return VERSIONS.map((name) => `${name} ${String(read(name))}`).join(', ');
}

/**
 * Returns the current schema, and reads its rows only if a version changed. This misses rows of
 * `sqlite_schema` that were edited without changing `schema_version`. Open connections miss them
 * too, because SQLite keeps its parsed schema until that counter changes. Agent SQL therefore runs
 * on the schema that its own connection has parsed. {@link readCatalog} reads that schema on that
 * connection, under the write lock, before its first use.
 */
export function refreshCatalog(db: DatabaseSync, known: SqliteCatalog): SqliteCatalog {
  return readVersions(db) === known.versions ? known : readCatalog(db, known);
}

const SCHEMA_ROWS = 'select type, name, tbl_name, rootpage, sql from sqlite_schema order by rowid';

/**
 * Reads the schema with one scan of `sqlite_schema` and six pragmas. Returns `known` if the text is
 * the same, and describes the relations again only if it is not.
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
  const versions = describeVersions((name) => settings[name]);
  return { text, objects, settings, versions, relations: describeRelations(db) };
}

function describeRelations(db: DatabaseSync): ReadonlyMap<string, SqliteRelation> {
  const rows = db
    .prepare("select name, type, wr, strict from pragma_table_list where schema = 'main'")
    .all();
  const relations = new Map(
    rows.map((row) => {
      const name = String(row.name);
      const kind = String(row.type);
      const strict = row.strict === 1;
      const columns =
        kind === 'table'
          ? describeColumns(db, name, strict)
          : { columns: [], computed: [], key: [] };
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
          strict,
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

/** SQLite keeps referenced names as they were written, in any case. */
function describeForeignKeys(
  db: DatabaseSync,
  target: string,
  relations: readonly Pick<SqliteRelation, 'name' | 'columns' | 'key'>[],
): readonly ForeignKeyColumn[] {
  const rows = db.prepare(`pragma foreign_key_list(${quoteName(target)})`).all();
  return rows.map(({ table, from, to, seq }) => {
    const parent = relations.find(({ name }) => isSameName(name, String(table)));
    // A foreign key without columns refers to the primary key.
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
  strict: boolean,
): Pick<SqliteRelation, 'columns' | 'computed' | 'key'> {
  const rows = db.prepare(`pragma table_xinfo(${quoteName(name)})`).all();
  const stored = rows.filter((row) => row.hidden === 0);
  return {
    columns: stored.map((row) => ({
      name: String(row.name),
      ...describeType(String(row.type), strict),
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

/** If the primary key of a rowid table has no index, it is the rowid itself. */
function hasKeyIndex(db: DatabaseSync, name: string): boolean {
  return keyIndex(db, name) !== undefined;
}

/** The index that enforces the primary key; undefined if the key is the rowid. */
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

function describeType(
  type: string,
  strict: boolean,
): Pick<SqliteColumn, 'type' | 'affinity' | 'keepsSignedZero'> {
  const affinity = strict && /^any$/i.test(type) ? 'BLOB' : affinityOf(type);
  const keepsSignedZero = affinity === 'BLOB' && !(strict && /^blob$/i.test(type));
  return { type, affinity, keepsSignedZero };
}

/** The affinity that SQLite derives from the words in a declared type (datatype3, section 3.1). */
function affinityOf(type: string): ColumnAffinity {
  if (/int/i.test(type)) return 'INTEGER';
  if (/char|clob|text/i.test(type)) return 'TEXT';
  if (type === '' || /blob/i.test(type)) return 'BLOB';
  return /real|floa|doub/i.test(type) ? 'REAL' : 'NUMERIC';
}
