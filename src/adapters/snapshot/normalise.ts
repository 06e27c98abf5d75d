import { unreachable } from '../../errors.ts';
import { sameValue } from '../../protocol/bag.ts';
import { checkCell } from '../../protocol/constraint.ts';
import type { ApprovedEffect, Cell, CellRow, Requirement } from '../../protocol/effect.ts';
import type { Manifest } from '../../protocol/manifest.ts';
import type { Row, Value } from '../../protocol/value.ts';
import {
  type FoundList,
  findCollection,
  findList,
  invalid,
  normaliseElementField,
  normaliseField,
  normaliseRest,
  readPath,
} from './cells.ts';
import { OTHER_FIELDS } from './declared.ts';
import { ABSENT } from './document.ts';
import { listKnown } from './known-names.ts';
import { type Collection, type Layout, withWholeLists } from './layout.ts';
import { checkKeyColumns, normaliseKey, normaliseRead } from './reading.ts';

/**
 * The manifest with every value as the observer reports it (JSON only, unordered lists in their fixed order) and every
 * effect with exactly the columns that a difference has. Nothing is filled in for an inserted record: a field that is
 * not stated must be absent. Unstated old values become "any". Idempotent.
 */
export function normaliseManifest(layout: Layout, manifest: Manifest): Manifest {
  const effects = manifest.effects.map((effect, index) =>
    normaliseEffect(layout, effect, `effects[${index}] (${effect.op} ${effect.target})`),
  );
  checkLabels(layout, effects);
  const whole = withWholeLists(layout);
  return {
    ...manifest,
    effects,
    requires: manifest.requires.map((requirement, index) =>
      normaliseRequirement(whole, requirement, `requires[${index}]`),
    ),
    watch: manifest.watch.map((read, index) => normaliseRead(whole, read, `watch[${index}]`)),
  };
}

/** One target with how its values are read and which columns its effects have beside the key. */
interface Place {
  readonly where: string;
  readonly key: readonly string[];
  readonly compared: readonly string[];
  readonly volatile: readonly string[];
  readonly absent: (column: string) => Value | undefined;
  readonly normalise: (column: string, value: Value) => Value;
}

function normaliseEffect(layout: Layout, effect: ApprovedEffect, where: string): ApprovedEffect {
  const { key, before, after } = effect;
  const list = findList(layout, effect.target);
  if (list !== undefined) return normaliseElement(list, effect, where);
  const collection = findCollection(layout, effect.target, where);
  if (key === undefined && before === undefined && after === undefined) {
    throw invalid(where, 'counts of writes need an event profile; this adapter compares records, so state them');
  }
  const row = { ...key, ...(effect.op === 'insert' ? after : {}) };
  const place = collection === undefined ? restPlace(layout, row, where) : collectionPlace(collection, where);
  switch (effect.op) {
    case 'insert':
      checkColumns(place, Object.keys(row), [...place.key, ...place.compared, ...place.volatile]);
      return { ...effect, key: keyCells(place, collection, row), after: insertedCells(place, row) };
    case 'update':
      checkKeyColumns(collection, Object.keys(key ?? {}), where);
      return {
        ...effect,
        key: keyCells(place, collection, key ?? {}),
        ...updatedCells(place, before ?? {}, after ?? {}),
      };
    case 'delete':
      checkKeyColumns(collection, Object.keys(key ?? {}), where);
      checkColumns(place, Object.keys(before ?? {}), [...place.compared, ...place.volatile]);
      return {
        ...effect,
        key: keyCells(place, collection, key ?? {}),
        before: cells(place, place.compared, before ?? {}),
      };
    default:
      return unreachable(effect.op);
  }
}

/** An element is all there is of its row: it comes or goes, and what is not stated of one that goes may be anything. */
function normaliseElement(found: FoundList, effect: ApprovedEffect, where: string): ApprovedEffect {
  const { op, key, before, after } = effect;
  if (op === 'update') throw invalid(where, 'elements have no key; state the one that goes and the one that comes');
  const place = elementPlace(found, where);
  const row = { ...key, ...(op === 'insert' ? after : before) };
  checkColumns(place, Object.keys(row), place.compared);
  const { key: _, ...rest } = effect;
  if (op === 'insert') return { ...rest, after: insertedCells(place, row) };
  return { ...rest, before: cells(place, place.compared, row) };
}

function elementPlace({ list, collection, unordered }: FoundList, where: string): Place {
  const { owner, fields, target } = list;
  return {
    where,
    key: [],
    compared: target.columns,
    volatile: [],
    absent: (column) => {
      if (column === OTHER_FIELDS) return {};
      return fields?.includes(column) === true ? ABSENT : undefined;
    },
    normalise: (column, value) => {
      const name = collection?.key[owner.indexOf(column)];
      if (collection !== undefined && name !== undefined) return normaliseField(collection, name, value, where);
      return normaliseElementField(list, column, value, { where, unordered });
    },
  };
}

function collectionPlace(collection: Collection, where: string): Place {
  const { volatile } = collection.target;
  return {
    where,
    key: collection.key,
    compared: [...collection.fields, OTHER_FIELDS].filter((name) => !volatile.includes(name)),
    volatile,
    absent: (column) => (column === OTHER_FIELDS ? {} : ABSENT),
    normalise: (column, value) => normaliseField(collection, column, value, where),
  };
}

