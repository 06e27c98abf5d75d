import type { DatabaseSync } from 'node:sqlite';
import { EffectMatchError } from '../../errors.ts';
import { canonical } from '../../protocol/canon.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import { suggest } from '../../protocol/nearest.ts';
import type { Row, Value } from '../../protocol/value.ts';
import { quoteName, statement } from '../../sqlite/connection.ts';
import type { Affinity } from './affinity.ts';
import type { Catalog, Relation } from './catalog.ts';
import { inspectRelation } from './relation.ts';
import { bindValue, decodeCell, selectExact } from './value.ts';

/** A fault in what was stated, with where it is and what to change. */
export function invalid(where: string, what: string): EffectMatchError<'ERR_EM_MANIFEST_INVALID'> {
  return new EffectMatchError('ERR_EM_MANIFEST_INVALID', `${where}: ${what}`);
}

/** Any table of the file with a usable key may be read, registered or not: reading leaves nothing behind. */
export function readableRelation(catalog: Catalog, target: string, where: string): Relation {
  const inspection = inspectRelation(catalog, target);
  if (inspection.kind === 'unusable') throw invalid(where, `"${target}" cannot be read: ${inspection.why}`);
  return inspection.relation;
}

/** Reads rows by exact key, in the order asked. */
export function readState(
  db: DatabaseSync,
  tools: { readonly catalog: Catalog; readonly affinity: Affinity },
  reads: readonly StateRead[],
): readonly StateReading[] {
  return reads.map((read, index) => {
    const normal = normaliseRead(tools, read, `read ${index + 1} of "${read.target}"`);
    const relation = readableRelation(tools.catalog, read.target, 'read');
    const columns = normal.columns ?? relation.columns.map((column) => column.name);
    return { target: read.target, key: normal.key, row: readRow(db, relation, { key: normal.key, columns }) };
  });
}

/** The same read with its key as the columns store it. Unknown columns and incomplete keys are refused. */
export function normaliseRead(
  tools: { readonly catalog: Catalog; readonly affinity: Affinity },
  read: StateRead,
  where: string,
): StateRead {
  const relation = readableRelation(tools.catalog, read.target, where);
  for (const column of read.columns ?? []) findColumn(relation, column, where);
  return { ...read, key: normaliseKey(tools.affinity, relation, read.key, where) };
}

/** Key values as the key columns store them; exactly the key columns must be named. */
export function normaliseKey(affinity: Affinity, relation: Relation, key: Row, where: string): Row {
  checkKeyColumns(relation, Object.keys(key), where);
  return castRow(affinity, relation, key, where);
}

export function castRow(affinity: Affinity, relation: Relation, row: Row, where: string): Row {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, castValue(affinity, relation, name, value, where)]),
  );
}

export function castValue(affinity: Affinity, relation: Relation, name: string, value: Value, where: string): Value {
  const cast = affinity.cast(relation, findColumn(relation, name, where), value);
  if (cast.kind === 'unstorable') throw invalid(`${where}, column "${name}"`, cast.why);
  return cast.value;
}

export function checkKeyColumns(relation: Relation, named: readonly string[], where: string): void {
  const stray = named.find((name) => !relation.key.includes(name));
  if (stray !== undefined) {
    throw invalid(where, `"${stray}" is not a key column of "${relation.name}"; its key is ${list(relation.key)}`);
  }
  const missing = relation.key.filter((name) => !named.includes(name));
  if (missing.length > 0) throw invalid(where, `the key of "${relation.name}" lacks ${list(missing)}`);
}

export function findColumn(relation: Relation, name: string, where: string): Relation['columns'][number] {
  const column = relation.columns.find((candidate) => candidate.name === name);
  if (column !== undefined) return column;
  if (relation.generated.includes(name)) {
    throw invalid(
      where,
      `"${name}" is computed from other columns of "${relation.name}" and not compared; leave it out`,
    );
  }
  const names = relation.columns.map((candidate) => candidate.name);
  throw invalid(where, `"${relation.name}" has no column "${name}"${suggest(name, names)}`);
}

export function list(names: readonly string[]): string {
  return names.map((name) => `"${name}"`).join(', ');
}

/**
 * The columns of the row with exactly this key, or null. SQL equality finds the candidates by index, and of these the
 * one counts whose key has the same stored representation: under NOCASE, 'A' is not 'a' here.
 */
export function readRow(
  db: DatabaseSync,
  relation: Relation,
  wanted: { readonly key: Row; readonly columns: readonly string[] },
): Row | null {
  const bounds = relation.key.map((name) => bindValue(wanted.key[name] ?? null));
  const conditions = relation.key.map((name, index) => {
    // A unary plus keeps the cast from lending its affinity to the comparison.
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
    const key = Object.fromEntries(relation.key.map((name, index) => [name, values[index] ?? null]));
    if (canonical(key) !== canonical(wanted.key)) continue;
    return Object.fromEntries(wanted.columns.map((name, index) => [name, values[relation.key.length + index] ?? null]));
  }
  return null;
}
