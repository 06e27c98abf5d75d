import type { ChangeRecord } from '../../protocol/effect.ts';
import type { Row, Value } from '../../protocol/value.ts';
import type { Change, TableChanges } from './changeset.ts';

/**
 * What is needed to name the columns of a changeset: every stored column in schema order, and the
 * key in key order.
 */
export interface RelationShape {
  readonly name: string;
  readonly columns: readonly string[];
  readonly key: readonly string[];
}

/** The records of a changeset, or why they cannot be told from it. */
export type Records =
  | { readonly kind: 'records'; readonly records: readonly ChangeRecord[] }
  | { readonly kind: 'unclear'; readonly why: string };

/**
 * Names the columns of a decoded changeset. `unclear` where the changeset does not fit the schema,
 * and where one key appears in two spellings: the session finds the current row by SQL equality
 * (`'A' = 'a'` under NOCASE, 1 = 1.0), so a key that was only respelled comes out as an update of
 * the key itself or as the same row twice.
 */
export function nameRecords(
  tables: readonly TableChanges[],
  shapeOf: (table: string) => RelationShape | undefined,
): Records {
  const records: ChangeRecord[] = [];
  for (const table of tables) {
    const shape = shapeOf(table.table);
    if (shape === undefined)
      return { kind: 'unclear', why: `the changeset names the table "${table.table}"` };
    if (!fits(table, shape)) {
      return {
        kind: 'unclear',
        why: `the changeset has other columns than the table "${table.table}"`,
      };
    }
    const keys = new Set<string>();
    for (const change of table.changes) {
      const record = nameRecord(table, shape, change);
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

function fits(table: TableChanges, shape: RelationShape): boolean {
  if (table.keyPlaces.length !== shape.columns.length) return false;
  return shape.columns.every(
    (column, index) => shape.key.indexOf(column) + 1 === table.keyPlaces[index],
  );
}

function changesKey(table: TableChanges, change: Change): boolean {
  return (
    change.op === 'update' &&
    table.keyPlaces.some((place, index) => place > 0 && change.after[index] !== undefined)
  );
}

function nameRecord(table: TableChanges, shape: RelationShape, change: Change): ChangeRecord {
  const { op, before, after } = change;
  const { keyPlaces } = table;
  return {
    op,
    target: shape.name,
    key: pick(shape, op === 'insert' ? after : before, { keyPlaces, isKey: true }),
    before: op === 'insert' ? null : pick(shape, before, { keyPlaces, isKey: false }),
    after: op === 'delete' ? null : pick(shape, after, { keyPlaces, isKey: false }),
  };
}

/** The values of the key columns by name, or those of all others. */
function pick(
  { columns }: RelationShape,
  image: readonly (Value | undefined)[],
  wanted: { readonly keyPlaces: readonly number[]; readonly isKey: boolean },
): Row {
  const row: { [column: string]: Value } = {};
  for (let index = 0; index < columns.length; index += 1) {
    const column = columns[index];
    const value = image[index];
    if (
      column !== undefined &&
      value !== undefined &&
      (wanted.keyPlaces[index] !== 0) === wanted.isKey
    ) {
      row[column] = value;
    }
  }
  return row;
}