/** Outside the collections the path is always known, because it decides how the value is read. */
function restPlace(layout: Layout, row: CellRow, where: string): Place {
  const cell = ownCell(row, 'path');
  if (cell === undefined || !('is' in cell)) throw invalid(where, 'path must be stated exactly');
  readPath(layout, cell.is, where);
  const path = String(cell.is);
  return {
    where,
    key: ['path'],
    compared: ['value'],
    volatile: [],
    absent: () => undefined,
    normalise: (column, value) => (column === 'path' ? value : normaliseRest(layout, path, value, where)),
  };
}

function insertedCells(place: Place, row: CellRow): CellRow {
  const filled = place.compared.map((name): [string, Cell] => {
    const cell = ownCell(row, name);
    if (cell !== undefined) return [name, normaliseCell(place, name, cell)];
    const absent = place.absent(name);
    if (absent === undefined) throw invalid(place.where, `"${name}" must be stated`);
    return [name, { is: absent }];
  });
  return Object.fromEntries(filled);
}

function updatedCells(place: Place, before: CellRow, after: CellRow) {
  const { where, compared, volatile } = place;
  checkColumns(place, [...Object.keys(before), ...Object.keys(after)], [...compared, ...volatile]);
  const untold = Object.keys(before).find((name) => !Object.hasOwn(after, name));
  if (untold !== undefined) throw invalid(where, `"${untold}" has a value before and none after; state both`);
  const names = Object.keys(after).filter((name) => !volatile.includes(name));
  if (Object.keys(after).length === 0)
    throw invalid(where, 'it changes no field, which is no effect here; leave it out');
  if (names.length === 0) throw invalid(where, 'all fields it names are volatile, which are not compared');
  const images = { before: cells(place, names, before), after: cells(place, names, after) };
  for (const name of names) {
    const from = images.before[name];
    const to = images.after[name];
    if (from === undefined || to === undefined || !('is' in from) || !('is' in to)) continue;
    if (sameValue(from.is, to.is)) throw invalid(where, `"${name}" is the same before and after; leave it out`);
  }
  return images;
}

/** These columns, with "any" for what is not stated. */
function cells(place: Place, names: readonly string[], row: CellRow): CellRow {
  return Object.fromEntries(
    names.map((name) => [name, normaliseCell(place, name, ownCell(row, name) ?? { any: true })]),
  );
}

function keyCells(place: Place, collection: Collection | undefined, row: CellRow): CellRow {
  const names = Object.keys(row).filter((name) => place.key.includes(name));
  checkKeyColumns(collection, names, place.where);
  return cells(place, place.key, row);
}

function checkColumns(place: Place, names: readonly string[], known: readonly string[]): void {
  const keyed = names.find((name) => place.key.includes(name) && !known.includes(name));
  if (keyed !== undefined) throw invalid(place.where, `"${keyed}" is part of the key, which does not change`);
  const unknown = names.find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const how = known.includes(OTHER_FIELDS) ? `; state undeclared fields together, as "${OTHER_FIELDS}"` : '';
  throw invalid(place.where, `there is no field "${unknown}"${listKnown(known)}${how}`);
}

/** A field may be called `constructor`, which every object seems to have. */
function ownCell(row: CellRow, name: string): Cell | undefined {
  return Object.hasOwn(row, name) ? row[name] : undefined;
}

function normaliseCell(place: Place, name: string, cell: Cell): Cell {
  if ('is' in cell) return { is: place.normalise(name, cell.is) };
  if ('oneOf' in cell) return { oneOf: cell.oneOf.map((value) => place.normalise(name, value)) };
  if (!('between' in cell)) return cell;
  const [low, high] = cell.between;
  const between = { between: [place.normalise(name, low), place.normalise(name, high)] as const };
  checkCell(between, `${place.where}, field "${name}"`);
  return between;
}

/** A label needs at least one cell whose new values the tools generate; anywhere else there is no evidence for it. */
function checkLabels(layout: Layout, effects: readonly ApprovedEffect[]): void {
  const backed = new Set<string>();
  const used = new Map<string, string>();
  effects.forEach(({ op, target, key, before, after }, index) => {
    const place = findList(layout, target)?.list ?? layout.collections.find(({ name }) => name === target);
    const generated = place?.generated ?? [];
    for (const [name, cell] of [key, before, after].flatMap((row) => Object.entries(row ?? {}))) {
      if (!('generated' in cell)) continue;
      used.set(cell.generated, `effects[${index}] (${op} ${target}), field "${name}"`);
      if (generated.includes(name)) backed.add(cell.generated);
    }
  });
  for (const [label, where] of used) {
    if (backed.has(label)) continue;
    throw invalid(where, `generated('${label}') must also stand on a field that its collection declares as generated`);
  }
}

function normaliseRequirement(layout: Layout, { target, key, row }: Requirement, where: string): Requirement {
  const collection = findCollection(layout, target, where);
  const normal = normaliseKey(layout, collection, key, where);
  if (row === null) return { target, key: normal, row };
  const known = collection?.target.columns ?? ['path', 'value'];
  const unknown = Object.keys(row).find((name) => !known.includes(name));
  if (unknown !== undefined) throw invalid(where, `"${target}" has no column "${unknown}"${listKnown(known)}`);
  const entries = Object.entries(row).map(([name, value]): [string, Value] => {
    if (collection !== undefined) return [name, normaliseField(collection, name, value, where)];
    return [name, name === 'path' ? value : normaliseRest(layout, String(normal.path), value, where)];
  });
  return { target, key: normal, row: Object.fromEntries(entries) as Row };
}
