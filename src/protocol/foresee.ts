import { rowText, sameValue, scalarOf } from './bag.ts';
import { Budget } from './budget.ts';
import { satisfies } from './constraint.ts';
import {
  type ApprovedEffect,
  type Cell,
  type CellRow,
  columnOf,
  exactKey,
  type StateRead,
  type StateReading,
} from './effect.ts';
import type { Approved } from './manifest.ts';
import type { Registration } from './registration.ts';
import { renderEffect } from './render.ts';
import { renderColumn, renderValue } from './render-text.ts';
import type { Row, Value } from './value.ts';

/**
 * The effects that can be checked against the current rows: those that name a row exactly and are
 * the only ones that can reach it. Write counts and fields that are read back afterwards say
 * nothing about the state before.
 */
export function foreseeable({ registration, effects }: Approved): readonly ApprovedEffect[] {
  const { profile, targets } = registration;
  if (profile !== 'net-state' && profile !== 'row-event') return [];
  const open = profile === 'net-state' ? new Set() : movedTargets(registration, effects);
  const keyed = new Set(targets.filter(({ key }) => key.length > 0).map(({ name }) => name));
  const candidates = effects.filter(
    ({ target, key }) => keyed.has(target) && !open.has(target) && key !== undefined,
  );
  const rows = countRows(candidates);
  return candidates.filter((effect) => {
    const key = exactKey(effect);
    return key !== undefined && effect.count === 1 && rows.get(effect.target, key) === 1;
  });
}

/** How many approved effects name each row exactly. */
function countRows(effects: readonly ApprovedEffect[]): RowMap<number> {
  const rows = new RowMap<number>();
  for (const effect of effects) {
    const key = exactKey(effect);
    if (key !== undefined) rows.set(effect.target, key, (rows.get(effect.target, key) ?? 0) + 1);
  }
  return rows;
}

/**
 * Something about rows, by target and key. A key of one number or text is used itself, because a
 * million texts made from keys take more memory than the effects.
 */
class RowMap<T> {
  readonly #maps = new Map<string, Map<string | number, T>>();

  get(target: string, key: Row): T | undefined {
    const { name, id } = placeOf(target, key);
    return this.#maps.get(name)?.get(id);
  }

  set(target: string, key: Row, value: T): void {
    const { name, id } = placeOf(target, key);
    const rows = this.#maps.get(name) ?? new Map<string | number, T>();
    this.#maps.set(name, rows.set(id, value));
  }
}

function placeOf(target: string, key: Row) {
  const scalar = scalarOf(key);
  const name = `${target.length}:${target}`;
  if (scalar === undefined) return { name, id: rowText(key) };
  return { name: `${name}${Object.keys(key)[0]}`, id: scalar };
}

/** The read that shows whether an effect of {@link foreseeable} is possible. */
export function foreseeingRead(effect: ApprovedEffect): StateRead {
  return readOf(effect, exactKey(effect) ?? {});
}

/**
 * Targets with effects that have no exact key or that change the key. There, a key does not show
 * which effects reach the row.
 */
function movedTargets(
  { targets }: Registration,
  effects: readonly ApprovedEffect[],
): ReadonlySet<string> {
  const keys = new Map(targets.map(({ name, key }) => [name, key]));
  const moves = effects.filter((effect) => {
    const { op, target, after = {} } = effect;
    const movesKey = keys.get(target)?.some((column) => Object.hasOwn(after, column));
    return exactKey(effect) === undefined || (op === 'update' && movesKey);
  });
  return new Set(moves.map(({ target }) => target));
}

function readOf({ op, target, before = {} }: ApprovedEffect, key: Row): StateRead {
  const columns = op === 'insert' ? [] : Object.keys(before);
  return { target, key, columns: columns.length > 0 ? columns : Object.keys(key) };
}

/**
 * Rows with more than one approved change although only the net change is compared, so that no
 * execution could show all of them. One text per conflict.
 */
export function findContradictions({ registration, effects }: Approved): readonly string[] {
  if (registration.profile !== 'net-state') return [];
  const seen = new RowMap<ApprovedEffect>();
  return effects.flatMap((effect) => {
    const key = exactKey(effect);
    if (key === undefined) return [];
    const other = seen.get(effect.target, key);
    seen.set(effect.target, key, effect);
    if (effect.count > 1)
      return [
        `${renderEffect(effect)}: only the net change of a row is compared, so it happens once`,
      ];
    if (other === undefined) return [];
    const both = `${renderEffect(other)} and ${renderEffect(effect)}`;
    return [`${both}: only the net change of a row is compared; state it as one change`];
  });
}

/** Patterns and lists in `before` are evaluated until this many steps are used up. */
const STEPS_MAX = 1_000_000;

/**
 * The effects that are impossible with the rows as they are now, one text each. `readings` answer
 * the reads of `foreseen`, in the same order.
 */
export function findImpossible(
  { registration }: Approved,
  foreseen: readonly ApprovedEffect[],
  readings: readonly StateReading[],
): readonly string[] {
  const budget = new Budget(STEPS_MAX);
  return foreseen.flatMap((effect, index) => {
    const why = whyImpossible(effect, readings[index]?.row, registration, budget);
    return why === undefined ? [] : [`${renderEffect(effect)}: ${why}`];
  });
}

function whyImpossible(
  { op, before = {}, after = {} }: ApprovedEffect,
  row: Row | null | undefined,
  { values }: Registration,
  budget: Budget,
): string | undefined {
  if (row === undefined) return undefined;
  if (op === 'insert') return row === null ? undefined : 'the row exists already';
  if (row === null) return 'there is no such row';
  for (const [column, cell] of Object.entries(before)) {
    const value = columnOf(row, column);
    if (value === undefined) continue;
    const found = values === 'plain' ? renderValue(value, { full: false, cut: false }) : undefined;
    const name = renderColumn(column);
    if (isFalse(cell, value, budget))
      return found === undefined ? `${name} is something else now` : `${name} is ${found} now`;
    if (isSame(after, column, value)) return `${name} has this value already`;
  }
  return undefined;
}

/** Whether a cell of `before` certainly does not hold. Times and labels are known only later. */
function isFalse(cell: Cell, value: Value, budget: Budget): boolean {
  if ('now' in cell || 'generated' in cell) return false;
  const holds = satisfies(cell, value, { window: { fromMs: 0, toMs: 0 }, budget });
  return !holds && !budget.exhausted;
}

/** Only changed columns are reported, so the new value must differ. */
function isSame(after: CellRow, column: string, value: Value): boolean {
  const cell = columnOf(after, column);
  return cell !== undefined && 'is' in cell && sameValue(cell.is, value);
}
