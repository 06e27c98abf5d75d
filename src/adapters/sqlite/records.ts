import type { DatabaseSync } from 'node:sqlite';
import type { RelationShape } from '../../backend/manifest-schema.ts';
import { invariant } from '../../errors.ts';
import type { ChangeRecord } from '../../protocol/effect.ts';
import type { Row, Value } from '../../protocol/value.ts';
import { quoteName } from '../../sqlite/connection.ts';
import type { Affinity } from './affinity.ts';
import type { SqliteRelation } from './catalog.ts';
import type { SessionChange, TableChanges } from './changeset.ts';
import type { Written } from './fence.ts';
import { readRow } from './reading.ts';
import type { Connections } from './snapshot.ts';
import { decodeCell, selectExact } from './value.ts';

/** The records of a changeset, or why they are unclear. */
export type NamedRecords =
  | { readonly kind: 'records'; readonly records: readonly ChangeRecord[] }
  | { readonly kind: 'unclear'; readonly why: string };

/**
 * Names the columns of a decoded changeset. The result is `unclear` if the changeset does not fit
 * the schema, or if one key appears in two spellings. The session finds the current row by SQL
 * equality (`'A' = 'a'` under NOCASE, 1 = 1.0), so a respelled key looks like an update of the key,
 * or like the same row twice.
 */
export function nameRecords(
  tables: readonly TableChanges[],
  relations: ReadonlyMap<string, RelationShape>,
): NamedRecords {
  const records: ChangeRecord[] = [];
  for (const table of tables) {
    const relation = relations.get(table.table);
    if (relation === undefined)
      return { kind: 'unclear', why: `the changeset names the table "${table.table}"` };
    if (!fits(table, relation)) {
      return {
        kind: 'unclear',
        why: `the changeset has other columns than the table "${table.table}"`,
      };
    }
    const keys = new Set<string>();
    for (const change of table.changes) {
      const record = nameRecord(table, relation, change);
      const key = JSON.stringify(record.key);
      if (keys.has(key) || changesKey(table, change)) {
        return {
          kind: 'unclear',
          why: `a key of "${table.table}" was respelled; delete the row and insert another`,
        };
      }
      keys.add(key);
      records.push(record);
    }
  }
  return { kind: 'records', records };
}

function fits({ keyPlaces }: TableChanges, { columns, key }: RelationShape): boolean {
  if (keyPlaces.length !== columns.length) return false;
  return columns.every(({ name }, index) => key.indexOf(name) + 1 === keyPlaces[index]);
}

function changesKey(table: TableChanges, change: SessionChange): boolean {
  return (
    change.op === 'update' &&
    table.keyPlaces.some((place, index) => place > 0 && change.after[index] !== undefined)
  );
}

/** Key columns are in `key` only; the images have the other columns that were stated. */
function nameRecord(
  { keyPlaces }: TableChanges,
  { target, columns }: RelationShape,
  { op, before, after }: SessionChange,
): ChangeRecord {
  const key: Cells = {};
  const was: Cells = {};
  const is: Cells = {};
  for (let index = 0; index < columns.length; index += 1) {
    const name = columns[index]?.name as string;
    const old = before[index];
    const now = after[index];
    const isKey = keyPlaces[index] !== 0;
    if (isKey) key[name] = (op === 'insert' ? now : old) as Value;
    if (!isKey && old !== undefined) was[name] = old;
    if (!isKey && now !== undefined) is[name] = now;
  }
  return {
    op,
    target,
    key,
    before: op === 'insert' ? null : was,
    after: op === 'delete' ? null : is,
  };
}

type Cells = { [column: string]: Value };

/**
 * Builds the changes of a relation from the rows themselves. The session only says which keys were
 * touched. The record compares the committed row of each key with the candidate's.
 */
export function restateChanges(
  connections: Connections,
  relation: SqliteRelation,
  affinity: Affinity,
  table: TableChanges,
): readonly ChangeRecord[] {
  const keys = new Map<string, Row>();
  for (const change of table.changes) {
    for (const stated of touchedKeys(relation, table, change)) {
      const key = storedKey(affinity, relation, stated);
      keys.set(JSON.stringify(relation.key.map((name) => key[name])), key);
    }
  }
  const columns = relation.columns
    .map((column) => column.name)
    .filter((name) => !relation.key.includes(name));
  return [...keys.values()].flatMap((key) => {
    const before = readRow(connections.base, relation, { key, columns });
    const after = readRow(connections.candidate, relation, { key, columns });
    const record = compareRows(before, after);
    return record === undefined ? [] : [{ ...record, target: relation.name, key }];
  });
}

/** Converts a key of the changeset to what its columns store. */
function storedKey(affinity: Affinity, relation: SqliteRelation, stated: Row): Row {
  const entries = relation.columns.flatMap((column): [string, Value][] => {
    const value = stated[column.name];
    if (value === undefined) return [];
    const cast = affinity.cast(relation, column, value);
    invariant(cast.kind === 'stored', 'a key that was stored can be stored');
    return [[column.name, cast.value]];
  });
  return Object.fromEntries(entries);
}

