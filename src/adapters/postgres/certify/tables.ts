import { quoteLiteral, quoteName } from '../../../postgres/identifier.ts';
import type { Catalog, RelationRow, TriggerRow } from './catalog.ts';
import type { BoundaryFacts, Outlets, RegisteredRelation } from './facts.ts';
import { type Index, isLive, type Reach } from './reach.ts';
import { ownerFor } from './roles.ts';

const AFTER_ROW_DML = 1 + 4 + 8 + 16;
const EVENTS = { insert: 4, delete: 8, update: 16 } as const;
const BEFORE_TRUNCATE = 2 + 32;

/** The registered relations: are they what was registered, and is every write to them recorded? */
export function surveyRegistered(catalog: Catalog, facts: BoundaryFacts, index: Index, outlets: Outlets): void {
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
    for (const oid of new Set([relation.oid, ...relation.leaves.map((leaf) => leaf.oid)])) {
      const leaf = index.relation.get(oid);
      if (leaf === undefined) continue;
      surveyStorage(leaf, row, outlets);
      surveyRecorders(relation, leaf, triggers.get(oid) ?? [], facts, outlets);
    }
    if (outlets.problems.length > before) continue;
    const uncompared =
      relation.volatile.length === 0 ? '' : `; volatile and not compared: ${relation.volatile.join(', ')}`;
    outlets.observed(
      `relation ${relation.target}`,
      `${relation.bulk ? 'statement' : 'row'} recorders and counters${uncompared}`,
    );
  }
}

