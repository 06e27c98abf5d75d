import { isUnchanged as standsStill } from '../../backend/normalise.ts';
import { checkCell } from '../../protocol/constraint.ts';
import type { Cell, CellRow, Profile } from '../../protocol/effect.ts';
import type { Target } from '../../protocol/registration.ts';
import type { Value } from '../../protocol/value.ts';
import type { CastBatch } from './cast.ts';
import { assignedBy } from './catalog-column.ts';
import { isLiteral, isNull } from './default.ts';
import { checkKeyColumns, findColumn, invalid, list } from './reading.ts';
import type { Column, Relation } from './relation.ts';

/** One effect of a manifest, and what is known about its target. */
export interface Place {
  readonly casts: CastBatch;
  readonly relation: Relation;
  readonly target: Target;
  readonly profile: Exclude<Profile, 'relation-write'>;
  readonly where: string;
}

/** The key cells of an update or delete; nothing where the relation has no key. */
export function normaliseKey(place: Place, key: CellRow | undefined): { readonly key?: CellRow } {
  const { relation, where } = place;
  if (relation.key.length === 0) return {};
  checkKeyColumns(relation, Object.keys(key ?? {}), where);
  return { key: mapCells(place, Object.entries(key ?? {})) };
}

/** A whole new row: stated columns, and what the database fills in where that is known beforehand. */
export function normaliseInsert(place: Place, row: CellRow): { readonly key?: CellRow; readonly after: CellRow } {
  const { relation, where } = place;
  for (const name of Object.keys(row)) findColumn(relation, name, where);
  const cells = (columns: readonly Column[]): CellRow =>
    Object.fromEntries(columns.map((column) => [column.name, insertedCell(place, column, ownCell(row, column.name))]));
  const after = cells(comparedColumns(place));
  if (relation.key.length === 0) return { after };
  return { key: cells(relation.key.map((name) => findColumn(relation, name, where))), after };
}

function insertedCell(place: Place, column: Column, cell: Cell | undefined): Cell {
  const { relation, casts, where } = place;
  if (cell !== undefined) return normaliseCell(place, column, cell);
  const at = `${where}, column "${column.name}"`;
  // Follows from the other columns of the row, which are all compared.
  if (column.generated) return { any: true };
  if (assignedBy(column) !== undefined) {
    throw invalid(at, `the database assigns it; write ${column.name}: generated('new ${relation.name}') or its value`);
  }
  const { defaultText } = column;
  if (defaultText === undefined || isNull(defaultText)) {
    if (column.notNull) throw invalid(at, 'it is NOT NULL and has no default; state its value');
    return { is: casts.value(column, null, where) };
  }
  if (!isLiteral(defaultText, column.type)) {
    throw invalid(
      at,
      `its default is computed (${defaultText}); state the value, now() for the current time, or any()`,
    );
  }
  return { is: casts.constant(column, defaultText, where) };
}

/** The changed columns, with the same columns on both sides. */
export function normaliseUpdate(
  place: Place,
  { key, before, after }: { readonly key: CellRow; readonly before: CellRow; readonly after: CellRow },
): { readonly before: CellRow; readonly after: CellRow } {
  const { relation, target, where, profile } = place;
  if (relation.key.length === 0 && profile === 'net-state') {
    throw invalid(
      where,
      `"${relation.target}" has no primary key, so its rows have no identity; state a delete and an insert`,
    );
  }
  for (const name of [...Object.keys(after), ...Object.keys(before)]) {
    findColumn(relation, name, where);
    if (relation.key.includes(name) && profile === 'net-state') {
      throw invalid(where, `"${name}" is part of the key; a changed key is a removed row and an inserted one`);
    }
  }
  const untold = Object.keys(before).filter((name) => !Object.hasOwn(after, name));
  if (untold.length > 0) throw invalid(where, `${list(untold)} has a value before and none after; state both`);
  const names = Object.keys(after).filter((name) => !target.volatile.includes(name));
  if (names.length === 0 && profile === 'net-state') {
    throw invalid(where, 'it changes no column that is compared; leave the effect out');
  }
  const cells = (cellOf: (name: string) => Cell | undefined): CellRow =>
    mapCells(
      place,
      names.map((name) => [name, cellOf(name) ?? { any: true }]),
    );
  const images = {
    before: cells((name) => ownCell(before, name) ?? ownCell(key, name)),
    after: cells((name) => ownCell(after, name)),
  };
  const still = names.find((name) => standsStill(images.before[name], images.after[name]));
  if (still !== undefined) {
    throw invalid(where, `"${still}" is the same before and after as this column stores it; leave it out`);
  }
  return images;
}

/** The row that a delete removes: what is not stated may be anything. */
export function normaliseRemoved(place: Place, before: CellRow): CellRow {
  const { relation, where } = place;
  for (const name of Object.keys(before)) {
    findColumn(relation, name, where);
    if (relation.key.includes(name)) throw invalid(where, `"${name}" is part of the key; state it there`);
  }
  return mapCells(
    place,
    comparedColumns(place).map(({ name }) => [name, ownCell(before, name) ?? { any: true }]),
  );
}

/** The columns beside the key that take part in the comparison. */
function comparedColumns({ relation, target }: Place): readonly Column[] {
  return relation.columns.filter(({ name }) => !relation.key.includes(name) && !target.volatile.includes(name));
}

/** A column may be called `constructor`, which every object seems to have. */
function ownCell(row: CellRow, name: string): Cell | undefined {
  return Object.hasOwn(row, name) ? row[name] : undefined;
}

function mapCells(place: Place, cells: readonly (readonly [string, Cell])[]): CellRow {
  return Object.fromEntries(
    cells.map(([name, cell]) => [name, normaliseCell(place, findColumn(place.relation, name, place.where), cell)]),
  );
}

function normaliseCell({ casts, where }: Place, column: Column, cell: Cell): Cell {
  const cast = (value: Value) => casts.value(column, value, where);
  if ('is' in cell) return { is: cast(cell.is) };
  if ('oneOf' in cell) return { oneOf: cell.oneOf.map(cast) };
  if ('between' in cell) {
    const at = `${where}, column "${column.name}"`;
    if (!isOrdered(column)) {
      throw invalid(at, `between would compare ${column.type.text} by its text, which has another order; use oneOf()`);
    }
    const between = { between: [cast(cell.between[0]), cast(cell.between[1])] as const };
    checkCell(between, at);
    return between;
  }
  return cell;
}

/** Types whose values have the order of what they stand for; text has that of its code points. */
const ORDERED = /^(?:int[248]|oid|numeric|float[48]|text|varchar|bpchar|name|date|time|timestamp|timestamptz|uuid)$/;

function isOrdered({ type }: Column): boolean {
  return type.baseSchema === 'pg_catalog' && ORDERED.test(type.base);
}
