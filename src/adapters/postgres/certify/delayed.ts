import { quoteName } from '../../../postgres/identifier.ts';
import { SQL } from '../sql.ts';
import { namesIn } from './body.ts';
import { type Catalog, type RelationRow, readRows, type TextReader, type Use } from './catalog.ts';
import { type BoundaryFacts, isVouchedFor, type Outlets } from './facts.ts';
import { Purity } from './purity.ts';
import { closeExecute, type Index, type Reach } from './reach.ts';

/** An expression that is evaluated again after the commit, and what that may do beside reading. */
interface Delayed {
  readonly what: string;
  readonly object: string;
  readonly needs: string;
  /** The maintenance that evaluates it. */
  readonly by: string;
  readonly why: string | undefined;
  readonly uses: readonly Use[];
  /** The statement that removes it. */
  readonly close: string;
}

interface Parts {
  readonly catalog: Catalog;
  readonly facts: BoundaryFacts;
  readonly index: Index;
  readonly reach: Reach;
}

/**
 * Expressions that maintenance evaluates: statistics, indexes, materialized views, comparisons of
 * column types, checks that are still to be validated. ANALYZE, REINDEX, REFRESH or autovacuum runs
 * them on rows that were committed, in transactions that no recorder looks at, so the functions in
 * them must only read and compute.
 */
export async function surveyDelayed(
  control: TextReader,
  parts: Parts,
  outlets: Outlets,
): Promise<void> {
  const { catalog, facts, index, reach } = parts;
  const volatile = await readRows<{ name: string }>(control, SQL.rights.get('volatile_builtins'));
  const purity = new Purity(catalog, facts, index, new Set(volatile.map(({ name }) => name)));
  const views = catalog.relations.filter((row) => row.kind === 'm' && readsReached(parts, row));
  const tables = new Set([...reach.relations.keys(), ...views].map(({ oid }) => oid));
  const found = [
    ...storedExpressions(parts, purity, tables),
    ...views.map((row) => describeView(catalog, row, purity)),
    ...listComparisons(parts, purity),
  ];
  for (const { what, object, needs, by, why, uses, close } of found) {
    if (why === undefined) continue;
    outlets.open({
      outlet: `maintenance of ${what}`,
      object,
      why: `${by} evaluates it after the commit, where nothing observes it, and ${why}`,
      fix: [close, ...closeUnused(parts, uses)],
      needs,
    });
  }
  const judged = found.filter(({ why }) => why === undefined).length;
  outlets.denied(
    'effects delayed to maintenance',
    `${judged} expressions that it evaluates only read and compute`,
  );
}

/**
 * Indexes, statistics, partition keys and unvalidated checks of tables that an operation reaches.
 */
function storedExpressions(
  { catalog, index }: Parts,
  purity: Purity,
  tables: ReadonlySet<number>,
): readonly Delayed[] {
  return listStored(catalog).flatMap(({ what, oid, relation, definition, by, close }) => {
    const table = index.relation.get(relation);
    // The check of a domain has no table; whatever has the domain is looked through when it is
    // validated.
    if (relation !== 0 && !tables.has(relation)) return [];
    const uses = catalog.uses.filter((use) => use.object === oid && STORED.has(use.class));
    const called = uses.map((use) => use.function);
    const why = purity.ofExpression(definition, called, table);
    const needs = `${table ? quoteName(table.owner) : 'the owner of the domain'} or a superuser`;
    const object = table?.object ?? what;
    return [{ what, object, needs, by, why, uses, close: close(object) }];
  });
}

const STORED = new Set(['pg_class', 'pg_opclass', 'pg_statistic_ext', 'pg_constraint']);

function listStored(catalog: Catalog) {
  const keys = catalog.relations.flatMap(({ partitionKey: definition, oid, object }) =>
    definition === null
      ? []
      : [{ what: `partition key of ${object}`, oid, relation: oid, definition }],
  );
  const unvalidated = catalog.constraints.filter(
    (row) => row.kind === 'c' && row.definition.endsWith(' NOT VALID'),
  );
  return [
    ...catalog.indexes.map((row) => ({
      ...{ ...row, what: `index ${row.object}`, by: 'ANALYZE, REINDEX or autovacuum' },
      close: (table: string) => closeIndex(catalog, row, table),
    })),
    ...catalog.statistics.map((row) => ({
      ...{ ...row, what: `statistics ${row.object}`, by: 'ANALYZE or autovacuum' },
      close: () => `DROP STATISTICS ${row.object}`,
    })),
    ...keys.map((row) => ({
      ...{ ...row, by: 'ATTACH PARTITION' },
      close: (table: string) =>
        `-- partition ${table} by columns, or by built-in functions of them`,
    })),
    ...unvalidated.map((row) => ({
      ...{ ...row, what: `constraint ${row.object}`, by: 'VALIDATE CONSTRAINT' },
      close: (table: string) =>
        `ALTER ${row.domain === null ? `TABLE ${table}` : `DOMAIN ${row.domain}`} DROP CONSTRAINT ${row.object}`,
    })),
  ];
}

