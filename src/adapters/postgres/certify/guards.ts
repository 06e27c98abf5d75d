import { EffectMatchError } from '../../../errors.ts';
import { quoteName } from '../../../postgres/identifier.ts';
import { refused } from '../options.ts';
import { SQL } from '../sql.ts';
import type { Catalog } from './catalog.ts';
import { conditionOf } from './expressions.ts';
import type { BoundaryFacts, Outlets, PostgresSurvey } from './facts.ts';
import { closeUse, type Index } from './reach.ts';

/** The checks at COMMIT that everything else relies on, and how the server describes them. */
const GUARDS = [
  { table: 'stage', name: 'effectmatch_guard', calls: 'guard', when: undefined },
  { table: 'marker', name: 'effectmatch_settled', calls: 'settle', when: '(new.xid IS NOT NULL)' },
] as const;
const AFTER_ROW_INSERT = 1 + 4;

/**
 * No transaction commits without its marker, or with a late write, only as long as both checks are
 * in place.
 */
export function surveyGuards(catalog: Catalog, { owner }: BoundaryFacts, outlets: Outlets): void {
  for (const { table, name, calls, when } of GUARDS) {
    const relation = catalog.relations.find(
      (row) => row.schema === 'effectmatch' && row.name === table,
    );
    const found = catalog.triggers.find(
      (row) => row.relation === relation?.oid && row.name === name,
    );
    const isRight =
      found !== undefined &&
      found.functionSchema === 'effectmatch' &&
      found.functionName === calls &&
      found.type === AFTER_ROW_INSERT &&
      found.enabled === 'A' &&
      found.definition.includes(' DEFERRABLE INITIALLY DEFERRED ') &&
      conditionOf(found) === when;
    if (isRight) continue;
    outlets.open({
      outlet: `check ${name} on effectmatch.${table}`,
      object: `effectmatch.${table}`,
      why: found
        ? 'It is not as provisioning made it, or does not always fire'
        : 'It is missing, so a transaction could commit without its marker or with a late write',
      fix: SQL.guards.all(),
      needs: `${quoteName(owner)} or a superuser`,
    });
  }
}

const STRANGER = 'code on the evidence: ';

/**
 * Triggers, rules, policies, expressions and children of others on our own tables. They would run
 * with the rights of the owner of the evidence, some of them after the observation, or pose as
 * evidence.
 */
export function surveyStrangers(catalog: Catalog, index: Index, outlets: Outlets): void {
  const ours = new Map(
    catalog.relations.filter((row) => row.schema === 'effectmatch').map((row) => [row.oid, row]),
  );
  const open = (what: string, relation: number, fix: readonly string[]) => {
    const table = ours.get(relation);
    if (table === undefined) return;
    outlets.open({
      outlet: `${STRANGER}${what} on ${table.object}`,
      object: table.object,
      why: 'It is none of ours, and would run with the rights of the owner of the evidence, or pose as evidence',
      fix: fix.map((statement) => statement.replace('{}', table.object)),
      needs: `${quoteName(table.owner)} or a superuser`,
    });
  };
  for (const { relation, object, functionSchema } of catalog.triggers)
    if (functionSchema !== 'effectmatch')
      open(`trigger ${object}`, relation, [`DROP TRIGGER ${object} ON {}`]);
  for (const { relation, object } of catalog.rules)
    open(`rule ${object}`, relation, [`DROP RULE ${object} ON {}`]);
  for (const { relation, object } of catalog.policies)
    open(`policy ${object}`, relation, [`DROP POLICY ${object} ON {}`]);
  for (const use of catalog.uses)
    if (index.function.get(use.function)?.schema !== 'effectmatch')
      open(use.description, use.relation, closeUse(catalog, use, ours.get(use.relation)));
  for (const child of catalog.relations)
    for (const parent of child.parents)
      open(`${child.object} that inherits from it`, parent, [
        `ALTER TABLE ${child.object} NO INHERIT {}`,
      ]);
}

/**
 * Opening an adapter writes and takes back a marker: with code of others on that table it must not
 * come to it.
 */
export function demandOwnEvidence({ problems }: PostgresSurvey): void {
  const strangers = problems.filter(({ outlet }) => outlet.startsWith(STRANGER));
  if (strangers.length === 0) return;
  throw refused(
    strangers
      .map(({ outlet, why, fix }) => `${outlet}: ${why}. Close it: ${fix.join('; ')}`)
      .join('; '),
  );
}

/**
 * Before anything is cast or read for an approval: casts need no code of the application, but an
 * open outlet can be a function of the server that was replaced, or an index whose function runs
 * when a query is planned.
 */
export function demandClosed({ problems }: Pick<PostgresSurvey, 'problems'>): void {
  if (problems.length === 0) return;
  const found = problems.map(
    ({ outlet, why, fix }) => `${outlet}: ${why}. Close it: ${fix.join('; ')}`,
  );
  throw new EffectMatchError(
    'ERR_EM_BOUNDARY_OPEN',
    `postgres: nothing is cast or read while an outlet is open; \`effectmatch doctor\` lists them. ${found.join('; ')}`,
  );
}
