import { quoteName } from '../../../postgres/identifier.ts';
import { tokenize } from './body.ts';
import type { FunctionRow } from './catalog.ts';
import { type StoredExpression, usesIn } from './expressions.ts';
import { isVouchedFor, type SurveyContext } from './facts.ts';
import { closeExecute } from './reach.ts';
import { readByTrusted } from './tables.ts';

const PLANNED = ['index', 'statistics', 'partition key', 'check'];

/**
 * Calls of application functions that are the same for every row, in indexes, checks, statistics
 * and partition keys of tables that trusted logins read. The server computes them while it plans a
 * query, with the rights of the role that asks: our own reads would run the application's code with
 * the rights of the control login and of the owner of the evidence.
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
    // Without this use only the right to the function would be left, and it would be the next
    // finding.
    const isUsedElsewhere =
      !index.executable.has(called.oid) ||
      catalog.uses.some((use) => use.function === called.oid && use.object !== oid);
    outlets.openOn(table, {
      outlet: `constant call in ${object} of ${table.object}`,
      why: `It calls ${called.object} on no column, so that planning any query on the table runs it, also with the rights of trusted logins`,
      fix: [
        kind === 'partition key'
          ? `REVOKE ALL ON TABLE ${table.object} FROM ${trusted}`
          : close(table.object),
        ...(isUsedElsewhere ? [] : closeExecute(called, facts.executor)),
      ],
    });
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
