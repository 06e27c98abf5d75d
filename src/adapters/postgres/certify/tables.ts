import { RUN_PROVISION } from '../../../backend/failure.ts';
import { quoteLiteral, quoteName, quoteQualified } from '../../../postgres/identifier.ts';
import {
  createRecorders,
  type RecorderTrigger,
  recorderTriggers,
  TRUNCATE_TRIGGER,
} from '../provision/recorders.ts';
import { listSequences } from '../residue.ts';
import type { RelationRow, TriggerRow } from './catalog.ts';
import type { CatalogIndex } from './catalog-index.ts';
import { conditionOf } from './expressions.ts';
import { at, isVouchedFor, type RegisteredRelation, type SurveyContext } from './facts.ts';
import { ownerFor } from './listed.ts';

/**
 * Checks that the registered relations are what was registered, and that all writes are recorded.
 */
export function surveyRegistered(context: SurveyContext): void {
  const { facts, index, outlets } = context;
  for (const relation of facts.relations) {
    const row = index.relation.get(relation.oid);
    const before = outlets.problems.length;
    if (row === undefined) {
      outlets.open(
        { object: relation.target, needs: 'the deployment' },
        `relation ${relation.target}`,
        'It is registered and no longer exists under its object id',
        '-- open the adapter again with the relations that exist',
      );
      continue;
    }
    surveyShape(context, row);
    for (const leaf of [row, ...partitionsOf(index, row)]) {
      surveyStorage(context, leaf, row);
      surveyLeaf(context, relation, leaf);
    }
    if (outlets.problems.length > before) continue;
    const { bulk, volatile } = relation;
    const ignored =
      volatile.length === 0 ? '' : `; volatile and not compared: ${volatile.join(', ')}`;
    const recorders = `${bulk ? 'statement' : 'row'} recorders and counters`;
    outlets.observed(`relation ${relation.target}`, `${recorders}${ignored}`);
  }
}

/** All partitions of a table, at every level. */
function partitionsOf(index: CatalogIndex, row: RelationRow): readonly RelationRow[] {
  const below = index.childrenOf(row.oid).filter((child) => child.partition);
  return below.flatMap((child) => [child, ...partitionsOf(index, child)]);
}

function surveyShape({ catalog, facts, index, outlets }: SurveyContext, row: RelationRow): void {
  const open = (what: string, why: string, fix: string) =>
    outlets.open(at.relation(row), `${what} of ${row.object}`, why, fix);
  for (const child of index.childrenOf(row.oid).filter(({ partition }) => !partition)) {
    const why = `${child.object} inherits from it: rows written through the parent lose columns in the record`;
    open('inheritance', why, `ALTER TABLE ${child.object} NO INHERIT ${row.object}`);
  }
  for (const parent of row.partition ? [] : row.parents) {
    const name = index.relation.get(parent)?.object ?? '';
    open('inheritance', `it inherits from ${name}`, `ALTER TABLE ${row.object} NO INHERIT ${name}`);
  }
  if (row.extension !== null && !isVouchedFor(row, facts)) {
    const why = `it belongs to extension ${row.extension}, whose code may act on its rows after the commit`;
    const extension = quoteName(row.extension);
    open('extension', why, `ALTER EXTENSION ${extension} DROP TABLE ${row.object}`);
  }
  if (row.owner === facts.executor) {
    const owner = quoteName(ownerFor(catalog, facts));
    open('ownership', 'the execution login owns it', `ALTER TABLE ${row.object} OWNER TO ${owner}`);
  }
}

function surveyStorage({ outlets }: SurveyContext, leaf: RelationRow, root: RelationRow): void {
  if (leaf.persistence === 'u')
    outlets.open(
      at.relation(leaf),
      `persistence of ${leaf.object}`,
      'It is unlogged: a crash of the server empties it after the commit was acknowledged',
      `ALTER TABLE ${leaf.object} SET LOGGED`,
    );
  if (leaf.kind === 'f')
    outlets.open(
      at.relation(leaf),
      `foreign partition ${leaf.object}`,
      `It is a foreign table below ${root.object}: its rows leave the database`,
      `ALTER TABLE ${root.object} DETACH PARTITION ${leaf.object}`,
    );
}

