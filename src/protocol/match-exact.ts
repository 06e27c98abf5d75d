import { comparisonKey, rowText, sameValue, scalarOf } from './bag.ts';
import { isExact } from './constraint.ts';
import type { ApprovedEffect, CellRow, Effect, Op } from './effect.ts';
import type { Prepared } from './match-prepare.ts';
import type { Row } from './value.ts';
import { splitTouches } from './volatile.ts';

type Skip = ReadonlySet<string> | undefined;

/**
 * Finds the exact effect of A that an observed effect equals. Most rows have a key and one effect:
 * these are found by key and compared column by column, which is several times faster than encoding
 * the whole effect. All others are found by comparison key.
 */
export class ExactIndex {
  readonly #exact: readonly ApprovedEffect[];
  readonly #rows = new Map<string, { [op in Op]?: Map<number | string, number> }>();
  readonly #texts = new Map<string, number>();

  /** `exact` holds the effects by position. */
  constructor(exact: readonly ApprovedEffect[]) {
    this.#exact = exact;
  }

  /** Adds an effect that is not in the index yet, as it would be observed. */
  add(effect: Effect, skip: Skip, position: number): void {
    const id = rowId(effect.key);
    if (id !== undefined) {
      let rows = this.#rows.get(effect.target);
      if (rows === undefined) {
        rows = {};
        this.#rows.set(effect.target, rows);
      }
      rows[effect.op] ??= new Map();
      if (!rows[effect.op]?.has(id)) {
        rows[effect.op]?.set(id, position);
        return;
      }
    }
    this.#texts.set(comparisonKey(effect, skip), position);
  }

  /** Whether no two effects have the same row key. */
  hasOneOfEachRow(): boolean {
    if (this.#texts.size > 0) return false;
    for (const byOp of this.#rows.values()) {
      const [first, ...others] = Object.values(byOp);
      if (others.length === 0) continue;
      const seen = new Set(first?.keys());
      for (const ids of others)
        for (const id of ids.keys()) {
          if (seen.has(id)) return false;
          seen.add(id);
        }
    }
    return true;
  }

  /** The position of the exact effect that equals this one, ignoring volatile columns. */
  find(effect: Effect, skip: Skip): number | undefined {
    const id = rowId(effect.key);
    const position =
      id === undefined ? undefined : this.#rows.get(effect.target)?.[effect.op]?.get(id);
    const wanted = position === undefined ? undefined : this.#exact[position];
    if (wanted !== undefined && isMet(wanted, effect, skip)) return position;
    return this.#texts.size === 0 ? undefined : this.#texts.get(comparisonKey(effect, skip));
  }
}

/** The id for finding a row. Two keys may share an id, so the caller must compare the key. */
function rowId(key: Row | undefined): number | string | undefined {
  return scalarOf(key) ?? (key && rowText(key));
}

function isMet(wanted: ApprovedEffect, effect: Effect, skip: Skip): boolean {
  return (
    areCells(wanted.key, effect.key, skip) &&
    areCells(wanted.before, effect.before, skip) &&
    areCells(wanted.after, effect.after, skip)
  );
}

/** Cells that are not exact are in volatile columns here, which are not compared. */
function areCells(cells: CellRow | undefined, row: Row | undefined, skip: Skip): boolean {
  let surplus = 0;
  for (const column in cells) {
    if (skip?.has(column)) continue;
    const cell = cells[column];
    if (cell === undefined || !isExact(cell)) return false;
    if (row === undefined || !Object.hasOwn(row, column) || !sameValue(cell.is, row[column]))
      return false;
    surplus += 1;
  }
  for (const column in row) if (!skip?.has(column)) surplus -= 1;
  return surplus === 0;
}

/** Equal observed effects that no exact effect of A accounts for. */
export interface Remainder {
  /** Required effects come first. The others may be left over. */
  readonly effects: Effect[];
  required: number;
}

/** The result of counting observed effects against the exact effects of A. */
export class ExactCount {
  readonly remainders = new Map<string, Remainder>();
  /** Observed effects that an exact effect accounts for, on targets with volatile columns. */
  readonly taken: Effect[] = [];
  readonly #prepared: Prepared;
  readonly #left: number[];

  constructor(prepared: Prepared, observed: readonly Effect[]) {
    this.#prepared = prepared;
    this.#left = prepared.counts.slice();
    const { required, optional } = splitTouches(observed, prepared.volatile);
    for (const effect of required) this.#take(effect, 1);
    for (const effect of optional) this.#take(effect, 0);
  }

  /** The exact effects of A that were not observed, with their counts. */
  missing(): readonly ApprovedEffect[] {
    const missing: ApprovedEffect[] = [];
    this.#left.forEach((count, position) => {
      if (count > 0) missing.push({ ...(this.#prepared.exact[position] as ApprovedEffect), count });
    });
    return missing;
  }

  #take(effect: Effect, required: 0 | 1): void {
    const skip = this.#prepared.volatile.get(effect.target);
    const position = this.#prepared.index.find(effect, skip);
    const left = position === undefined ? 0 : (this.#left[position] ?? 0);
    if (position !== undefined && left > 0) {
      this.#left[position] = left - 1;
      if (skip !== undefined) this.taken.push(effect);
      return;
    }
    const key = comparisonKey(effect, skip);
    const remainder = this.remainders.get(key);
    if (remainder === undefined) {
      this.remainders.set(key, { effects: [effect], required });
    } else {
      remainder.effects.push(effect);
      remainder.required += required;
    }
  }
}
