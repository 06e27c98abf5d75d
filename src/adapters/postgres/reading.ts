import { findColumn, invalid } from '../../backend/manifest-schema.ts';
import { invariant } from '../../errors.ts';
import type { Connection } from '../../postgres/connection.ts';
import {
  nameTarget,
  type QualifiedName,
  quoteLiteral,
  quoteName,
  quoteQualified,
  readTarget,
  sqlName,
} from '../../postgres/identifier.ts';
import { canonical } from '../../protocol/canon.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import { suggest } from '../../protocol/nearest.ts';
import type { Row, Value } from '../../protocol/value.ts';
import { queryPinned } from './formats.ts';
import { parseImage } from './image.ts';
import type { PostgresColumn, PostgresRelation } from './relation.ts';
import { encodeValue, rowReader } from './value.ts';

/** Relations by target. */
export type Relations = ReadonlyMap<string, PostgresRelation>;

/**
 * The relation that a target names, with or without SQL quotes; undefined if it is not a known one.
 * Refuses a name that could mean two relations.
 */
export function findRelation(relations: Relations, target: string): PostgresRelation | undefined {
  const known = relations.get(target);
  const name = known === undefined ? readTarget(target) : undefined;
  if (name === undefined) return known;
  const find = (meant: QualifiedName) =>
    relations.get(nameTarget(meant)) ?? relations.get(sqlName(meant));
  const [exact, folded] = [find(name.exact), find(name.folded)];
  if (exact === undefined || folded === undefined || exact === folded) return exact ?? folded;
  throw invalid(target, ambiguousName(name.exact, name.folded));
}

/** Why an unquoted name cannot be used if two relations differ only in case. */
export function ambiguousName(exact: QualifiedName, folded: QualifiedName): string {
  return `it could mean two tables; write ${sqlName(exact)} with the quotes, or ${sqlName(folded)}`;
}

/** A relation whose rows can be read by key. Refuses any other. */
export function keyedRelation(
  relations: Relations,
  target: string,
  where: string,
): PostgresRelation {
  const relation = findRelation(relations, target);
  if (relation === undefined) {
    throw invalid(where, `"${target}" cannot be read${suggest(target, [...relations.keys()])}`);
  }
  if (relation.key.length === 0)
    throw invalid(where, `"${target}" has no primary key, so no row of it can be named`);
  if (relation.unreadable !== undefined) throw invalid(where, `"${target}" ${relation.unreadable}`);
  return relation;
}

/** Queries that lock the rows they read, and the decoder for their answers. */
export interface LockedReads {
  readonly queries: readonly string[];
  decode(images: readonly (string | null)[]): readonly StateReading[];
}

/** One query per declared row, for the trusted function that runs them and returns the rows. */
export function lockReads(relations: Relations, reads: readonly StateRead[]): LockedReads {
  const known = reads.map((read) => ({
    read,
    relation: keyedRelation(relations, read.target, 'read'),
  }));
  return {
    queries: known.map(({ read, relation }) => buildLock(relation, read.key)),
    decode: (images) =>
      known.map(({ read, relation }, index) => decodeRead(relation, read, images[index] ?? null)),
  };
}

/**
 * The statement that takes a row share lock on the row with this (normalised) key and returns its
 * image, if there is such a row. All names are qualified. Keys are read as the types beneath
 * domains, because domain checks could run application code.
 */
export function buildLock(relation: PostgresRelation, key: Row): string {
  const conditions = keyColumns(relation).map((column) =>
    compareKey(column, writeKey(column, key[column.name])),
  );
  return `select ${IMAGE} from ${quoteQualified(relation)} as t where ${conditions.join(' and ')} for share`;
}

const IMAGE = 'pg_catalog.concat(t.*)';

function keyColumns(relation: PostgresRelation): readonly PostgresColumn[] {
  return relation.key.map((name) => findColumn(relation, name, relation.target));
}

/**
 * Types outside pg_catalog may have operators that run arbitrary code, so they are compared by
 * their text.
 */
function comparesAsText({ type }: PostgresColumn): boolean {
  return type.baseSchema !== 'pg_catalog' && !['e', 'r', 'm'].includes(type.kind);
}

/** A literal is read by the type's input function, never by an application-defined cast. */
function writeKey(column: PostgresColumn, value: Value | undefined): string {
  const text = encodeValue(column.type, value ?? null);
  if (typeof text !== 'string')
    throw invalid(`"${column.name}"`, 'a key column has a value that no row can have');
  const { baseSchema: schema, base: name } = column.type;
  const type = comparesAsText(column) ? 'pg_catalog.text' : quoteQualified({ schema, name });
  return `${quoteLiteral(text)}::${type}`;
}

function compareKey(column: PostgresColumn, operand: string): string {
  const own = `t.${quoteName(column.name)}`;
  return `${comparesAsText(column) ? `pg_catalog.concat(${own})` : own} operator(pg_catalog.=) ${operand}`;
}

/**
 * The part of the statement for all reads of one relation. It returns the number of the read and
 * the image of the row, if the row exists.
 */
function buildReads(
  relation: PostgresRelation,
  reads: readonly (readonly [index: number, read: StateRead])[],
): string {
  const columns = keyColumns(relation);
  const rows = reads.map(
    ([index, { key }]) =>
      `(${[index, ...columns.map((column) => writeKey(column, key[column.name]))].join(', ')})`,
  );
  const names = columns.map((_, place) => `k${place}`);
  const conditions = columns.map((column, place) => compareKey(column, `s.k${place}`));
  return (
    `select s.n, ${IMAGE} from (values ${rows.join(', ')}) as s (n, ${names.join(', ')}) ` +
    `join ${quoteQualified(relation)} as t on ${conditions.join(' and ')}`
  );
}

/**
 * The result of a read: the requested columns of the row whose key has the same stored
 * representation. The engine may consider other keys equal, under a collation or for signed zeros.
 * A row with such a key is not the requested one.
 */
export function decodeRead(
  relation: PostgresRelation,
  read: StateRead,
  image: string | null,
): StateReading {
  const absent = { target: read.target, key: read.key, row: null };
  if (image === null) return absent;
  const values = rowReader(relation.columns)(parseImage(image, relation.columns.length));
  const key = Object.fromEntries(relation.key.map((name) => [name, values[name] ?? null]));
  if (canonical(key) !== canonical(read.key)) return absent;
  const columns = read.columns ?? relation.columns.map(({ name }) => name);
  return {
    ...absent,
    row: Object.fromEntries(columns.map((name) => [name, values[name] ?? null])),
  };
}

/**
 * Reads rows by their (normalised) keys, in the order asked. A single statement reads them, so they
 * come from one snapshot.
 */
export async function readState(
  control: Connection,
  relations: Relations,
  reads: readonly StateRead[],
): Promise<readonly StateReading[]> {
  if (reads.length === 0) return [];
  const groups = Map.groupBy(reads.entries(), ([, { target }]) =>
    keyedRelation(relations, target, `read of "${target}"`),
  );
  const parts = [...groups].map(([relation, group]) => buildReads(relation, group));
  const { rows } = await queryPinned(control, parts.join(' union all '));
  const images = new Map(rows.map(([index, image]) => [Number(index), image ?? null]));
  invariant(images.size === rows.length, 'a key names at most one row');
  const readings: StateReading[] = [];
  for (const [relation, group] of groups)
    for (const [index, read] of group)
      readings[index] = decodeRead(relation, read, images.get(index) ?? null);
  return readings;
}
