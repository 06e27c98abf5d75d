import { quoteName } from '../../../postgres/identifier.ts';
import { SQL } from '../sql.ts';
import { namesIn } from './body.ts';
import { type RelationRow, readRows, type Use } from './catalog.ts';
import { closeFamily } from './expressions.ts';
import { behind, isVouchedFor, type SurveyContext } from './facts.ts';
import { Purity } from './purity.ts';
import { closeExecute } from './reach.ts';

/** An expression that is evaluated again after the commit, and what that may do other than read. */
interface Delayed {
  readonly what: string;
  readonly object: string;
  readonly needs: string;
  /** The maintenance that evaluates it. */
  readonly by: string;
  readonly why: string | undefined;
  readonly uses: readonly Use[];
  /** The table whose rows it is evaluated on; absent if there is not exactly one. */
  readonly table?: RelationRow | undefined;
  /** The statements that remove it. */
  readonly close: readonly string[];
}

/**
 * Expressions that maintenance evaluates: statistics, indexes, materialized views, comparisons of
 * column types, and checks that are not validated yet. ANALYZE, REINDEX, REFRESH or autovacuum
 * evaluates them on committed rows, in transactions that no recorder observes, so their functions
 * must only read and compute.
 */
export async function surveyDelayed(context: SurveyContext): Promise<void> {
  const { control, catalog, reach, outlets } = context;
  const query = SQL.rights.get('volatile_builtins');
  const volatile = await readRows<{ name: string }>(control, query);
  const purity = new Purity(context, new Set(volatile.map(({ name }) => name)));
  const views = catalog.relations.filter((row) => row.kind === 'm' && readsReached(context, row));
  const tables = new Set([...reach.relations.keys(), ...views].map(({ oid }) => oid));
  const found = [
    ...listExpressions(context, purity, tables),
    ...views.map((row) => describeView(context, purity, row)),
    ...listComparisons(context, purity),
  ];
  for (const { what, object, needs, by, why, uses, close, table } of found) {
    if (why === undefined) continue;
    outlets.open(
      { object, needs, behind: behind.relation(table) },
      `maintenance of ${what}`,
      `${by} evaluates it after the commit, where nothing observes it, and ${why}`,
      ...close,
      ...closeUnused(context, uses),
    );
  }
  const judged = found.filter(({ why }) => why === undefined).length;
  const by = `${judged} expressions that it evaluates only read and compute`;
  outlets.denied('effects delayed to maintenance', by);
}

/** The maintenance that evaluates each kind of expression. */
const MAINTENANCE: Readonly<Record<string, string>> = {
  index: 'ANALYZE, REINDEX or autovacuum',
  statistics: 'ANALYZE or autovacuum',
  'partition key': 'ATTACH PARTITION',
  check: 'VALIDATE CONSTRAINT',
};

/**
 * Indexes, statistics, partition keys and unvalidated checks of tables that an operation reaches.
 */
function listExpressions(
  { index }: SurveyContext,
  purity: Purity,
  tables: ReadonlySet<number>,
): readonly Delayed[] {
  return index.expressions.flatMap((expression) => {
    const { kind, oid, relation, what, text } = expression;
    const by = MAINTENANCE[kind];
    const table = index.relation.get(relation);
    if (by === undefined || (kind === 'check' && !text.endsWith(' NOT VALID'))) return [];
    // A domain check has no table. Validating it reads all tables that use the domain.
    if (relation !== 0 && !tables.has(relation)) return [];
    const uses = index.usesBy(oid).filter((use) => STORED.has(use.class));
    const called = uses.map((use) => use.function);
    return [
      {
        what,
        by,
        uses,
        // Operations do not name a materialized view, but reach the tables that it is filled from.
        ...(table?.kind !== 'm' && { table }),
        object: table?.object ?? what,
        needs: `${table ? quoteName(table.owner) : 'the owner of the domain'} or a superuser`,
        why: purity.ofExpression(text, called, table),
        close: [expression.close(table?.object ?? '')],
      },
    ];
  });
}

