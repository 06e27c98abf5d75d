import { asFault, type Connection, sqlState } from '../../postgres/connection.ts';
import { quoteName, quoteQualified } from '../../postgres/identifier.ts';
import type { ChangeRecords } from '../../protocol/effect.ts';
import type { Assigned } from '../../protocol/observation.ts';
import type { Row } from '../../protocol/value.ts';
import { queryPinned } from './formats.ts';
import { assignedBy, type PostgresRelation } from './relation.ts';

/** A column that PostgreSQL fills with random identifiers. */
interface RandomColumn {
  readonly relation: PostgresRelation;
  readonly column: string;
  /**
   * Whether it is the primary key. An inserted key can have existed before only if the action
   * itself freed it.
   */
  readonly isKey: boolean;
}

export function randomColumns(relation: PostgresRelation): readonly RandomColumn[] {
  const { columns, key } = relation;
  return columns
    .filter((column) => assignedBy(column) === 'uuid')
    .map(({ name }) => ({ relation, column: name, isKey: key.length === 1 && key[0] === name }));
}

/** Which of these identifiers already occur in this column in committed rows. */
export type FindUsed = (
  column: RandomColumn,
  identifiers: readonly string[],
) => Promise<ReadonlySet<string>>;

/**
 * The inserted identifiers that are new in their column, so that the database may have generated
 * them.
 */
export async function freshIdentifiers(
  columns: readonly RandomColumn[],
  records: ChangeRecords,
  findUsed: FindUsed,
): Promise<readonly Assigned[]> {
  const evidence = columns.map(async (random): Promise<Assigned> => {
    const { column, isKey, relation } = random;
    const { target } = relation;
    const identifiers: string[] = [];
    for (const { op, target: written, after } of records) {
      const value = written === target && op === 'insert' ? after?.[column] : undefined;
      if (typeof value === 'string') identifiers.push(value);
    }
    const added = isKey ? addedKeys(random, records) : new Set();
    const doubtful = identifiers.filter((identifier) => !added.has(identifier));
    const used = await findUsed(random, doubtful);
    return { target, column, fresh: identifiers.filter((identifier) => !used.has(identifier)) };
  });
  return await Promise.all(evidence);
}

/** Keys that rows gained once more than they lost, so that no row had them before. */
function addedKeys(
  { relation, column }: RandomColumn,
  records: ChangeRecords,
): ReadonlySet<unknown> {
  const balance = new Map<unknown, number>();
  const count = (row: Row | null, by: number) => {
    const key = row?.[column];
    balance.set(key, (balance.get(key) ?? 0) + by);
  };
  for (const { target, before, after } of records) {
    if (target !== relation.target) continue;
    count(before, -1);
    count(after, 1);
  }
  return new Set([...balance].flatMap(([key, more]) => (more === 1 ? [key] : [])));
}

/**
 * Looks with the control login, which does not see the candidate. If a policy prevents this, all
 * identifiers count as used. Without an index on the column, the whole table is read.
 */
export async function findUsed(
  control: Connection,
  { relation, column }: RandomColumn,
  identifiers: readonly string[],
): Promise<ReadonlySet<string>> {
  if (identifiers.length === 0) return new Set();
  const own = `t.${quoteName(column)}`;
  const text =
    `select distinct ${own}::pg_catalog.uuid from ${quoteQualified(relation)} as t ` +
    `where ${own} operator(pg_catalog.=) any ($1::pg_catalog.uuid[])`;
  try {
    const { rows } = await queryPinned(control, text, [`{${identifiers.join(',')}}`]);
    return new Set(rows.map(([identifier]) => String(identifier)));
  } catch (error) {
    if (sqlState(error) === '42501') return new Set(identifiers);
    throw asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', 'identifiers in use could not be read');
  }
}