/** An index that a constraint needs goes with the constraint. */
function closeIndex(catalog: Catalog, index: Catalog['indexes'][number], table: string): string {
  const constraint = catalog.constraints.find(
    (row) =>
      /^[xup]$/.test(row.kind) &&
      row.relation === index.relation &&
      index.object.endsWith(`.${row.object}`),
  );
  return constraint
    ? `ALTER TABLE ${table} DROP CONSTRAINT ${constraint.object}`
    : `DROP INDEX ${index.object}`;
}

function describeView(catalog: Catalog, row: RelationRow, purity: Purity): Delayed {
  return {
    what: `materialized view ${row.object}`,
    object: row.object,
    needs: `${quoteName(row.owner)} or a superuser`,
    by: 'REFRESH',
    why: purity.ofQuery(row),
    uses: catalog.uses.filter((use) => use.class === 'pg_rewrite' && use.relation === row.oid),
    close: `DROP MATERIALIZED VIEW ${row.object} CASCADE`,
  };
}

/**
 * ANALYZE compares the values of every column with the operator class of its type, index or not.
 */
function listComparisons({ catalog, facts, index }: Parts, purity: Purity): readonly Delayed[] {
  return catalog.uses.flatMap((use) => {
    const row = index.function.get(use.function);
    const family = /of operator family (.+) for access method (\w+)/s.exec(use.description);
    if (row === undefined || family === null || !['pg_amproc', 'pg_amop'].includes(use.class))
      return [];
    if (isVouchedFor(row, facts)) return [];
    const close = `DROP OPERATOR FAMILY ${family[1]} USING ${family[2]} CASCADE`;
    const by = 'ANALYZE, REINDEX or autovacuum';
    return [
      {
        what: use.description,
        object: row.object,
        needs: 'superuser',
        by,
        why: purity.ofFunction(row),
        uses: [use],
        close,
      },
    ];
  });
}

/**
 * Whether a materialized view, or what it is made of, names a relation that operations reach or
 * hides what it reads. What can run without being named (operators, checks of domains, casts)
 * counts as named.
 */
function readsReached({ catalog, index, reach }: Parts, view: RelationRow): boolean {
  const unnamed = [
    ...catalog.casts.map((cast) => cast.function),
    ...catalog.uses.filter((use) => use.type !== 0).map((use) => use.function),
  ];
  const namesOf = (functions: readonly number[]) =>
    functions.flatMap((oid) => index.function.get(oid) ?? []).map((row) => row.name);
  const operatorsIn = (text: string) =>
    namesOf(catalog.operators.filter((row) => text.includes(row.name)).map((row) => row.function));
  const byFunctionName = Map.groupBy(catalog.functions, (row) => row.name);
  const byRelationName = Map.groupBy(catalog.relations, (row) => row.name);
  const queryOf = ({ oid }: RelationRow) =>
    catalog.rules.filter((rule) => rule.relation === oid).map((rule) => rule.definition);
  const calledBy = (isBy: (use: Use) => boolean) =>
    namesOf(catalog.uses.filter(isBy).map((use) => use.function));
  const seen = new Set<unknown>([view]);
  const texts = [
    ...queryOf(view),
    ...calledBy((use) => use.class === 'pg_rewrite' && use.relation === view.oid),
    ...namesOf(unnamed),
  ];
  for (const text of texts) {
    for (const name of [...namesIn(text), ...operatorsIn(text)]) {
      for (const row of byRelationName.get(name) ?? []) {
        if (reach.relations.has(row)) return true;
        if (!seen.has(row)) texts.push(...queryOf(row));
        seen.add(row);
      }
      for (const row of byFunctionName.get(name) ?? []) {
        if (seen.has(row)) continue;
        seen.add(row);
        const body = row.sqlBody ?? row.source;
        const isLegible =
          row.kind === 'a' || ['sql', 'plpgsql'].includes(row.language) || row.extension !== null;
        if (!isLegible || namesIn(body).has('execute')) return true;
        texts.push(body, ...calledBy((use) => use.class === 'pg_proc' && use.object === row.oid));
      }
    }
  }
  return false;
}

/**
 * Without this use only the right to the function would be left, and it would be the next finding.
 */
function closeUnused({ catalog, facts, index }: Parts, uses: readonly Use[]): readonly string[] {
  return [...new Set(uses.map((use) => use.function))].flatMap((oid) => {
    const row = index.function.get(oid);
    if (row === undefined || !index.executable.has(oid) || isVouchedFor(row, facts)) return [];
    const isUsedElsewhere = catalog.uses.some((use) => use.function === oid && !uses.includes(use));
    return isUsedElsewhere ? [] : closeExecute(row, facts.executor);
  });
}