const STORED = new Set(['pg_class', 'pg_opclass', 'pg_statistic_ext', 'pg_constraint']);

function describeView({ index }: SurveyContext, purity: Purity, row: RelationRow): Delayed {
  return {
    what: `materialized view ${row.object}`,
    object: row.object,
    needs: `${quoteName(row.owner)} or a superuser`,
    by: 'REFRESH',
    why: purity.ofQuery(row),
    uses: index.usesOf(row.oid).filter((use) => use.class === 'pg_rewrite'),
    close: [`DROP MATERIALIZED VIEW ${row.object} CASCADE`],
  };
}

/**
 * ANALYZE compares the values of every column with the operator class of its type, whether or not
 * the column has an index.
 */
function listComparisons(
  { catalog, facts, index }: SurveyContext,
  purity: Purity,
): readonly Delayed[] {
  return catalog.uses.flatMap((use) => {
    const row = index.function.get(use.function);
    const close = closeFamily(use);
    if (row === undefined || close.length === 0 || isVouchedFor(row, facts)) return [];
    if (use.class !== 'pg_amproc' && use.class !== 'pg_amop') return [];
    return [
      {
        what: use.description,
        object: row.object,
        needs: 'superuser',
        uses: [use],
        close,
        by: 'ANALYZE, REINDEX or autovacuum',
        why: purity.ofFunction(row),
      },
    ];
  });
}

/**
 * Whether a materialized view, or something it is built from, names a relation that operations
 * reach, or hides what it reads. Code that can run without being named (operators, domain checks,
 * casts) counts as named.
 */
function readsReached({ catalog, index, reach }: SurveyContext, view: RelationRow): boolean {
  const namesOf = (oids: readonly number[]) =>
    oids.flatMap((oid) => index.function.get(oid)?.name ?? []);
  const calledBy = (uses: readonly Use[]) => namesOf(uses.map((use) => use.function));
  const operatorsIn = (text: string) =>
    namesOf(catalog.operators.filter((row) => text.includes(row.name)).map((row) => row.function));
  const queryOf = ({ oid }: RelationRow) => index.rulesOf(oid).map((rule) => rule.definition);
  const seen = new Set<unknown>([view]);
  const texts = [
    ...queryOf(view),
    ...calledBy(index.usesOf(view.oid).filter((use) => use.class === 'pg_rewrite')),
    ...namesOf(catalog.casts.map((cast) => cast.function)),
    ...calledBy(catalog.uses.filter((use) => use.type !== 0)),
  ];
  for (const text of texts) {
    for (const name of [...namesIn(text), ...operatorsIn(text)]) {
      for (const row of index.relationsNamed(name)) {
        if (reach.relations.has(row)) return true;
        if (!seen.has(row)) texts.push(...queryOf(row));
        seen.add(row);
      }
      for (const row of index.functionsNamed(name)) {
        if (seen.has(row)) continue;
        seen.add(row);
        const body = row.sqlBody ?? row.source;
        const isLegible =
          row.kind === 'a' || ['sql', 'plpgsql'].includes(row.language) || row.extension !== null;
        if (!isLegible || namesIn(body).has('execute')) return true;
        texts.push(body, ...calledBy(index.callsBy(row.oid)));
      }
    }
  }
  return false;
}

/**
 * Without this use, the right to execute the function would be the next finding, so it is revoked
 * too.
 */
function closeUnused(
  { catalog, facts, index }: SurveyContext,
  uses: readonly Use[],
): readonly string[] {
  return [...new Set(uses.map((use) => use.function))].flatMap((oid) => {
    const row = index.function.get(oid);
    if (row === undefined || !index.executable.has(oid) || isVouchedFor(row, facts)) return [];
    const isUsedElsewhere = catalog.uses.some((use) => use.function === oid && !uses.includes(use));
    return isUsedElsewhere ? [] : closeExecute(row, facts.executor);
  });
}
