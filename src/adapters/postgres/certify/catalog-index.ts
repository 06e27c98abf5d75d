import { namesIn } from './body.ts';
import { knownDanger } from './builtins.ts';
import type { SystemCatalog, TypeRow } from './catalog.ts';
import { storedExpressions } from './expressions.ts';
import type { BoundaryFacts } from './facts.ts';

/** The rows of a catalogue by id, by name, and by what they are attached to. */
export type CatalogIndex = ReturnType<typeof indexCatalog>;

/** `executable` contains the ids of the functions that the execution login may call. */
export function indexCatalog(
  catalog: SystemCatalog,
  facts: BoundaryFacts,
  executable: ReadonlySet<number>,
) {
  const { relations, functions, types, uses } = catalog;
  const inherited = relations.flatMap((child) =>
    child.parents.map((parent) => ({ parent, child })),
  );
  const childrenOf = groupRows(inherited, ({ parent }) => parent);
  const usesBy = groupRows(uses, (use) => use.object);
  const expressions = storedExpressions(catalog);
  const acting = expressions.filter(({ text }) =>
    namesIn(text)
      .values()
      .some((name) => knownDanger(name) !== undefined),
  );
  const registered = facts.relations.flatMap(({ oid, leaves }) => [
    oid,
    ...leaves.map((leaf) => leaf.oid),
  ]);
  return {
    executable,
    registered: new Set(registered),
    /** Registered views. */
    views: new Set((facts.views ?? []).map(({ oid }) => oid)),
    relation: new Map(relations.map((row) => [row.oid, row])),
    function: new Map(functions.map((row) => [row.oid, row])),
    type: new Map(types.map((row) => [row.oid, row])),
    relationsNamed: groupRows(relations, (row) => row.name),
    functionsNamed: groupRows(functions, (row) => row.name),
    typesNamed: groupRows(types, (row) => row.short),
    columnsOf: groupRows(catalog.columns, (row) => row.relation),
    triggersOf: groupRows(catalog.triggers, (row) => row.relation),
    rulesOf: groupRows(catalog.rules, (row) => row.relation),
    childrenOf: (oid: number) => childrenOf(oid).map(({ child }) => child),
    usesOf: groupRows(uses, (use) => use.relation),
    usesOfType: groupRows(uses, (use) => use.type),
    usesBy,
    /** What the body of a function calls. */
    callsBy: (oid: number) => usesBy(oid).filter((use) => use.class === 'pg_proc'),
    expressions,
    /**
     * Relations with an expression that names a built-in which acts outside the transaction; 0 if a
     * domain has one.
     */
    acting: new Set(acting.map(({ relation }) => relation)),
  };
}

/** Groups rows by a key. A key that no row has gives an empty list. */
function groupRows<Row, Key>(rows: readonly Row[], keyOf: (row: Row) => Key) {
  const groups = Map.groupBy(rows, keyOf);
  return (key: Key): readonly Row[] => groups.get(key) ?? [];
}

/** These types and everything they are made of. */
export function typesBeneath(
  index: CatalogIndex,
  oids: readonly number[],
  partsOf = ({ base, element, types }: TypeRow) => [base, element, ...types],
): ReadonlySet<number> {
  const found = new Set(oids);
  for (const oid of found) {
    const type = index.type.get(oid);
    for (const part of type ? partsOf(type) : []) if (part !== 0) found.add(part);
  }
  return found;
}
