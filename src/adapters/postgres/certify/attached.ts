import { quoteName } from '../../../postgres/identifier.ts';
import type { ConstraintRow, RelationRow, RuleRow, TriggerRow } from './catalog.ts';
import { isLive } from './expressions.ts';
import { at, type SurveyContext } from './facts.ts';
import { grantedTo } from './privileges.ts';

const FORCED =
  'deferrable; forced before the observation, and what it writes after that is refused';

/** Triggers, rules, policies and deferrable checks on every relation that a write can reach. */
export function surveyAttached(context: SurveyContext): void {
  const { catalog, index, reach, outlets } = context;
  const usable = usableSchemas(context);
  const relationAt = (oid: number) => {
    const row = index.relation.get(oid);
    return row !== undefined && reach.relations.has(row) ? row : undefined;
  };
  for (const trigger of catalog.triggers) {
    const row = relationAt(trigger.relation);
    if (row) surveyTrigger(context, trigger, row, usable);
  }
  for (const constraint of catalog.constraints) {
    const row = constraint.deferrable ? relationAt(constraint.relation) : undefined;
    if (row) surveyDeferrable(context, constraint, row, usable);
  }
  for (const rule of catalog.rules) surveyRule(context, rule, relationAt(rule.relation));
  for (const policy of catalog.policies) {
    const row = relationAt(policy.relation);
    if (row)
      outlets.observed(
        `policy ${policy.object} on ${row.object}`,
        'restricts rows; the functions it calls are judged below',
      );
  }
}

/**
 * Schemas in which the execution login may look up names. SET CONSTRAINTS looks for a constraint in
 * the schema of its table.
 */
function usableSchemas({ catalog, facts }: SurveyContext): ReadonlySet<string> {
  const usage = grantedTo(catalog, facts.executor).filter(
    ({ kind, privilege }) => kind === 'SCHEMA' && privilege === 'USAGE',
  );
  const objects = new Set(usage.map(({ object }) => object));
  const usable = catalog.schemas.filter(({ object }) => objects.has(object));
  return new Set(usable.map(({ name }) => name));
}

function surveyTrigger(
  context: SurveyContext,
  trigger: TriggerRow,
  row: RelationRow,
  usable: ReadonlySet<string>,
): void {
  const { outlets } = context;
  if (row.schema === 'effectmatch' || trigger.functionSchema === 'effectmatch') return;
  const outlet = `trigger ${trigger.object} on ${row.object}`;
  if (!isLive(trigger)) outlets.denied(outlet, 'it is disabled');
  else if (trigger.deferrable && trigger.functionName !== 'unique_key_recheck') {
    if (usable.has(row.schema)) outlets.observed(outlet, FORCED);
    else openUnforced(context, outlet, row);
  } else if (!trigger.internal)
    outlets.observed(outlet, 'its writes are recorded or counted; its function is judged below');
}

function surveyDeferrable(
  context: SurveyContext,
  constraint: ConstraintRow,
  row: RelationRow,
  usable: ReadonlySet<string>,
): void {
  const { index, outlets } = context;
  const runsCode =
    index.usesBy(constraint.oid).length > 0 ||
    index.usesOf(row.oid).some((use) => use.class === 'pg_class');
  const outlet = `constraint ${constraint.object} on ${row.object}`;
  if (constraint.kind === 'f' || !runsCode || usable.has(row.schema))
    outlets.observed(outlet, FORCED);
  else openUnforced(context, outlet, row);
}

/**
 * Application code that is deferred until COMMIT and that the execution login cannot force to run
 * earlier.
 */
function openUnforced(
  { catalog, facts, outlets }: SurveyContext,
  outlet: string,
  row: RelationRow,
): void {
  const schema = catalog.schemas.find(({ name }) => name === row.schema);
  const name = schema?.object ?? quoteName(row.schema);
  outlets.open(
    at.relation({ object: row.object, owner: schema?.owner ?? row.owner }),
    outlet,
    'It is deferrable and runs code of the application. The execution login may not use its schema, so that code ' +
      'cannot be made to run before the observation, and would run at COMMIT',
    `GRANT USAGE ON SCHEMA ${name} TO ${quoteName(facts.executor)}`,
  );
}

function surveyRule(
  { index, outlets }: SurveyContext,
  rule: RuleRow,
  row: RelationRow | undefined,
): void {
  if (!index.relation.has(rule.relation) && rule.event !== '1') {
    const relation = /\bON \w+ TO (\S+)/.exec(rule.definition)?.[1] ?? '';
    outlets.open(
      at.server(relation),
      `rule ${rule.object} on ${relation}`,
      'It is not one that the server came with, and what it does to a view of the server is not followed',
      `DROP RULE ${rule.object} ON ${relation}`,
    );
  }
  if (row === undefined) return;
  const outlet = `rule ${rule.object} on ${row.object}`;
  if (rule.event === '1') {
    const by = 'holds no data; what it reads and calls is followed';
    outlets.observed(`query of view ${row.object}`, by);
  } else if (rule.enabled === 'D') outlets.denied(outlet, 'it is disabled');
  else
    outlets.open(
      at.relation(row),
      outlet,
      "It replaces or adds statements after the agent's own was read",
      `DROP RULE ${rule.object} ON ${row.object}`,
    );
}
