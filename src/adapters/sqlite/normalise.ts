import { unreachable } from '../../errors.ts';
import { checkCell } from '../../protocol/constraint.ts';
import type { ApprovedEffect, Cell, CellRow, Requirement } from '../../protocol/effect.ts';
import type { Manifest } from '../../protocol/manifest.ts';
import { suggest } from '../../protocol/nearest.ts';
import { standsStill } from '../../protocol/normalise.ts';
import type { Registration, Target } from '../../protocol/registration.ts';
import type { Affinity } from './affinity.ts';
import type { Catalog, Column, Relation } from './catalog.ts';
import {
  castRow,
  castValue,
  checkKeyColumns,
  findColumn,
  invalid,
  list,
  normaliseKey,
  normaliseRead,
  readableRelation,
} from './reading.ts';

/** What normalising needs: the schema, SQLite's type system, and what was registered. */
export interface NormaliseTools {
  readonly catalog: Catalog;
  readonly affinity: Affinity;
  readonly registration: Registration;
}

/**
 * The manifest with every value as its column would store it and every effect with exactly the columns that a
 * changeset reports: omitted columns of an insert get their constant default, unstated old values become "any".
 * Idempotent, so that what was signed can be normalised again and stays the same.
 */
export function normaliseManifest(tools: NormaliseTools, manifest: Manifest): Manifest {
  const effects = manifest.effects.map((effect, index) =>
    normaliseEffect(tools, effect, `effects[${index}] (${effect.op} ${effect.target})`),
  );
  checkLabels(tools, effects);
  return {
    ...manifest,
    effects,
    requires: manifest.requires.map((requirement, index) =>
      normaliseRequirement(tools, requirement, `requires[${index}]`),
    ),
    watch: manifest.watch.map((read, index) => normaliseRead(tools, read, `watch[${index}]`)),
  };
}

interface Place {
  readonly tools: NormaliseTools;
  readonly relation: Relation;
  readonly target: Target;
  readonly where: string;
}

function normaliseEffect(tools: NormaliseTools, effect: ApprovedEffect, where: string): ApprovedEffect {
  const target = tools.registration.targets.find((candidate) => candidate.name === effect.target);
  if (target === undefined) {
    const names = tools.registration.targets.map((candidate) => candidate.name);
    throw invalid(where, `"${effect.target}" is not registered${suggest(effect.target, names)}`);
  }
  const place = { tools, target, where, relation: readableRelation(tools.catalog, effect.target, where) };
  const { key, before, after } = effect;
  if (key === undefined && before === undefined && after === undefined) {
    throw invalid(where, 'counts of writes need an event profile; this adapter compares rows, so state them');
  }
  switch (effect.op) {
    case 'insert':
      return { ...effect, ...normaliseInsert(place, { ...key, ...after }) };
    case 'update':
      return { ...effect, key: normaliseCellKey(place, key), ...normaliseUpdate(place, before ?? {}, after ?? {}) };
    case 'delete':
      return { ...effect, key: normaliseCellKey(place, key), before: normaliseRemoved(place, before ?? {}) };
    default:
      return unreachable(effect.op);
  }
}

function normaliseInsert(place: Place, row: CellRow): { readonly key: CellRow; readonly after: CellRow } {
  const { relation, where } = place;
  for (const name of Object.keys(row)) findColumn(relation, name, where);
  const cells = (columns: readonly Column[]): CellRow =>
    Object.fromEntries(columns.map((column) => [column.name, insertedCell(place, column, ownCell(row, column.name))]));
  return {
    key: cells(relation.key.map((name) => findColumn(relation, name, where))),
    after: cells(comparedColumns(place)),
  };
}

function insertedCell(place: Place, column: Column, cell: Cell | undefined): Cell {
  const { relation, tools, where } = place;
  if (cell !== undefined) return normaliseCell(place, column.name, cell);
  const at = `${where}, column "${column.name}"`;
  if (column.name === relation.rowidAlias) {
    throw invalid(at, `SQLite assigns this key; write ${column.name}: generated('new ${relation.name}') or its value`);
  }
  const text = column.defaultText ?? 'null';
  if (!LITERAL.test(text)) {
    throw invalid(at, `its default is computed (${text}); state the value, now() for the current time, or any()`);
  }
  const value = castValue(tools.affinity, relation, column.name, tools.affinity.literal(text), where);
  if (value === null && column.notNull) throw invalid(at, 'it is NOT NULL and has no default; state its value');
  return { is: value };
}

/** Text of a DEFAULT clause that means the same for every row: a number, string, blob, NULL, TRUE or FALSE. */
const LITERAL =
  /^(?:[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|[+-]?0x[0-9a-f]+|'(?:[^']|'')*'|x'(?:[0-9a-f]{2})*'|null|true|false)$/i;