function surveyShape(catalog: Catalog, facts: BoundaryFacts, row: RelationRow, outlets: Outlets): void {
  const children = catalog.relations.filter((child) => child.parents.includes(row.oid) && !child.partition);
  const open = (outlet: string, why: string, fix: readonly string[]) =>
    outlets.open({ outlet, object: row.object, why, fix, needs: `${quoteName(row.owner)} or a superuser` });
  for (const child of children) {
    open(
      `inheritance of ${row.object}`,
      `${child.object} inherits from it: rows written through the parent lose columns in the record`,
      [`ALTER TABLE ${child.object} NO INHERIT ${row.object}`],
    );
  }
  for (const parent of row.partition ? [] : row.parents) {
    const name = catalog.relations.find(({ oid }) => oid === parent)?.object ?? '';
    open(`inheritance of ${row.object}`, `it inherits from ${name}`, [`ALTER TABLE ${row.object} NO INHERIT ${name}`]);
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
    const why = 'It is unlogged: a crash of the server empties it after the commit was acknowledged';
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
  const condition = /\bWHEN \((.*)\) EXECUTE (?:FUNCTION|PROCEDURE)/s.exec(trigger.definition)?.[1];
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
  if (leaf.kind === 'f') return;
  const when = `WHEN (SESSION_USER = ${quoteLiteral(facts.executor).trim()})`;
  const events = Object.entries(EVENTS) as [keyof typeof EVENTS, number][];
  const wanted = relation.bulk
    ? events.map(([event, type]) => ({
        name: `effectmatch_record_${event}`,
        type,
        function: 'record_statement',
        create: `AFTER ${event.toUpperCase()}${transitions(event)} FOR EACH STATEMENT ${when}`,
      }))
    : [
        {
          name: 'effectmatch_record',
          type: AFTER_ROW_DML,
          function: 'record_row',
          create: `AFTER INSERT OR UPDATE OR DELETE FOR EACH ROW ${when}`,
        },
      ];
  for (const recorder of [
    ...wanted,
    {
      name: 'effectmatch_truncate',
      type: BEFORE_TRUNCATE,
      function: 'refuse_truncate',
      create: 'BEFORE TRUNCATE FOR EACH STATEMENT',
    },
  ]) {
    const found = triggers.find(({ name }) => name === recorder.name);
    const isRight =
      found !== undefined &&
      found.functionSchema === 'effectmatch' &&
      found.functionName === recorder.function &&
      found.type === recorder.type &&
      found.attributes === 0 &&
      !found.deferrable &&
      recordsOnly(found, facts.executor);
    if (isRight && found.enabled === 'A') continue;
    const always = `ALTER TABLE ${leaf.object} ENABLE ALWAYS TRIGGER ${recorder.name}`;
    const insert = create(recorder, leaf, found);
    outlets.open({
      outlet: `recorder ${recorder.name} on ${leaf.object}`,
      object: leaf.object,
      why: isRight
        ? 'It does not fire in every session'
        : found
          ? 'It is not the recorder that provisioning made'
          : 'It is missing, so writes would not be recorded',
      fix: isRight ? [always] : [...insert, always],
      needs: `${quoteName(leaf.owner)} or a superuser`,
    });
  }
}

function create(
  recorder: { name: string; create: string; function: string },
  leaf: RelationRow,
  found: TriggerRow | undefined,
): readonly string[] {
  const make = `CREATE TRIGGER ${recorder.name} ${recorder.create.replace(/^((?:AFTER|BEFORE) [A-Z]+(?: OR [A-Z]+)*)/, `$1 ON ${leaf.object}`)} EXECUTE FUNCTION effectmatch.${recorder.function}()`;
  return found === undefined ? [make] : [`DROP TRIGGER ${recorder.name} ON ${leaf.object}`, make];
}

function transitions(event: keyof typeof EVENTS): string {
  if (event === 'insert') return ' REFERENCING NEW TABLE AS became';
  return event === 'delete' ? ' REFERENCING OLD TABLE AS was' : ' REFERENCING OLD TABLE AS was NEW TABLE AS became';
}

/** Triggers, rules and deferrable checks on everything a write can lead to. */
export function surveyAttached(catalog: Catalog, index: Index, reach: Reach, outlets: Outlets): void {
  for (const trigger of catalog.triggers) {
    const row = index.relation.get(trigger.relation);
    if (row === undefined || row.schema === 'effectmatch' || trigger.name.startsWith('effectmatch_')) continue;
    const outlet = `trigger ${trigger.object} on ${row.object}`;
    if (!reach.relations.has(row)) continue;
    if (!isLive(trigger)) outlets.denied(outlet, 'it is disabled');
    else if (trigger.deferrable && trigger.functionName !== 'unique_key_recheck') {
      outlets.open({
        outlet,
        object: row.object,
        why: 'It is deferrable: it can put itself off until after the observation and write at COMMIT',
        fix: [`ALTER TABLE ${row.object} DISABLE TRIGGER ${trigger.object}`],
        needs: `${quoteName(row.owner)} or a superuser`,
      });
    } else if (!trigger.internal)
      outlets.observed(outlet, 'its writes are recorded or counted; its function is judged below');
  }
  for (const constraint of catalog.constraints) {
    const row = index.relation.get(constraint.relation);
    if (!constraint.deferrable || row === undefined || !reach.relations.has(row)) continue;
    const calls = catalog.uses.some(
      (use) => use.object === constraint.oid || (use.class === 'pg_class' && use.relation === row.oid),
    );
    const outlet = `constraint ${constraint.object} on ${row.object}`;
    if (constraint.kind === 'f' || !calls) outlets.observed(outlet, 'deferrable; forced before the observation');
    else {
      outlets.open({
        outlet,
        object: row.object,
        why: 'It is deferrable and calls application functions, which would run at COMMIT',
        fix: [`ALTER TABLE ${row.object} DROP CONSTRAINT ${constraint.object}`],
        needs: `${quoteName(row.owner)} or a superuser`,
      });
    }
  }
  for (const rule of catalog.rules) {
    const row = index.relation.get(rule.relation);
    if (row === undefined || !reach.relations.has(row)) continue;
    const outlet = `rule ${rule.object} on ${row.object}`;
    if (rule.event === '1')
      outlets.observed(`view ${row.object}`, 'holds no data; what it reads and calls is followed');
    else if (rule.enabled === 'D') outlets.denied(outlet, 'it is disabled');
    else {
      const fix = [
        row.kind === 'v'
          ? `DROP RULE ${rule.object} ON ${row.object}`
          : `ALTER TABLE ${row.object} DISABLE RULE ${rule.object}`,
      ];
      const why = "It replaces or adds statements after the agent's own was read";
      outlets.open({ outlet, object: row.object, why, fix, needs: `${quoteName(row.owner)} or a superuser` });
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
