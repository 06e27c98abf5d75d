import type { DatabaseSync } from 'node:sqlite';
import { normaliseReads } from '../../backend/normalise.ts';
import { sameValue } from '../../protocol/bag.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import type { Row } from '../../protocol/value.ts';
import { quoteName, statement } from '../../sqlite/connection.ts';
import type { SqliteRelation } from './catalog.ts';
import type { SqliteSchema } from './normalise.ts';
import { bindValue, decodeCell, selectExact } from './value.ts';

/** Reads rows by exact key, in the given order. */
export function readState(
  db: DatabaseSync,
  schema: SqliteSchema,
  reads: readonly StateRead[],
): readonly StateReading[] {
  return normaliseReads(schema, reads).map((read) => {
    const { target, key, columns } = read;
    const relation = schema.readable(read, target);
    const names = columns ?? relation.columns.map(({ name }) => name);
    return { target, key, row: readRow(db, relation, { key, columns: names }) };
  });
}

/**
 * Reads columns of the row with exactly this key, or null. SQL equality finds possible rows by
 * index. The row counts only if its key has the same stored representation: under NOCASE, 'A' is
 * not 'a' here.
 */
export function readRow(
  db: DatabaseSync,
  relation: SqliteRelation,
  wanted: { readonly key: Row; readonly columns: readonly string[] },
): Row | null {
  const bounds = relation.key.map((name) => bindValue(wanted.key[name] ?? null));
  const conditions = relation.key.map((name, index) => {
    // The unary plus keeps the cast's affinity out of the comparison.
    const parameter = bounds[index]?.isText ? '+cast(? as text)' : '?';
    return `${quoteName(name)} = ${parameter}`;
  });
  const names = [...relation.key, ...wanted.columns];
  const query = statement(
    db,
    `select ${names.map((name) => selectExact(quoteName(name))).join(', ')} from main.${quoteName(relation.name)}` +
      ` where ${conditions.join(' and ')}`,
  );
  query.setReadBigInts(true);
  query.setReturnArrays(true);
  const found: unknown[] = query.all(...bounds.map((bound) => bound?.parameter ?? null));
  for (const cells of found) {
    if (!Array.isArray(cells)) continue;
    const values = names.map((_, index) => decodeCell(cells[2 * index], cells[2 * index + 1]));
    const key = Object.fromEntries(
      relation.key.map((name, index) => [name, values[index] ?? null]),
    );
    if (!sameValue(key, wanted.key)) continue;
    return Object.fromEntries(
      wanted.columns.map((name, index) => [name, values[relation.key.length + index] ?? null]),
    );
  }
  return null;
}
