import { canonical } from '../../protocol/canon.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import type { Row } from '../../protocol/value.ts';
import type { MysqlRelation } from './catalog.ts';
import type { MysqlConnection } from './connection.ts';
import type { TracedRelation } from './observation.ts';
import { quoteName } from './sql.ts';
import { imageOf, literalOf, readImage } from './value.ts';

const BATCH = 500;

/** Where to read rows, and whether to lock them until the transaction ends. */
interface Place {
  readonly connection: MysqlConnection;
  readonly database: string;
  readonly isLocking?: boolean;
}

/** Keys of one relation. */
export interface WantedRows {
  readonly relation: TracedRelation;
  readonly keys: readonly Row[];
}

/**
 * Reads rows by key and returns them for each relation under the text of their key. Keys that a
 * collation treats as equal are different here: a row counts only if its stored key is one of the
 * wanted keys.
 */
export async function readRows(
  place: Place,
  wanted: readonly WantedRows[],
): Promise<readonly ReadonlyMap<string, Row>[]> {
  const found = wanted.map(() => new Map<string, Row>());
  for (const selects of batchSelects(place, wanted)) {
    const rows = await place.connection.query(selects.join(' union all '));
    for (const [index, image] of rows) {
      const relation = wanted[Number(index)]?.relation;
      if (!image || relation === undefined)
        throw new Error(`a row of "${relation?.target}" is too long to be read`);
      const row = readImage(relation.columns, image);
      found[Number(index)]?.set(textOfKey(relation, row), row);
    }
  }
  return found;
}

/** Batches of SELECTs with a limited number of keys. Each SELECT names its relation by index. */
function batchSelects(place: Place, wanted: readonly WantedRows[]): readonly (readonly string[])[] {
  const batches: string[][] = [];
  let room = 0;
  for (const [index, { relation, keys }] of wanted.entries())
    for (let from = 0; from < keys.length; ) {
      if (room === 0) {
        batches.push([]);
        room = BATCH;
      }
      const some = keys.slice(from, from + room);
      batches.at(-1)?.push(selectRows(place, index, relation, some));
      from += some.length;
      room -= some.length;
    }
  return batches;
}

function selectRows(
  { database, isLocking = false }: Place,
  index: number,
  { target, columns, key }: TracedRelation,
  keys: readonly Row[],
): string {
  const kinds = new Map(columns.map(({ name, kind }) => [name, kind]));
  const names = key.map((name) => `r.${quoteName(name)}`).join(', ');
  const tuples = keys.map((row) => {
    const cells = key.map((name) => literalOf(kinds.get(name) ?? 'text', row[name] ?? null));
    return `(${cells.join(', ')})`;
  });
  const table = `${quoteName(database)}.${quoteName(target)}`;
  // A statement that deletes most of a large table makes the server expect that a scan is cheap.
  const select = `(select ${index}, ${imageOf(columns, 'r')} from ${table} r force index (primary)`;
  const lock = isLocking ? ' lock in share mode' : '';
  return `${select} where (${names}) in (${tuples.join(', ')})${lock})`;
}

/** A key, or the key of a row, as text. */
export function textOfKey({ key }: Pick<TracedRelation, 'key'>, row: Row): string {
  return canonical(key.map((name) => row[name] ?? null));
}

/** Reads declared state, in the given order. The keys must be as the columns store them. */
export async function readState(
  place: Place,
  relations: ReadonlyMap<string, MysqlRelation>,
  reads: readonly StateRead[],
): Promise<readonly StateReading[]> {
  const groups = [...Map.groupBy(reads, ({ target }) => target)];
  const wanted = groups.map(([target, group]) => {
    const relation = relations.get(target);
    if (relation === undefined) throw new Error(`"${target}" cannot be read`);
    return { relation, keys: group.map(({ key }) => key) };
  });
  const found = await readRows(place, wanted);
  const rows = new Map(groups.map(([target], index) => [target, found[index]]));
  return reads.map(({ target, key, columns }) => {
    const relation = relations.get(target);
    const row = relation && rows.get(target)?.get(textOfKey(relation, key));
    if (relation === undefined || row === undefined) return { target, key, row: null };
    const names = columns ?? relation.columns.map(({ name }) => name);
    return { target, key, row: Object.fromEntries(names.map((name) => [name, row[name] ?? null])) };
  });
}
