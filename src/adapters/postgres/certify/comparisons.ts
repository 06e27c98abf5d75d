import { quoteName } from '../../../postgres/identifier.ts';
import { tokenize } from './body.ts';
import type { FunctionRow, RelationRow } from './catalog.ts';
import { type CatalogIndex, typesBeneath } from './catalog-index.ts';
import { type StoredExpression, usesIn } from './expressions.ts';
import { at, isVouchedFor, type SurveyContext } from './facts.ts';
import { closeExecute } from './reach.ts';

/**
 * Application code that runs when values are compared or read: operator classes of indexes, and of
 * the types beneath ranges. Trusted logins look rows up by key, so they would run it with their own
 * rights.
 */
export function surveyComparisons(context: SurveyContext): void {
  const { catalog, facts, index, outlets } = context;
  const called = (oid: number) => {
    const row = index.function.get(oid);
    return row === undefined || isVouchedFor(row, facts) ? undefined : row.object;
  };
  const open = (table: RelationRow, what: string, by: string, fix: string) =>
    outlets.open(
      at.relation(table),
      `comparison in ${what} of ${table.object}`,
      `It calls ${by} whenever rows are looked up, also with the rights of trusted logins`,
      fix,
    );
  const keys = new Map(facts.relations.map(({ oid, key }) => [oid, key]));
  for (const table of readByTrusted(context)) {
    for (const use of index.usesOf(table.oid).filter((use) => use.class === 'pg_opclass')) {
      const by = called(use.function);
      const found = catalog.indexes.find(({ oid }) => oid === use.object);
      if (by && found) open(table, found.object, by, `DROP INDEX ${found.object}`);
    }
    for (const column of index.columnsOf(table.oid)) {
      if (keys.get(table.oid)?.includes(column.name) === false) continue;
      for (const oid of typesBeneath(index, [column.typeOid])) {
        const uses = index.usesOfType(oid).filter((use) => use.class === 'pg_type');
        const by = uses.map((use) => called(use.function)).find((name) => name !== undefined);
        const name = index.type.get(oid)?.name;
        const what = `column ${quoteName(column.name)}`;
        if (by && name) open(table, what, by, `DROP TYPE ${name} CASCADE`);
      }
    }
  }
}

const PLANNED = ['index', 'statistics', 'partition key', 'check'];

/**
 * Calls of application functions that are the same for every row, in indexes, checks, statistics
 * and partition keys of tables that trusted logins read. The server evaluates them while it plans a
 * query, with the rights of the role that asks. Our own reads would run application code with the
 * rights of the control login and of the owner of the evidence.
 */
export function surveyConstantCalls(context: SurveyContext): void {
  const { catalog, facts, index, outlets } = context;
  const trusted = [facts.control, facts.owner].map(quoteName).join(', ');
  const read = readByTrusted(context);
  for (const expression of index.expressions) {
    const { kind, oid, object, relation, close } = expression;
    const table = index.relation.get(relation);
    if (table === undefined || !read.has(table) || !PLANNED.includes(kind)) continue;
    const called = findConstantCall(context, expression);
    if (called === undefined) continue;
    // Without this use, the right to execute the function would be the next finding, so it is
    // revoked too.
    const isUsedElsewhere =
      !index.executable.has(called.oid) ||
      catalog.uses.some((use) => use.function === called.oid && use.object !== oid);
    outlets.open(
      at.relation(table),
      `constant call in ${object} of ${table.object}`,
      `It calls ${called.object} on no column, so that planning any query on the table runs it, also with the rights of trusted logins`,
      kind === 'partition key'
        ? `REVOKE ALL ON TABLE ${table.object} FROM ${trusted}`
        : close(table.object),
      ...(isUsedElsewhere ? [] : closeExecute(called, facts.executor)),
    );
  }
}

function findConstantCall(
  { facts, index }: SurveyContext,
  expression: StoredExpression,
): FunctionRow | undefined {
  const { oid, relation, text } = expression;
  const columns = new Set(index.columnsOf(relation).map(({ name }) => name));
  const uses = index
    .usesBy(oid)
    .filter((use) => use.class !== 'pg_opclass' && usesIn(expression, use));
  return uses
    .flatMap((use) => index.function.get(use.function) ?? [])
    .filter((row) => row.volatility !== 'v' && !isVouchedFor(row, facts))
    .find((row) => isConstantCall(text, row.name, columns));
}

/**
 * Whether some call of the function has no column among its arguments. A function that is called
 * only through an operator counts as such.
 */
function isConstantCall(definition: string, name: string, columns: ReadonlySet<string>): boolean {
  const tokens = tokenize(definition);
  const calls = [...tokens.keys()].filter(
    (at) =>
      tokens[at]?.kind !== 'string' && tokens[at]?.text === name && tokens[at + 1]?.text === '(',
  );
  if (calls.length === 0) return true;
  return calls.some((at) => {
    let depth = 0;
    for (let end = at + 1; end < tokens.length; end += 1) {
      const token = tokens[end];
      if (token?.kind === 'sign' && token.text === '(') depth += 1;
      if (token?.kind === 'sign' && token.text === ')') depth -= 1;
      if (depth === 0) return true;
      if (token && ['word', 'quoted'].includes(token.kind) && columns.has(token.text)) return false;
    }
    return true;
  });
}

/** Tables that the control login or the owner of the evidence may read, with their partitions. */
function readByTrusted({ catalog, facts, index }: SurveyContext): ReadonlySet<RelationRow> {
  const trusted = [facts.control, facts.owner];
  const granted = catalog.grants.filter(
    ({ kind, grantee }) => kind === 'TABLE' && trusted.includes(grantee),
  );
  const objects = new Set(granted.map(({ object }) => object));
  const tables = catalog.relations.filter(({ object }) => objects.has(object));
  return new Set(tables.flatMap((row) => [row, ...partitionsOf(index, row)]));
}

/** All partitions of a table, at every level. */
function partitionsOf(index: CatalogIndex, row: RelationRow): readonly RelationRow[] {
  const below = index.childrenOf(row.oid).filter((child) => child.partition);
  return below.flatMap((child) => [child, ...partitionsOf(index, child)]);
}
