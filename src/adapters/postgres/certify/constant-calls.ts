import { quoteName } from '../../../postgres/identifier.ts';
import { tokenize } from './body.ts';
import type { Catalog, FunctionRow, RelationRow } from './catalog.ts';
import { type BoundaryFacts, isVouchedFor, type Outlets } from './facts.ts';
import { closeExecute, type Index } from './reach.ts';
import { partitionsOf } from './tables.ts';

/**
 * Calls of application functions that are the same for every row, in indexes, checks, statistics
 * and partition keys of tables that trusted logins read. The server computes them while it plans a
 * query, with the rights of whoever asks: our own reads would run the application's code with the
 * rights of the control login and of the owner of the evidence.
 */
export function surveyConstantCalls(
  catalog: Catalog,
  facts: BoundaryFacts,
  index: Index,
  outlets: Outlets,
): void {
  const trusted = [facts.control, facts.owner].map(quoteName).join(', ');
  const expressions = [
    ...catalog.indexes.map((row) => ({ ...row, close: () => `DROP INDEX ${row.object}` })),
    ...catalog.statistics.map((row) => ({ ...row, close: () => `DROP STATISTICS ${row.object}` })),
    ...catalog.relations.flatMap(({ partitionKey, ...row }) =>
      partitionKey === null
        ? []
        : [
            {
              ...{
                oid: row.oid,
                object: 'the partition key',
                relation: row.oid,
                definition: partitionKey,
              },
              close: (table: string) => `REVOKE ALL ON TABLE ${table} FROM ${trusted}`,
            },
          ],
    ),
    ...catalog.constraints
      .filter(({ kind }) => kind === 'c')
      .map((row) => ({
        ...row,
        close: (table: string) => `ALTER TABLE ${table} DROP CONSTRAINT ${row.object}`,
      })),
  ];
  const read = readByTrusted(catalog, facts);
  for (const { oid, object, relation, definition, close } of expressions) {
    const table = index.relation.get(relation);
    if (table === undefined || !read.has(table)) continue;
    const columns = new Set(
      catalog.columns.filter((row) => row.relation === relation).map(({ name }) => name),
    );
    const constant = catalog.uses
      .filter(
        (use) =>
          use.object === oid &&
          ['pg_class', 'pg_constraint', 'pg_statistic_ext'].includes(use.class),
      )
      .map((use) => index.function.get(use.function))
      .find(
        (row) =>
          row !== undefined &&
          isJudged(row, facts) &&
          isConstantCall(definition, row.name, columns),
      );
    if (constant === undefined) continue;
    // Without this use nothing but its rights would be left of the function, and they would be the
    // next finding.
    const isUsedElsewhere =
      !index.executable.has(constant.oid) ||
      catalog.uses.some((use) => use.function === constant.oid && use.object !== oid);
    outlets.open({
      outlet: `constant call in ${object} of ${table.object}`,
      object: table.object,
      why: `It calls ${constant.object} on no column, so that planning any query on the table runs it, also with the rights of trusted logins`,
      fix: [
        close(table.object),
        ...(isUsedElsewhere ? [] : closeExecute(constant, facts.executor)),
      ],
      needs: `${quoteName(table.owner)} or a superuser`,
    });
  }
}

function isJudged(row: FunctionRow, facts: BoundaryFacts): boolean {
  return !isVouchedFor(row, facts) && row.volatility !== 'v';
}

/** Tables that the control login or the owner of the evidence may read, with their partitions. */
export function readByTrusted(catalog: Catalog, facts: BoundaryFacts): ReadonlySet<RelationRow> {
  const objects = new Set(
    catalog.grants
      .filter(
        ({ kind, grantee }) =>
          kind === 'TABLE' && (grantee === facts.control || grantee === facts.owner),
      )
      .map(({ object }) => object),
  );
  return new Set(
    catalog.relations
      .filter(({ object }) => objects.has(object))
      .flatMap((row) => [row, ...partitionsOf(catalog, row)]),
  );
}

/**
 * Whether some call of the function has no column among its arguments; one behind an operator
 * counts as such.
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
