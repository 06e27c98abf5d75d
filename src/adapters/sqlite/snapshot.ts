import type { DatabaseSync } from 'node:sqlite';
import { invariant } from '../../errors.ts';
import { quoteName, readPragma, statement } from '../../sqlite/connection.ts';
import { readVersions, type SqliteCatalog, type SqliteRelation, VERSIONS } from './catalog.ts';

/**
 * Settings of the connection that would change what the held transaction means, and whether it has
 * temporary objects.
 */
const SETTINGS = [
  'foreign_keys',
  'defer_foreign_keys',
  'ignore_check_constraints',
  'recursive_triggers',
  'synchronous',
  'trusted_schema',
  'writable_schema',
  'temp.schema_version',
] as const;

/** The pragmas that are read of a held candidate, as SQLite names them to an authorizer. */
export const OBSERVED_PRAGMAS: ReadonlySet<string> = new Set([
  ...VERSIONS,
  ...SETTINGS.filter((name) => !name.includes('.')),
]);

/** Everything beside the rows that must stay as it is, at one moment of a candidate. */
export interface CandidateState {
  readonly versions: string;
  readonly settings: string;
  readonly sequence: RowidCounters;
  readonly totalChanges: bigint;
  /**
   * Moves on the trusted connection whenever any other connection commits: nothing may, while the
   * stage is held.
   */
  readonly baseVersion: unknown;
}

/**
 * Highest rowid ever used, by table with AUTOINCREMENT; text where something else than one number
 * is there.
 */
export type RowidCounters = ReadonlyMap<string, bigint | string>;

/** The two views of a held candidate: its own connection, and the committed state beneath it. */
export interface Connections {
  readonly candidate: DatabaseSync;
  readonly base: DatabaseSync;
}

/** `settings` are read unless the caller knows them. */
export function takeSnapshot(
  connections: Connections,
  catalog: SqliteCatalog,
  settings?: string,
): CandidateState {
  const { candidate } = connections;
  return {
    versions: readVersions(candidate),
    settings: settings ?? readSettings(candidate),
    sequence: readSequence(candidate, catalog),
    totalChanges: countChanges(candidate),
    baseVersion: readBaseVersion(connections),
  };
}

/**
 * Every row that a statement of this connection inserted, changed or removed counts, also where
 * another takes it back.
 */
export function countChanges(db: DatabaseSync): bigint {
  const total = statement(db, 'select total_changes() as total');
  total.setReadBigInts(true);
  const count = total.get()?.total;
  invariant(typeof count === 'bigint', 'SQLite counts changes');
  return count;
}

export function readBaseVersion({ base }: Connections): unknown {
  return readPragma(base, 'data_version');
}

/** The highest rowid in use, 0 in an empty table; undefined if no column shows the rowid. */
export function readHighestRowid(
  db: DatabaseSync,
  { name, rowidAlias }: SqliteRelation,
): bigint | undefined {
  if (rowidAlias === undefined) return undefined;
  const top = statement(
    db,
    `select max(${quoteName(rowidAlias)}) as highest from main.${quoteName(name)}`,
  );
  top.setReadBigInts(true);
  const highest = top.get()?.highest;
  return typeof highest === 'bigint' ? highest : 0n;
}

/** Milliseconds since the epoch on the clock that CURRENT_TIMESTAMP and its relatives read. */
export function readClock(db: DatabaseSync): number {
  const seconds = statement(db, "select unixepoch('now', 'subsec') as seconds").get()?.seconds;
  invariant(typeof seconds === 'number', 'SQLite tells the time');
  return Math.round(seconds * 1000);
}

/** The connection's settings as one text. */
export function readSettings(db: DatabaseSync): string {
  return SETTINGS.map((name) => `${name} ${String(readPragma(db, name))}`).join(', ');
}

function readSequence(db: DatabaseSync, catalog: SqliteCatalog): RowidCounters {
  if (!catalog.relations.has('sqlite_sequence')) return NONE;
  const rows = statement(db, 'select name, seq from sqlite_sequence');
  rows.setReadBigInts(true);
  const sequence = new Map<string, bigint | string>();
  for (const row of rows.all()) {
    const name = String(row.name);
    const known = sequence.get(name);
    const seq = typeof row.seq === 'bigint' ? row.seq : String(row.seq);
    // Two rows of one name: SQLite uses the first, and both are part of what must not change.
    sequence.set(name, known === undefined ? seq : `${known}, ${seq}`);
  }
  return sequence;
}

const NONE: RowidCounters = new Map();
