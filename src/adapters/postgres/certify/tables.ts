import { quoteLiteral, quoteName } from '../../../postgres/identifier.ts';
import { createRecorders, recorderTriggers, TRUNCATE_TRIGGER } from '../provision/recorders.ts';
import type { Catalog, RelationRow, TriggerRow } from './catalog.ts';
import { conditionOf, surveyExpressions } from './expressions.ts';
import {
  type BoundaryFacts,
  isVouchedFor,
  type Outlets,
  type RegisteredRelation,
} from './facts.ts';
import { type Index, isLive, type Reach } from './reach.ts';
import { ownerFor } from './roles.ts';

/** The registered relations: are they what was registered, and is every write to them recorded? */
export function surveyRegistered(
  catalog: Catalog,
  facts: BoundaryFacts,
  index: Index,
  outlets: Outlets,
): void {
  const triggers = Map.groupBy(catalog.triggers, (row) => row.relation);
  for (const relation of facts.relations) {
    const row = index.relation.get(relation.oid);
    const before = outlets.problems.length;
    if (row === undefined) {
      outlets.open({
        outlet: `relation ${relation.target}`,
        object: relation.target,
        why: 'It is registered and no longer exists under its object id',
        fix: ['-- open the adapter again with the relations that exist'],
        needs: 'the deployment',
      });
      continue;
    }
    surveyShape(catalog, facts, row, outlets);
    for (const leaf of [row, ...partitionsOf(catalog, row)]) {
      surveyStorage(leaf, row, outlets);
      const isKnown = leaf === row || relation.leaves.some(({ oid }) => oid === leaf.oid);
      if (isKnown) surveyRecorders(relation, leaf, triggers.get(leaf.oid) ?? [], facts, outlets);
      else if (leaf.kind !== 'p') {
        outlets.open({
          outlet: `partition ${leaf.object}`,
          object: leaf.object,
          why: `It became a part of ${row.object} after that was registered; opening the adapter again would register it`,
          fix: [detach(catalog, leaf)],
          needs: `${quoteName(leaf.owner)} or a superuser`,
        });
      }
    }
    if (outlets.problems.length > before) continue;
    const uncompared =
      relation.volatile.length === 0
        ? ''
        : `; volatile and not compared: ${relation.volatile.join(', ')}`;
    outlets.observed(
      `relation ${relation.target}`,
      `${relation.bulk ? 'statement' : 'row'} recorders and counters${uncompared}`,
    );
  }
}

/** Every table beneath a partitioned one. */
export function partitionsOf(catalog: Catalog, row: RelationRow): readonly RelationRow[] {
  const below = catalog.relations.filter(
    (child) => child.partition && child.parents.includes(row.oid),
  );
  return below.flatMap((child) => [child, ...partitionsOf(catalog, child)]);
}

function detach(catalog: Catalog, leaf: RelationRow): string {
  const parent = catalog.relations.find(({ oid }) => oid === leaf.parents[0]);
  return `ALTER TABLE ${parent?.object} DETACH PARTITION ${leaf.object}`;
}

function surveyShape(
  catalog: Catalog,
  facts: BoundaryFacts,
  row: RelationRow,
  outlets: Outlets,
): void {
  const children = catalog.relations.filter(
    (child) => child.parents.includes(row.oid) && !child.partition,
  );
  const open = (outlet: string, why: string, fix: readonly string[]) =>
    outlets.open({
      outlet,
      object: row.object,
      why,
      fix,
      needs: `${quoteName(row.owner)} or a superuser`,
    });
  for (const child of children) {
    open(
      `inheritance of ${row.object}`,
      `${child.object} inherits from it: rows written through the parent lose columns in the record`,
      [`ALTER TABLE ${child.object} NO INHERIT ${row.object}`],
    );
  }
  for (const parent of row.partition ? [] : row.parents) {
    const name = catalog.relations.find(({ oid }) => oid === parent)?.object ?? '';
    open(`inheritance of ${row.object}`, `it inherits from ${name}`, [
      `ALTER TABLE ${row.object} NO INHERIT ${name}`,
    ]);
  }
  if (row.extension !== null && !isVouchedFor(row, facts)) {
    const why = `it belongs to extension ${row.extension}, whose code may act on its rows after the commit`;
    open(`extension of ${row.object}`, why, [
      `ALTER EXTENSION ${quoteName(row.extension)} DROP TABLE ${row.object}`,
    ]);
  }
  if (row.owner === facts.executor) {
    open(`ownership of ${row.object}`, 'the execution login owns it', [
      `ALTER TABLE ${row.object} OWNER TO ${quoteName(ownerFor(catalog, facts))}`,
    ]);
  }
}

