import { invariant } from '../../errors.ts';
import type { ChangeRecord } from '../../protocol/effect.ts';
import type { Row, Value } from '../../protocol/value.ts';
import type { Affinity } from './affinity.ts';
import { affinityOf, type Relation } from './catalog.ts';
import type { Change, TableChanges } from './changeset.ts';
import { readRow } from './reading.ts';
import type { Connections } from './snapshot.ts';

/**
 * Whether a session may state rows of this relation otherwise than they are stored. It takes a
 * whole REAL for an INTEGER in two places: in the key of a new row, so that one row gets two
 * entries, and in a column that was added with a whole number as its default, so that every old row
 * seems to change.
 */
export function isMisstated(relation: Relation): boolean {
  const known = misstated.get(relation) ?? mayMisstate(relation);
  misstated.set(relation, known);
  return known;
}

/** Follows from the definition, which is as old as the object. */
const misstated = new WeakMap<Relation, boolean>();

function mayMisstate(relation: Relation): boolean {
  return relation.columns.some((column) => {
    const affinity = affinityOf(relation, column);
    const inKey = relation.rowidAlias === undefined && relation.key.includes(column.name);
    return affinity === 'REAL' || (inKey && (affinity === 'INTEGER' || affinity === 'NUMERIC'));
  });
}

/**
 * The changes of a relation from the rows themselves: the session only says which keys were
 * touched, and what is stored under each of them beneath the candidate and in it makes the record.
 */
export function restateChanges(
  connections: Connections,
  relation: Relation,
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

/** A key of the changeset as its columns store it. */
function storedKey(affinity: Affinity, relation: Relation, stated: Row): Row {
  const entries = relation.columns.flatMap((column): [string, Value][] => {
    const value = stated[column.name];
    if (value === undefined) return [];
    const cast = affinity.cast(relation, column, value);
    invariant(cast.kind === 'stored', 'a key that was stored can be stored');
    return [[column.name, cast.value]];
  });
  return Object.fromEntries(entries);
}

/** The keys that a change names: the one it starts from, and the one it ends with. */
function touchedKeys(relation: Relation, table: TableChanges, change: Change): readonly Row[] {
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
