import type { Assigned, ReferringColumns } from '../protocol/observation.ts';

/** One column that references another by a declared foreign key. */
export interface ForeignKeyColumn {
  readonly target: string;
  readonly column: string;
  /** Undefined if the referenced table is not known. */
  readonly refersTo: { readonly target: string; readonly column: string } | undefined;
}

/**
 * What the foreign keys of a schema declare about references to one column. A column may reference
 * it through others: a child's key is often its parent's.
 */
export function declaredReferences(
  foreignKeys: readonly ForeignKeyColumn[],
  assigned: Assigned,
): Pick<Assigned, 'referredBy'> {
  const isUnused = 'fresh' in assigned && assigned.fresh.length === 0;
  if (foreignKeys.length === 0 || isUnused) return {};
  const leading = new Set([placeOf(assigned)]);
  const leads = ({ refersTo }: ForeignKeyColumn) =>
    refersTo !== undefined && leading.has(placeOf(refersTo));
  let known = 0;
  while (known < leading.size) {
    known = leading.size;
    for (const foreignKey of foreignKeys) if (leads(foreignKey)) leading.add(placeOf(foreignKey));
  }
  const referredBy: ReferringColumns[] = [];
  for (const [name, own] of Map.groupBy(foreignKeys, (foreignKey) => foreignKey.target)) {
    const columns = own.filter(leads).map((foreignKey) => foreignKey.column);
    referredBy.push({ target: name, columns });
  }
  return { referredBy };
}

function placeOf({ target, column }: Pick<ForeignKeyColumn, 'target' | 'column'>): string {
  return `${target}\n${column}`;
}
