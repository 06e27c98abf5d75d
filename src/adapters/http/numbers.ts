import { normaliseNumbers, normaliseRow } from '../../http/number.ts';
import type { ApprovedEffect, Cell, CellRow, ChangeRecord } from '../../protocol/effect.ts';
import type { Manifest } from '../../protocol/manifest.ts';

/** A manifest whose numbers are in the form in which a service's JSON is read. */
export function normaliseManifestNumbers(manifest: Manifest): Manifest {
  return {
    ...manifest,
    effects: manifest.effects.map(normaliseEffect),
    requires: manifest.requires.map((required) => ({
      ...required,
      key: normaliseRow(required.key),
      row: required.row && normaliseRow(required.row),
    })),
    watch: manifest.watch.map((watched) => ({ ...watched, key: normaliseRow(watched.key) })),
  };
}

/** The same for what an operation's own function makes of a response: it may have calculated. */
export function normaliseRecord(record: ChangeRecord): ChangeRecord {
  const { key, before, after } = record;
  return {
    ...record,
    key: key && normaliseRow(key),
    before: before && normaliseRow(before),
    after: after && normaliseRow(after),
  };
}

function normaliseEffect(effect: ApprovedEffect): ApprovedEffect {
  const { key, before, after } = effect;
  return {
    ...effect,
    ...(key && { key: normaliseCells(key) }),
    ...(before && { before: normaliseCells(before) }),
    ...(after && { after: normaliseCells(after) }),
  };
}

function normaliseCells(cells: CellRow): CellRow {
  return Object.fromEntries(Object.entries(cells).map(([column, cell]) => [column, normaliseCell(cell)]));
}

function normaliseCell(cell: Cell): Cell {
  if ('is' in cell) return { is: normaliseNumbers(cell.is) };
  if ('oneOf' in cell) return { oneOf: cell.oneOf.map(normaliseNumbers) };
  if ('between' in cell) return { between: [normaliseNumbers(cell.between[0]), normaliseNumbers(cell.between[1])] };
  return cell;
}