function surveyLeaf(context: SurveyContext, relation: RegisteredRelation, leaf: RelationRow): void {
  const { index, outlets } = context;
  const isRoot = leaf.oid === relation.oid;
  const isKnown = isRoot || relation.leaves.some(({ oid }) => oid === leaf.oid);
  if (isKnown) surveyRecorders(context, relation, leaf, isRoot);
  else if (leaf.kind !== 'p') {
    const parent = index.relation.get(leaf.parents[0] ?? 0)?.object;
    const root = index.relation.get(relation.oid)?.object;
    outlets.open(
      at.relation(leaf),
      `partition ${leaf.object}`,
      `It became a part of ${root} after that was registered; opening the adapter again would register it`,
      `ALTER TABLE ${parent} DETACH PARTITION ${leaf.object}`,
    );
  }
}

function surveyRecorders(
  { facts, index, outlets }: SurveyContext,
  relation: RegisteredRelation,
  leaf: RelationRow,
  isRoot: boolean,
): void {
  if (leaf.kind === 'f' || (relation.bulk && !isRoot)) return;
  const place = { ...at.relation(leaf), keep: RUN_PROVISION };
  const open = (outlet: string, why: string) =>
    outlets.open(place, outlet, why, ...createRecorders(relation, facts.executor));
  const names = new Set(recorderTriggers(relation.bulk).map(({ name }) => name));
  if (!index.triggersOf(leaf.oid).some(({ name }) => names.has(name))) {
    open(`recorders on ${leaf.object}`, 'It is registered, and nothing records its writes yet');
    return;
  }
  for (const expected of recorderTriggers(relation.bulk)) {
    if (!isRoot && expected === TRUNCATE_TRIGGER) continue;
    const { name } = expected;
    const found = index.triggersOf(leaf.oid).find((trigger) => trigger.name === name);
    if (found && isIntact(found, expected, facts.executor)) continue;
    open(
      `recorder ${name} on ${leaf.object}`,
      found
        ? 'It is not as provisioning made it, or does not always fire'
        : 'It is missing, so writes would not be recorded',
    );
  }
}

/** Whether a recorder is as provisioned. Its condition may exclude only other logins. */
function isIntact(found: TriggerRow, expected: RecorderTrigger, executor: string): boolean {
  const condition = conditionOf(found);
  const onlyExecutor = `(SESSION_USER = ${quoteLiteral(executor).trim()}::name)`;
  return (
    found.functionSchema === 'effectmatch' &&
    found.functionName === expected.calls &&
    found.type === expected.type &&
    found.attributes === 0 &&
    !found.deferrable &&
    found.enabled === 'A' &&
    (condition === undefined || condition === onlyExecutor)
  );
}

/** Tables that the control login or the owner of the evidence may read, with their partitions. */
export function readByTrusted({ catalog, facts, index }: SurveyContext): ReadonlySet<RelationRow> {
  const trusted = [facts.control, facts.owner];
  const granted = catalog.grants.filter(
    ({ kind, grantee }) => kind === 'TABLE' && trusted.includes(grantee),
  );
  const objects = new Set(granted.map(({ object }) => object));
  const tables = catalog.relations.filter(({ object }) => objects.has(object));
  return new Set(tables.flatMap((row) => [row, ...partitionsOf(index, row)]));
}

/**
 * The sequences of registered columns. Draws from a sequence go unnoticed if its position cannot be
 * read, for example because it was added after the database was provisioned.
 */
export async function surveySequences({ control, facts, outlets }: SurveyContext): Promise<void> {
  const judged = new Set((await listSequences(control, facts.owner)).map(({ oid }) => oid));
  const before = outlets.problems.length;
  for (const { target, columns } of facts.relations) {
    const known = new Set(judged);
    for (const { name, draws } of columns) {
      for (const sequence of draws.filter((drawn) => !known.has(drawn.oid))) {
        known.add(sequence.oid);
        const object = quoteQualified(sequence);
        const owner = quoteName(facts.owner);
        outlets.open(
          // Not behind the table: code may draw from it by a name that it puts together.
          { object, needs: 'the owner of the sequence, or a superuser' },
          `sequence ${object}`,
          `It is there for ${target}.${name}, and ${owner} may not read it, so that draws would not be seen`,
          `GRANT SELECT ON SEQUENCE ${object} TO ${owner}`,
        );
      }
    }
  }
  if (outlets.problems.length === before)
    outlets.observed('sequences of registered columns', 'numbers that no row has are an effect');
}
