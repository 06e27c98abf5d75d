import { EffectMatchError } from '../../../errors.ts';
import { refused } from '../options.ts';
import { reachUnder } from './changes.ts';
import { closeUse } from './expressions.ts';
import {
  at,
  describeProblem,
  type PostgresSurvey,
  type Problem,
  type SurveyContext,
} from './facts.ts';
import type { Touched } from './reach.ts';

const ON_EVIDENCE = 'code on the evidence: ';

/**
 * Triggers, rules, policies, expressions and children that others added to our own tables. They
 * would run with the rights of the owner of the evidence, some of them after the observation, or
 * pose as evidence.
 */
export function surveyEvidenceTables({ catalog, index, outlets }: SurveyContext): void {
  const isOurs = (oid: number) => index.function.get(oid)?.schema === 'effectmatch';
  for (const table of catalog.relations.filter(({ schema }) => schema === 'effectmatch')) {
    const { object, oid } = table;
    const open = (what: string, ...fix: readonly string[]) =>
      outlets.open(
        at.owned(table),
        `${ON_EVIDENCE}${what} on ${object}`,
        'It is none of ours, and would run with the rights of the owner of the evidence, or pose as evidence',
        ...fix,
      );
    for (const trigger of index.triggersOf(oid))
      if (trigger.functionSchema !== 'effectmatch')
        open(`trigger ${trigger.object}`, `DROP TRIGGER ${trigger.object} ON ${object}`);
    for (const { kind, relation, what, close } of index.expressions)
      if (relation === oid && (kind === 'rule' || kind === 'policy')) open(what, close(object));
    for (const use of index.usesOf(oid))
      if (!isOurs(use.function)) open(use.description, ...closeUse(index, use, object));
    for (const child of index.childrenOf(oid))
      open(
        `${child.object} that inherits from it`,
        `ALTER TABLE ${child.object} NO INHERIT ${object}`,
      );
  }
}

/**
 * Refuses to open an adapter if others added code to our tables, because opening writes a marker
 * and removes it again.
 */
export function demandOwnEvidence({ problems }: PostgresSurvey): void {
  const found = problems.filter(({ outlet }) => outlet.startsWith(ON_EVIDENCE));
  if (found.length > 0) throw refused(describeProblems(found));
}

/**
 * Refuses an open outlet before anything is cast or read for an approval. Casts run no application
 * code, but an open outlet can be a built-in function that was replaced, or an index whose function
 * runs when a query is planned.
 */
export function demandClosed(survey: PostgresSurvey, touched: Touched): void {
  if (survey.problems.length === 0) return;
  const reached = reachUnder(survey, touched);
  const problems = survey.problems.filter(
    ({ behind }) => behind === undefined || reached?.has(behind) !== false,
  );
  if (problems.length === 0) return;
  throw new EffectMatchError(
    'ERR_EM_BOUNDARY_OPEN',
    `postgres: nothing is cast or read through an open outlet; \`effectmatch doctor\` lists them. ${describeProblems(problems)}`,
  );
}

function describeProblems(problems: readonly Problem[]): string {
  return problems.map((problem) => `${problem.outlet}: ${describeProblem(problem)}`).join('; ');
}
