import { unreachable } from '../../errors.ts';
import type { Connection } from '../../postgres/connection.ts';
import { nameTarget, parseTarget, type QualifiedName } from '../../postgres/identifier.ts';
import { UNUSED } from '../../protocol/drawn.ts';
import type { ApprovedEffect, CellRow, Requirement, StateRead, StateReading } from '../../protocol/effect.ts';
import type { Manifest } from '../../protocol/manifest.ts';
import { suggest } from '../../protocol/nearest.ts';
import type { Registration } from '../../protocol/registration.ts';
import type { Row, Value } from '../../protocol/value.ts';
import { CastBatch } from './cast.ts';
import { assignedBy } from './catalog-column.ts';
import { normaliseInsert, normaliseKey, normaliseRemoved, normaliseUpdate, type Place } from './normalise-row.ts';
import { checkKeyColumns, findColumn, findRelation, invalid, keyedRelation, type Relations } from './reading.ts';

/** What normalising needs: shapes, what was registered, and two ways to the database. */
export interface NormaliseTools {
  readonly registration: Registration;
  /** The registered relations, and those that the manifest reads beside them (see {@link namedRelations}). */
  readonly relations: Relations;
  readonly isolation: 'read committed' | 'serializable';
  /** Registered views, of which no effect can be stated. */
  readonly views?: readonly QualifiedName[];
  /** Lends a session of the execution login for casts. */
  readonly withExecution: <T>(use: (session: Connection) => Promise<T>) => Promise<T>;
  /** Reads rows with the control login. */
  readonly read: (reads: readonly StateRead[]) => Promise<readonly StateReading[]>;
}

/** Every relation that a manifest names, once; names that are none are left to {@link normaliseManifest} to refuse. */
export function namedRelations(manifest: Manifest): readonly QualifiedName[] {
  const targets = new Set([...manifest.effects, ...manifest.requires, ...manifest.watch].map(({ target }) => target));
  return [...targets].flatMap((target) => parseTarget(target) ?? []);
}

/**
 * The manifest with every value as its column would store it and every effect with exactly the columns that the profile
 * reports: omitted columns of an insert get their constant default, unstated old values become "any". All values are
 * cast in one round trip. Idempotent, so that what was signed can be normalised again and stays the same.
 */
export async function normaliseManifest(tools: NormaliseTools, manifest: Manifest): Promise<Manifest> {
  const casts = new CastBatch();
  const stated = normaliseWith(tools, casts, manifest);
  if (casts.isEmpty) return await refuseUnlockable(tools, stated);
  await tools.withExecution((session) => casts.run(session));
  return await refuseUnlockable(tools, normaliseWith(tools, casts, manifest));
}

/** Reads with keys as the key columns store them, for reads that no manifest went before. */
export async function normaliseReads(
  tools: Pick<NormaliseTools, 'relations' | 'withExecution'>,
  reads: readonly StateRead[],
): Promise<readonly StateRead[]> {
  const casts = new CastBatch();
  const pass = () =>
    reads.map((read, index) => normaliseRead(tools.relations, casts, read, `read ${index + 1} of "${read.target}"`));
  const stated = pass();
  if (casts.isEmpty) return stated;
  await tools.withExecution((session) => casts.run(session));
  return pass();
}

function normaliseWith(tools: NormaliseTools, casts: CastBatch, manifest: Manifest): Manifest {
  const effects = manifest.effects.map((effect, index) =>
    normaliseEffect(tools, casts, effect, `effects[${index}] (${effect.op} ${effect.target})`),
  );
  checkLabels(tools, effects);
  return {
    ...manifest,
    effects,
    requires: manifest.requires.map((requirement, index) =>
      normaliseRequirement(tools, casts, requirement, `requires[${index}] (${requirement.target})`),
    ),
    watch: manifest.watch.map((read, index) =>
      normaliseRead(tools.relations, casts, read, `watch[${index}] (${read.target})`),
    ),
  };
}

function normaliseEffect(
  { registration, relations, views = [] }: NormaliseTools,
  casts: CastBatch,
  effect: ApprovedEffect,
  where: string,
): ApprovedEffect {
  const relation = findRelation(relations, effect.target);
  const target = registration.targets.find(({ name }) => name === relation?.target);
  const sequence = relation === undefined ? findSequence(registration, effect.target) : undefined;
  if (sequence !== undefined) return normaliseUnused(sequence, effect, where);
  if (relation === undefined || target === undefined) {
    const stated = parseTarget(effect.target);
    const isView = views.some(({ schema, name }) => schema === stated?.schema && name === stated.name);
    if (isView) throw invalid(where, `"${effect.target}" is a view; state what happens to the tables beneath it`);
    const names = registration.targets.map(({ name }) => name);
    throw invalid(where, `"${effect.target}" is not registered${suggest(effect.target, names)}`);
  }
  const { op, count, key, before = {}, after = {} } = effect;
  const statesRows = key !== undefined || effect.before !== undefined || effect.after !== undefined;
  const base = { op, target: target.name, count };
  if (registration.profile === 'relation-write') {
    if (!statesRows) return base;
    throw invalid(where, `the profile relation-write counts writes and sees no rows; use writes('${op}', …)`);
  }
  if (!statesRows) {
    throw invalid(where, `counts of writes need the profile relation-write; ${registration.profile} compares rows`);
  }
  const place: Place = { casts, relation, target, where, profile: registration.profile };
  refuseForeignKeyCells(place, key);
  switch (op) {
    case 'insert':
      return { ...base, ...normaliseInsert(place, { ...key, ...after }) };
    case 'update':
      return { ...base, ...normaliseKey(place, key), ...normaliseUpdate(place, { key: key ?? {}, before, after }) };
    case 'delete':
      return { ...base, ...normaliseKey(place, key), before: normaliseRemoved(place, before) };
    default:
      return unreachable(op);
  }
}

