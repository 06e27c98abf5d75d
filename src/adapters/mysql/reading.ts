import { canonical } from '../../protocol/canon.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import type { Row } from '../../protocol/value.ts';
import type { MysqlRelation } from './catalog.ts';
import type { MysqlConnection } from './connection.ts';
import type { TracedRelation } from './observation.ts';
import { quoteName } from './sql.ts';
import { imageOf, literalOf, readImage } from './value.ts';

const BATCH = 500;

/** Where rows are read, and whether they are kept from changing until the transaction ends. */
export interface Place {
  readonly connection: MysqlConnection;
  readonly database: string;
  readonly isLocking?: boolean;
}

/**
 * Rows by key, under the text of their key. Two keys that a collation calls equal are different
 * here: of the rows that the server finds, those count whose stored key is one of the keys.
 */
export async function readRows(
  { connection, database, isLocking = false }: Place,
  relation: TracedRelation,
  keys: readonly Row[],
): Promise<ReadonlyMap<string, Row>> {
  const found = new Map<string, Row>();
  const kinds = new Map(relation.columns.map(({ name, kind }) => [name, kind]));
  const names = relation.key.map((name) => `r.${quoteName(name)}`).join(', ');
  const select = `select ${imageOf(relation.columns, 'r')} from ${quoteName(database)}.${quoteName(relation.target)} r`;
  for (let from = 0; from < keys.length; from += BATCH) {
    const tuples = keys.slice(from, from + BATCH).map((key) => {
      const cells = relation.key.map((name) =>
        literalOf(kinds.get(name) ?? 'text', key[name] ?? null),
      );
      return `(${cells.join(', ')})`;
    });
    const lock = isLocking ? ' lock in share mode' : '';
    const rows = await connection.query(
      `${select} where (${names}) in (${tuples.join(', ')})${lock}`,
    );
    for (const [image] of rows) {
      if (!image) throw new Error(`a row of "${relation.target}" is too long to be read`);
      const row = readImage(relation.columns, image);
      found.set(textOfKey(relation, row), row);
    }
  }
  return found;
}

/** The key of a row, or a key, as text. */
export function textOfKey({ key }: Pick<TracedRelation, 'key'>, row: Row): string {
  return canonical(key.map((name) => row[name] ?? null));
}

/** Declared state, in the order asked. Keys are as the columns store them. */
export async function readState(
  place: Place,
  relations: ReadonlyMap<string, MysqlRelation>,
  reads: readonly StateRead[],
): Promise<readonly StateReading[]> {
  const rows = new Map<string, ReadonlyMap<string, Row>>();
  for (const [target, group] of Map.groupBy(reads, ({ target }) => target)) {
    const relation = relations.get(target);
    if (relation === undefined) throw new Error(`"${target}" cannot be read`);
    rows.set(
      target,
      await readRows(
        place,
        relation,
        group.map(({ key }) => key),
      ),
    );
  }
  return reads.map(({ target, key, columns }) => {
    const relation = relations.get(target);
    const row = relation && rows.get(target)?.get(textOfKey(relation, key));
    if (relation === undefined || row === undefined) return { target, key, row: null };
    const names = columns ?? relation.columns.map(({ name }) => name);
    return { target, key, row: Object.fromEntries(names.map((name) => [name, row[name] ?? null])) };
  });
}