function normaliseUpdate(
  place: Place,
  before: CellRow,
  after: CellRow,
): { readonly before: CellRow; readonly after: CellRow } {
  const { relation, target, where } = place;
  for (const name of [...Object.keys(after), ...Object.keys(before)]) {
    findColumn(relation, name, where);
    if (relation.key.includes(name)) {
      throw invalid(where, `"${name}" is part of the key; a changed key is a removed row and an inserted one`);
    }
  }
  const untold = Object.keys(before).filter((name) => !Object.hasOwn(after, name));
  if (untold.length > 0) throw invalid(where, `${list(untold)} has a value before and none after; state both`);
  const names = Object.keys(after).filter((name) => !target.volatile.includes(name));
  if (names.length === 0) throw invalid(where, Object.keys(after).length === 0 ? NO_CHANGE : ONLY_VOLATILE);
  const cells = (side: CellRow): CellRow =>
    Object.fromEntries(names.map((name) => [name, normaliseCell(place, name, ownCell(side, name) ?? { any: true })]));
  const images = { before: cells(before), after: cells(after) };
  const still = names.find((name) => standsStill(images.before[name], images.after[name]));
  if (still !== undefined) {
    throw invalid(where, `"${still}" is the same before and after as this column stores it; leave it out`);
  }
  return images;
}

const NO_CHANGE = 'it changes no column, which is no effect here; leave it out';
const ONLY_VOLATILE = 'all columns it names are volatile, which are not compared';

function normaliseRemoved(place: Place, before: CellRow): CellRow {
  const { relation, where } = place;
  for (const name of Object.keys(before)) {
    findColumn(relation, name, where);
    if (relation.key.includes(name)) throw invalid(where, `"${name}" is part of the key; state it there`);
  }
  return Object.fromEntries(
    comparedColumns(place).map(({ name }) => [
      name,
      normaliseCell(place, name, ownCell(before, name) ?? { any: true }),
    ]),
  );
}

/** The columns beside the key that take part in the comparison. */
function comparedColumns({ relation, target }: Place): readonly Column[] {
  return relation.columns.filter(({ name }) => !relation.key.includes(name) && !target.volatile.includes(name));
}

function normaliseCellKey(place: Place, key: CellRow | undefined): CellRow {
  checkKeyColumns(place.relation, Object.keys(key ?? {}), place.where);
  return Object.fromEntries(Object.entries(key ?? {}).map(([name, cell]) => [name, normaliseCell(place, name, cell)]));
}

/** A column may be called `constructor`, which every object seems to have. */
function ownCell(row: CellRow, name: string): Cell | undefined {
  return Object.hasOwn(row, name) ? row[name] : undefined;
}

function normaliseCell({ tools, relation, where }: Place, name: string, cell: Cell): Cell {
  const cast = (value: Parameters<typeof castValue>[3]) => castValue(tools.affinity, relation, name, value, where);
  if ('is' in cell) return { is: cast(cell.is) };
  if ('oneOf' in cell) return { oneOf: cell.oneOf.map(cast) };
  if ('between' in cell) {
    const between = { between: [cast(cell.between[0]), cast(cell.between[1])] as const };
    checkCell(between, `${where}, column "${name}"`);
    return between;
  }
  return cell;
}

/** A label needs at least one cell whose value SQLite itself assigns; anywhere else there is no evidence for it. */
function checkLabels(tools: NormaliseTools, effects: readonly ApprovedEffect[]): void {
  const assigned = new Set<string>();
  const used = new Map<string, string>();
  effects.forEach((effect, index) => {
    const alias = tools.catalog.relations.get(effect.target)?.rowidAlias;
    for (const [name, cell] of [effect.key, effect.before, effect.after].flatMap((cells) =>
      Object.entries(cells ?? {}),
    )) {
      if (!('generated' in cell)) continue;
      used.set(cell.generated, `effects[${index}] (${effect.op} ${effect.target}), column "${name}"`);
      if (name === alias) assigned.add(cell.generated);
    }
  });
  for (const [label, where] of used) {
    if (assigned.has(label)) continue;
    throw invalid(
      where,
      `generated('${label}') must also stand on an INTEGER PRIMARY KEY, the only key SQLite assigns`,
    );
  }
}

function normaliseRequirement(tools: NormaliseTools, requirement: Requirement, where: string): Requirement {
  const relation = readableRelation(tools.catalog, requirement.target, where);
  return {
    target: requirement.target,
    key: normaliseKey(tools.affinity, relation, requirement.key, where),
    row: requirement.row === null ? null : castRow(tools.affinity, relation, requirement.row, where),
  };
}
