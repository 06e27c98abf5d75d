import { EffectMatchError } from '../errors.ts';
import { canonical } from './canon.ts';
import type { ApprovedEffect, Cell, CellRow } from './effect.ts';
import type { Manifest } from './manifest.ts';
import type { Target } from './registration.ts';
import { readReal } from './value.ts';

/**
 * Splits keys from the other columns and fills what was left open, for adapters whose backend stores values as they
 * are stated and knows no default but null: an insert's omitted columns are null, and what an update or a delete found
 * before may be anything unless said. A backend that converts values has to do more.
 */
export function normaliseManifest(targets: readonly Target[], manifest: Manifest): Manifest {
  const targetOf = (name: string): Target => {
    const target = targets.find((candidate) => candidate.name === name);
    if (target === undefined) throw invalid(`there is no table "${name}"; name one of the registered tables`);
    return target;
  };
  for (const { target, key } of [...manifest.requires, ...manifest.watch]) checkKey(targetOf(target), key);
  return { ...manifest, effects: manifest.effects.map((effect) => normaliseEffect(targetOf(effect.target), effect)) };
}

function normaliseEffect(target: Target, effect: ApprovedEffect): ApprovedEffect {
  const { op, count } = effect;
  for (const cells of [effect.key, effect.before, effect.after]) checkColumns(target, cells);
  const rest = target.columns.filter((column) => !target.key.includes(column));
  const base = { op, target: target.name, count };
  switch (op) {
    case 'insert': {
      const given = { ...effect.key, ...effect.after };
      return { ...base, key: pick(target, given), after: fill(rest, given, { is: null }) };
    }
    case 'update': {
      const changed = Object.keys(effect.after ?? {});
      const fixed = changed.find((column) => target.key.includes(column));
      if (fixed !== undefined) throw invalid(`"${fixed}" is a key column; approve a delete and an insert instead`);
      const before = fill(changed, effect.before, { any: true });
      return { ...base, key: pick(target, effect.key), before, after: fill(changed, effect.after, { any: true }) };
    }
    case 'delete': {
      const given = { ...effect.key, ...effect.before };
      return { ...base, key: pick(target, given), before: fill(rest, given, { any: true }) };
    }
  }
}

/** Whether a column is approved to become what it was: only changed columns are reported, so nothing would match it. */
export function standsStill(from: Cell | undefined, to: Cell | undefined): boolean {
  if (from === undefined || to === undefined || !('is' in from) || !('is' in to)) return false;
  return canonical(from.is) === canonical(to.is);
}

function pick(target: Target, given: CellRow | undefined): CellRow {
  checkKey(target, given ?? {});
  return Object.fromEntries(Object.entries(given ?? {}).filter(([column]) => target.key.includes(column)));
}

function fill(columns: readonly string[], given: CellRow | undefined, otherwise: Cell): CellRow {
  return Object.fromEntries(columns.map((column) => [column, asPlainNumber(given?.[column] ?? otherwise)]));
}

/** What stores values as stated has one kind of number: `real` only says that it was not meant as an integer. */
function asPlainNumber(cell: Cell): Cell {
  const number = 'is' in cell ? readReal(cell.is) : undefined;
  return number === undefined ? cell : { is: number };
}

function checkKey(target: Target, given: object): void {
  const missing = target.key.find((column) => !Object.hasOwn(given, column));
  if (missing !== undefined) throw invalid(`"${target.name}" is addressed by its key; add the column "${missing}"`);
}

function checkColumns(target: Target, cells: CellRow | undefined): void {
  const unknown = Object.keys(cells ?? {}).find((column) => !target.columns.includes(column));
  if (unknown !== undefined) throw invalid(`"${target.name}" has no column "${unknown}"; leave it out`);
}

function invalid(what: string): EffectMatchError<'ERR_EM_MANIFEST_INVALID'> {
  return new EffectMatchError('ERR_EM_MANIFEST_INVALID', what);
}