/** The keys before and after a change. */
function touchedKeys(
  relation: SqliteRelation,
  table: TableChanges,
  change: SessionChange,
): readonly Row[] {
  const keyOf = (image: (index: number) => Value | undefined): Row[] => {
    const key: { [column: string]: Value } = {};
    for (const [index, column] of relation.columns.entries()) {
      const value = table.keyPlaces[index] === 0 ? undefined : image(index);
      if (value !== undefined) key[column.name] = value;
    }
    return Object.keys(key).length === relation.key.length ? [key] : [];
  };
  return [
    ...keyOf((index) => change.before[index]),
    ...keyOf(
      (index) => change.after[index] ?? (change.op === 'update' ? change.before[index] : undefined),
    ),
  ];
}

function compareRows(
  before: Row | null,
  after: Row | null,
): Pick<ChangeRecord, 'op' | 'before' | 'after'> | undefined {
  if (before === null) return after === null ? undefined : { op: 'insert', before, after };
  if (after === null) return { op: 'delete', before, after };
  const changed = Object.keys(before).filter(
    (name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]),
  );
  if (changed.length === 0) return undefined;
  const pick = (row: Row): Row =>
    Object.fromEntries(changed.map((name) => [name, row[name] ?? null]));
  return { op: 'update', before: pick(before), after: pick(after) };
}

/** Facts about the writes that limit where a hidden change can be. */
interface WriteFacts {
  readonly written: Written;
  readonly records: readonly ChangeRecord[];
  /** The number of rows written in all tables, including repeated and trigger writes. */
  readonly gross: number;
}

/**
 * Returns the first key whose zero changed its sign. A session compares REAL values as numbers, so
 * it does not record a change from 0.0 to -0.0. This is the only stored change it misses, and only
 * columns without affinity can hold both values. They are compared with the committed state, which
 * cannot change while the candidate holds the write lock.
 */
export function findTurnedZero(
  connections: Connections,
  relation: SqliteRelation,
  facts: WriteFacts,
): Row | undefined {
  const columns = relation.columns
    .filter((column) => column.keepsSignedZero)
    .map((column) => column.name);
  if (columns.length === 0) return undefined;
  const { written, records } = facts;
  if (!written.inserted && !columns.some((name) => written.updated.has(name))) return undefined;
  if (!mayHideRows(facts)) {
    const updated = records.filter(
      (record) => record.target === relation.name && record.op === 'update',
    );
    return updated
      .map((record) => record.key ?? {})
      .find((key) => turnsZero(connections, relation, { key, columns }));
  }
  return findTurnedRow(connections, relation, columns);
}

/**
 * Each inserted or updated row in a session took at least one counted write. If there were no other
 * writes, no other row can have been written. After deletes this is uncertain, because REPLACE
 * deletes rows without counting them.
 */
function mayHideRows({ records, gross }: WriteFacts): boolean {
  return records.some((record) => record.op === 'delete') || records.length !== gross;
}

function turnsZero(
  connections: Connections,
  relation: SqliteRelation,
  wanted: { readonly key: Row; readonly columns: readonly string[] },
): boolean {
  const before = readRow(connections.base, relation, wanted);
  const after = readRow(connections.candidate, relation, wanted);
  // If an updated row no longer has exactly its key, a zero in the key changed its sign.
  if (before === null || after === null) return true;
  return wanted.columns.some((name) => differ(before[name], after[name]));
}

function findTurnedRow(
  connections: Connections,
  relation: SqliteRelation,
  columns: readonly string[],
): Row | undefined {
  const before = rowsWithZero(connections.base, relation, columns);
  for (const [id, row] of rowsWithZero(connections.candidate, relation, columns)) {
    const old = before.get(id);
    if (old !== undefined && columns.some((name) => differ(old[name], row[name]))) return row;
  }
  return undefined;
}

/** Rows with a REAL zero in one of the columns, by key; in a key, -0.0 counts as 0.0. */
function rowsWithZero(
  db: DatabaseSync,
  relation: SqliteRelation,
  columns: readonly string[],
): Map<string, Row> {
  const names = [...relation.key, ...columns];
  const isZero = columns.map(
    (name) => `(typeof(${quoteName(name)}) = 'real' and ${quoteName(name)} = 0.0)`,
  );
  const statement = db.prepare(
    `select ${names.map((name) => selectExact(quoteName(name))).join(', ')} from main.${quoteName(relation.name)}` +
      ` where ${isZero.join(' or ')}`,
  );
  statement.setReadBigInts(true);
  statement.setReturnArrays(true);
  const rows = new Map<string, Row>();
  for (const cells of statement.iterate() as Iterable<unknown>) {
    if (!Array.isArray(cells)) continue;
    const row = Object.fromEntries(
      names.map((name, at) => [name, decodeCell(cells[2 * at], cells[2 * at + 1])]),
    );
    const key = relation.key.map((name) =>
      isNegativeZero(row[name]) ? { $real: '0.0' } : row[name],
    );
    rows.set(JSON.stringify(key), row);
  }
  return rows;
}

/** Whether one value is 0.0 and the other -0.0. */
function differ(a: Value | undefined, b: Value | undefined): boolean {
  return isRealZero(a) && isRealZero(b) && isNegativeZero(a) !== isNegativeZero(b);
}

function isRealZero(value: Value | undefined): boolean {
  return isNegativeZero(value) || JSON.stringify(value) === '{"$real":"0.0"}';
}

function isNegativeZero(value: Value | undefined): boolean {
  return JSON.stringify(value) === '{"$real":"-0.0"}';
}