function surveyStorage(leaf: RelationRow, root: RelationRow, outlets: Outlets): void {
  const needs = `${quoteName(leaf.owner)} or a superuser`;
  if (leaf.persistence === 'u') {
    const why =
      'It is unlogged: a crash of the server empties it after the commit was acknowledged';
    outlets.open({
      outlet: `persistence of ${leaf.object}`,
      object: leaf.object,
      why,
      fix: [`ALTER TABLE ${leaf.object} SET LOGGED`],
      needs,
    });
  }
  if (leaf.kind === 'f') {
    const why = `It is a foreign table below ${root.object}: its rows leave the database`;
    outlets.open({
      outlet: `foreign partition ${leaf.object}`,
      object: leaf.object,
      why,
      fix: [`ALTER TABLE ${root.object} DETACH PARTITION ${leaf.object}`],
      needs,
    });
  }
}

/** Whether a trigger's condition is exactly the one that lets other logins pass unrecorded. */
function recordsOnly(trigger: TriggerRow, executor: string): boolean {
  const condition = conditionOf(trigger);
  const literal = quoteLiteral(executor).trim();
  return condition === undefined || condition === `(SESSION_USER = ${literal}::name)`;
}

function surveyRecorders(
  relation: RegisteredRelation,
  leaf: RelationRow,
  triggers: readonly TriggerRow[],
  facts: BoundaryFacts,
  outlets: Outlets,
): void {
  const isRoot = leaf.oid === relation.oid;
  if (leaf.kind === 'f' || (relation.bulk && !isRoot)) return;
  for (const { name, calls, type } of recorderTriggers(relation.bulk)) {
    if (!isRoot && name === TRUNCATE_TRIGGER.name) continue;
    const found = triggers.find((trigger) => trigger.name === name);
    const isRight =
      found !== undefined &&
      found.functionSchema === 'effectmatch' &&
      found.functionName === calls &&
      found.type === type &&
      found.attributes === 0 &&
      !found.deferrable &&
      found.enabled === 'A' &&
      recordsOnly(found, facts.executor);
    if (isRight) continue;
    outlets.open({
      outlet: `recorder ${name} on ${leaf.object}`,
      object: leaf.object,
      why: found
        ? 'It is not as provisioning made it, or does not always fire'
        : 'It is missing, so writes would not be recorded',
      fix: createRecorders(relation, facts.executor),
      needs: `${quoteName(leaf.owner)} or a superuser`,
    });
  }
}

const FORCED =
  'deferrable; forced before the observation, and what it writes after that is refused';

/**
 * Schemas in which the execution login finds names; SET CONSTRAINTS finds a constraint in the
 * schema of its table.
 */
function usableSchemas(catalog: Catalog, { executor }: BoundaryFacts): ReadonlySet<string> {
  const granted = catalog.grants.filter(
    ({ kind, privilege, grantee }) =>
      kind === 'SCHEMA' && privilege === 'USAGE' && (grantee === '' || grantee === executor),
  );
  const objects = new Set(granted.map(({ object }) => object));
  return new Set(
    catalog.schemas.filter(({ object }) => objects.has(object)).map(({ name }) => name),
  );
}

/**
 * Code of the application that is put off until COMMIT and that the execution login cannot call for
 * earlier.
 */
