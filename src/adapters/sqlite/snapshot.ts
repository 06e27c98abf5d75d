import type { DatabaseSync } from 'node:sqlite';
import { invariant } from '../../errors.ts';
import { quoteName, readPragma, statement } from '../../sqlite/connection.ts';
import { readVersions, type SqliteCatalog, type SqliteRelation, VERSIONS } from './catalog.ts';

/**
 * Connection settings that would change the meaning of the held transaction. `temp.schema_version`
 * shows whether there are temporary objects.
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

/** Pragmas that are read on a held candidate, by the names that the authorizer sees. */
export const OBSERVED_PRAGMAS: ReadonlySet<string> = new Set([
  ...VERSIONS,
  ...SETTINGS.filter((name) => !name.includes('.')),
]);

/**
 * Everything, apart from rows, that must not change while a candidate is held, as read at one
 * moment.
 */
export interface CandidateState {
  readonly versions: string;
  readonly settings: string;
  readonly sequence: RowidCounters;
  readonly totalChanges: number;
  /** Changes when another connection commits. None may while the stage is held. */
  readonly baseVersion: unknown;
}

/**
 * The highest rowid ever used, by AUTOINCREMENT table. It is text if `sqlite_sequence` does not
 * have exactly one number for the table.
 */
export type RowidCounters = ReadonlyMap<string, bigint | string>;

/** The two views of a held candidate: its own connection, and the committed state. */
export interface Connections {
  readonly candidate: DatabaseSync;
  readonly base: DatabaseSync;
}

/** Reads the state of a candidate. The caller can pass `settings` that it already knows. */
export function takeSnapshot(
  connections: Connections,
  catalog: SqliteCatalog,
  settings?: string,
): CandidateState {
  const { candidate, base } = connections;
  return {
    versions: readVersions(candidate),
    settings: settings ?? readSettings(candidate),
    sequence: readSequence(candidate, catalog),
    totalChanges: countChanges(candidate),
    baseVersion: readPragma(base, 'data_version'),
  };
}

/**
 * The number of rows that this connection has inserted, updated or deleted, including changes that
 * were undone later.
 */
export function countChanges(db: DatabaseSync): number {
  const count = statement(db, 'select total_changes() as total').get()?.total;
  invariant(typeof count === 'number', 'SQLite counts changes');
  return count;
}

/** The highest rowid in use, or 0 in an empty table; undefined if no column shows the rowid. */
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
    // There can be two rows with one name. SQLite uses the first, but neither may change.
    sequence.set(name, known === undefined ? seq : `${known}, ${seq}`);
  }
  return sequence;
}

const NONE: RowidCounters = new Map();
