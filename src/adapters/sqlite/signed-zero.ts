import type { DatabaseSync } from 'node:sqlite';
import type { ChangeRecord } from '../../protocol/effect.ts';
import type { Row, Value } from '../../protocol/value.ts';
import { quoteName } from '../../sqlite/connection.ts';
import { keepsSignedZero, type Relation } from './catalog.ts';
import type { Written } from './fence.ts';
import { readRow } from './reading.ts';
import { decodeCell, selectExact } from './value.ts';

/** What was written, as far as it limits where a hidden change can be. */
export interface WriteFacts {
  readonly written: Written;
  readonly records: readonly ChangeRecord[];
  /** Rows written in all tables, repeated writes and those of triggers counted. */
  readonly gross: bigint;
}

/**
 * A session compares REAL values as numbers, so a change from 0.0 to -0.0 is the one change of a
 * stored value that it does not record. Only columns without affinity can hold both. This compares
 * them with the committed state, which cannot move while the candidate holds the write lock, and
 * returns the first key whose zero changed its sign.
 */
export function findTurnedZero(
  connections: { readonly candidate: DatabaseSync; readonly base: DatabaseSync },
  relation: Relation,
  facts: WriteFacts,
): Row | undefined {
  const columns = signedColumns(relation);
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
 * The columns that keep a zero's sign; worked out once per relation, because it follows from the
 * definition.
 */
function signedColumns(relation: Relation): readonly string[] {
  const known =
    signed.get(relation) ??
    relation.columns
      .filter((column) => keepsSignedZero(relation, column))
      .map((column) => column.name);
  signed.set(relation, known);
  return known;
}

const signed = new WeakMap<Relation, readonly string[]>();

/**
 * Every row that a session reports as inserted or updated took at least one counted write of its
 * own. Where these are all the writes there were, no other row can have been written. Removed rows
 * leave room for doubt, because REPLACE removes rows without counting them.
 */
function mayHideRows({ records, gross }: WriteFacts): boolean {
  return records.some((record) => record.op === 'delete') || BigInt(records.length) !== gross;
}

function turnsZero(
  connections: { readonly candidate: DatabaseSync; readonly base: DatabaseSync },
  relation: Relation,
  wanted: { readonly key: Row; readonly columns: readonly string[] },
): boolean {
  const before = readRow(connections.base, relation, wanted);
  const after = readRow(connections.candidate, relation, wanted);
  // An updated row that is no longer there under exactly its key has a zero in the key that was
  // turned.
  if (before === null || after === null) return true;
  return wanted.columns.some((name) => differ(before[name], after[name]));
}

function findTurnedRow(
  connections: { readonly candidate: DatabaseSync; readonly base: DatabaseSync },
  relation: Relation,
  columns: readonly string[],
): Row | undefined {
  const before = rowsWithZero(connections.base, relation, columns);
  for (const [id, row] of rowsWithZero(connections.candidate, relation, columns)) {
    const old = before.get(id);
    if (old !== undefined && columns.some((name) => differ(old[name], row[name]))) return row;
  }
  return undefined;
}

/** Rows with a REAL zero in one of the columns, by their key with the sign of zeros left out. */
function rowsWithZero(
  db: DatabaseSync,
  relation: Relation,
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

/** Whether one is 0.0 and the other -0.0. */
function differ(a: Value | undefined, b: Value | undefined): boolean {
  return isRealZero(a) && isRealZero(b) && isNegativeZero(a) !== isNegativeZero(b);
}

function isRealZero(value: Value | undefined): boolean {
  return isNegativeZero(value) || JSON.stringify(value) === '{"$real":"0.0"}';
}

function isNegativeZero(value: Value | undefined): boolean {
  return JSON.stringify(value) === '{"$real":"-0.0"}';
}