function openUnforced(
  outlet: string,
  row: RelationRow,
  { catalog, facts, outlets }: { catalog: Catalog; facts: BoundaryFacts; outlets: Outlets },
): void {
  const schema = catalog.schemas.find(({ name }) => name === row.schema);
  outlets.open({
    outlet,
    object: row.object,
    why:
      'It is deferrable and runs code of the application. The execution login may not use its schema, so that code ' +
      'cannot be made to run before the observation, and would run at COMMIT',
    fix: [
      `GRANT USAGE ON SCHEMA ${schema?.object ?? quoteName(row.schema)} TO ${quoteName(facts.executor)}`,
    ],
    needs: `${quoteName(schema?.owner ?? row.owner)} or a superuser`,
  });
}

/** Triggers, rules and deferrable checks on everything a write can lead to. */
export function surveyAttached(
  catalog: Catalog,
  facts: BoundaryFacts,
  index: Index,
  reach: Reach,
  outlets: Outlets,
): void {
  surveyExpressions(catalog, index, reach, outlets);
  const usable = usableSchemas(catalog, facts);
  for (const trigger of catalog.triggers) {
    const row = index.relation.get(trigger.relation);
    if (
      row === undefined ||
      row.schema === 'effectmatch' ||
      trigger.functionSchema === 'effectmatch'
    )
      continue;
    const outlet = `trigger ${trigger.object} on ${row.object}`;
    if (!reach.relations.has(row)) continue;
    if (!isLive(trigger)) outlets.denied(outlet, 'it is disabled');
    else if (trigger.deferrable && trigger.functionName !== 'unique_key_recheck') {
      if (usable.has(row.schema)) outlets.observed(outlet, FORCED);
      else openUnforced(outlet, row, { catalog, facts, outlets });
    } else if (!trigger.internal)
      outlets.observed(outlet, 'its writes are recorded or counted; its function is judged below');
  }
  for (const constraint of catalog.constraints) {
    const row = index.relation.get(constraint.relation);
    if (!constraint.deferrable || row === undefined || !reach.relations.has(row)) continue;
    const calls = catalog.uses.some(
      (use) =>
        use.object === constraint.oid || (use.class === 'pg_class' && use.relation === row.oid),
    );
    const outlet = `constraint ${constraint.object} on ${row.object}`;
    if (constraint.kind === 'f' || !calls || usable.has(row.schema))
      outlets.observed(outlet, FORCED);
    else openUnforced(outlet, row, { catalog, facts, outlets });
  }
  for (const rule of catalog.rules) {
    const row = index.relation.get(rule.relation);
    if (row === undefined && rule.event !== '1') {
      const relation = /\bON \w+ TO (\S+)/.exec(rule.definition)?.[1] ?? '';
      outlets.open({
        outlet: `rule ${rule.object} on ${relation}`,
        object: relation,
        why: 'It is not one that the server came with, and what it does to a view of the server is not followed',
        fix: [`DROP RULE ${rule.object} ON ${relation}`],
        needs: 'superuser',
      });
    }
    if (row === undefined || !reach.relations.has(row)) continue;
    const outlet = `rule ${rule.object} on ${row.object}`;
    if (rule.event === '1')
      outlets.observed(
        `query of view ${row.object}`,
        'holds no data; what it reads and calls is followed',
      );
    else if (rule.enabled === 'D') outlets.denied(outlet, 'it is disabled');
    else {
      const fix = [`DROP RULE ${rule.object} ON ${row.object}`];
      const why = "It replaces or adds statements after the agent's own was read";
      outlets.open({
        outlet,
        object: row.object,
        why,
        fix,
        needs: `${quoteName(row.owner)} or a superuser`,
      });
    }
  }
  for (const policy of catalog.policies) {
    const row = index.relation.get(policy.relation);
    if (row && reach.relations.has(row))
      outlets.observed(
        `policy ${policy.object} on ${row.object}`,
        'restricts rows; the functions it calls are judged below',
      );
  }
}