/** What is registered and no relation is a sequence. */
function findSequence({ targets }: Registration, stated: string): string | undefined {
  const name = parseTarget(stated);
  return targets.find(({ name: target }) => target === (name && nameTarget(name)))?.name;
}

/** Numbers that no row has: the one thing that can be stated about a sequence. */
function normaliseUnused(target: string, effect: ApprovedEffect, where: string): ApprovedEffect {
  const { op, key, before, after, count } = effect;
  const [cells, was] = [after?.[UNUSED], before?.[UNUSED]];
  const isWhole = (value: Value) => Number.isSafeInteger(value) && Number(value) > 0;
  const stated = cells === undefined ? [] : 'is' in cells ? [cells.is] : 'oneOf' in cells ? cells.oneOf : [1];
  const says = [after, before].every((side) => Object.keys(side ?? {}).join() === UNUSED);
  const fits = cells !== undefined && !('generated' in cells) && stated.every(isWhole);
  if (op === 'update' && key === undefined && says && fits && count === 1 && was && 'is' in was && was.is === 0)
    return { op, target, before: { [UNUSED]: { is: 0 } }, after: { [UNUSED]: cells }, count };
  throw invalid(where, `"${target}" is a sequence; write unused('${target}', 3) for numbers that no row has`);
}

function refuseForeignKeyCells({ relation, where }: Place, key: CellRow | undefined): void {
  if (relation.key.length > 0 || key === undefined) return;
  throw invalid(
    where,
    `"${relation.target}" has no primary key; state its columns in the row, as in remove('…', null, {…})`,
  );
}

/** A label needs at least one inserted cell whose value the database itself assigns; elsewhere there is no evidence. */
function checkLabels(tools: NormaliseTools, effects: readonly ApprovedEffect[]): void {
  const assigned = new Set<string>();
  const used = new Map<string, string>();
  effects.forEach((effect, index) => {
    const relation = findRelation(tools.relations, effect.target);
    const cells = [effect.key, effect.before, effect.after].flatMap((side) => Object.entries(side ?? {}));
    for (const [name, cell] of cells) {
      if (!('generated' in cell) || relation === undefined) continue;
      const where = `effects[${index}] (${effect.op} ${effect.target})`;
      used.set(cell.generated, `${where}, column "${name}"`);
      const by = assignedBy(findColumn(relation, name, where));
      if (effect.op === 'insert' && by !== undefined) assigned.add(cell.generated);
    }
  });
  for (const [label, where] of used) {
    if (assigned.has(label)) continue;
    throw invalid(
      where,
      `generated('${label}') must also stand in an insert, on a column with an identity, sequence or uuid default`,
    );
  }
}

function normaliseRequirement(
  { relations, isolation }: NormaliseTools,
  casts: CastBatch,
  { target, key, row }: Requirement,
  where: string,
): Requirement {
  if (row === null && isolation === 'read committed') throw invalid(where, UNLOCKABLE);
  const relation = keyedRelation(relations, target, where);
  checkKeyColumns(relation, Object.keys(key), where);
  const cast = (values: Row): Row =>
    Object.fromEntries(
      Object.entries(values).map(([name, value]) => [
        name,
        casts.value(findColumn(relation, name, where), value, where),
      ]),
    );
  return { target: relation.target, key: cast(key), row: row === null ? null : cast(row) };
}

function normaliseRead(relations: Relations, casts: CastBatch, read: StateRead, where: string): StateRead {
  const relation = keyedRelation(relations, read.target, where);
  checkKeyColumns(relation, Object.keys(read.key), where);
  for (const column of read.columns ?? []) findColumn(relation, column, where);
  const key = Object.entries(read.key).map(
    ([name, value]) => [name, casts.value(findColumn(relation, name, where), value, where)] as const,
  );
  return { ...read, target: relation.target, key: Object.fromEntries(key) };
}

const UNLOCKABLE =
  'a row that does not exist cannot be locked, so under read committed another session could insert it after the check;' +
  " open the adapter with isolation: 'serializable', or depend on a row that exists";

/** Under read committed, watched rows are kept by row locks, which only rows that exist can have. */
async function refuseUnlockable(tools: NormaliseTools, manifest: Manifest): Promise<Manifest> {
  if (tools.isolation === 'serializable' || manifest.watch.length === 0) return manifest;
  const readings = await tools.read(manifest.watch);
  const index = readings.findIndex(({ row }) => row === null);
  if (index >= 0) throw invalid(`watch[${index}] (${manifest.watch[index]?.target})`, UNLOCKABLE);
  return manifest;
}
