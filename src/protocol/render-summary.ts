import { sortedColumns, valueText } from './bag.ts';
import { DecimalSum, numberText } from './decimal-sum.ts';
import type { ApprovedEffect, Cell, CellRow } from './effect.ts';
import { type Rendering, renderCell, renderColumn, renderValue } from './render-text.ts';
import { orderValues, type Value } from './value.ts';

/** So many different values or changes of a column are listed; of more, the extremes are shown. */
const FEW = 6;

/**
 * What many changes of one kind do, column by column: how many different changes there are, the
 * smallest and the largest value, the sum, and the rows that stand out.
 */
export function summariseColumns(
  effects: readonly ApprovedEffect[],
  rendering: Rendering,
): readonly string[] {
  const columns = new Map<string, ColumnChanges>();
  const changesOf = (column: string): ColumnChanges => {
    const known = columns.get(column) ?? new ColumnChanges();
    columns.set(column, known);
    return known;
  };
  for (const effect of effects) {
    const { op, key = {}, before = {}, after = {} } = effect;
    if (op === 'update') {
      for (const column of Object.keys(before))
        changesOf(column).add({ from: before[column], to: ownCell(after, column), effect });
      for (const column of Object.keys(after))
        if (!Object.hasOwn(before, column))
          changesOf(column).add({ from: undefined, to: after[column], effect });
      continue;
    }
    for (const row of [key, op === 'insert' ? after : before])
      for (const column of Object.keys(row))
        changesOf(column).add({ from: undefined, to: row[column], effect });
  }
  return [...columns.keys()]
    .sort()
    .flatMap((column) => changesOf(column).render(column, rendering));
}

function ownCell(cells: CellRow, column: string): Cell | undefined {
  return Object.hasOwn(cells, column) ? cells[column] : undefined;
}

/** What one effect does to one column: both cells of an update, otherwise the one there is. */
interface Change {
  readonly from: Cell | undefined;
  readonly to: Cell | undefined;
  readonly effect: ApprovedEffect;
}

/** All that happens to one column. */
class ColumnChanges {
  readonly #different = new Set<string | number>();
  /** How often each of the first few different changes occurs. */
  readonly #counts = new Map<string | number, { readonly change: Change; count: number }>();
  readonly #from = new Side();
  readonly #to = new Side();
  #isUpdate = false;
  #rise: { readonly by: number; readonly change: Change } | undefined;
  #fall: { readonly by: number; readonly change: Change } | undefined;

  add(change: Change): void {
    const { from, to, effect } = change;
    if (from !== undefined) this.#isUpdate = true;
    const id = from === undefined ? cellId(to) : `${cellId(from)} ${cellId(to)}`;
    this.#different.add(id);
    const known = this.#counts.get(id);
    if (known !== undefined) known.count += effect.count;
    else if (this.#counts.size < FEW) this.#counts.set(id, { change, count: effect.count });
    const before = this.#from.add(from, change);
    const by = this.#to.add(to, change) - before;
    if (by > (this.#rise?.by ?? 0)) this.#rise = { by, change };
    if (by < (this.#fall?.by ?? 0)) this.#fall = { by, change };
  }

  render(column: string, rendering: Rendering): readonly string[] {
    const name = renderColumn(column);
    const isListed = this.#different.size <= FEW;
    const [from, to] = [this.#from, this.#to].map((side) => side.render(isListed, rendering));
    const ranges = this.#isUpdate ? [from && `before ${from}`, to && `after ${to}`] : [to];
    const range = ranges.filter(Boolean).join('; ');
    const counted = [...this.#counts.values()].sort((a, b) => b.count - a.count);
    const [only] = counted;
    if (this.#different.size === 1 && only !== undefined) {
      const all = `${name}: ${renderChange(only.change, rendering)} in all`;
      return [range === '' ? all : `${all}; ${range}`];
    }
    const total = `${name}: ${this.#different.size} different`;
    const shown = isListed ? counted.map(labelCount) : this.#extremes();
    const rows = shown.map(({ label, change }) => {
      const row = label.endsWith('times') ? '' : renderRow(change, column, rendering);
      return { text: `  ${label}: ${renderChange(change, rendering)}${row}`, row };
    });
    if (!this.#isUpdate && !isListed) {
      // Without a row that they lead to, the extremes are in the range already.
      const known = rows.filter(({ row }) => row !== '').map(({ text }) => text);
      return [range === '' ? `${total} values` : `${total} values, ${range}`, ...known];
    }
    const what = this.#isUpdate ? 'changes' : 'values';
    const lines = [`${total} ${what}`, ...rows.map(({ text }) => text)];
    return range === '' ? lines : [...lines, `  ${range}`];
  }

  /** Each row that stands out once, with everything that it stands out for. */
  #extremes(): readonly Labelled[] {
    const found: readonly (readonly [label: string, change: Change | undefined])[] = [
      ['largest', this.#to.largestNumber],
      ['largest rise', this.#rise?.change],
      ['largest fall', this.#fall?.change],
      ['smallest', this.#to.smallestNumber],
    ];
    const rows = new Map<Change, string>();
    for (const [label, change] of found) {
      if (change === undefined) continue;
      const known = rows.get(change);
      rows.set(change, known === undefined ? label : `${known}, ${label}`);
    }
    return [...rows].map(([change, label]) => ({ label, change }));
  }
}

interface Labelled {
  readonly label: string;
  readonly change: Change;
}

function labelCount(counted: { readonly change: Change; readonly count: number }): Labelled {
  const { change, count } = counted;
  return { label: count === 1 ? 'once' : `${count} times`, change };
}

/** The smallest or the largest value of one side so far, and where it occurs. */
interface Extreme {
  readonly value: Value;
  /** About how large a number is; NaN for text. */
  readonly size: number;
  readonly change: Change;
}

/** The numbers and texts on one side of the changes of a column. */
class Side {
  readonly #sum = new DecimalSum();
  #smallest: Extreme | undefined;
  #largest: Extreme | undefined;
  #isNumeric = true;

  /** Takes in a cell. Returns about how large its number is, or NaN. */
  add(cell: Cell | undefined, change: Change): number {
    if (cell === undefined) return Number.NaN;
    const value = 'is' in cell ? cell.is : null;
    const size = sizeOf(value);
    const isNumber = !Number.isNaN(size);
    if (isNumber) this.#sum.add(value, change.effect.count);
    else this.#isNumeric = false;
    if (!isNumber && typeof value !== 'string') return size;
    if (isBeyond(value, size, this.#smallest, -1)) this.#smallest = { value, size, change };
    if (isBeyond(value, size, this.#largest, 1)) this.#largest = { value, size, change };
    return size;
  }

  get smallestNumber(): Change | undefined {
    return typeof this.#smallest?.value === 'string' ? undefined : this.#smallest?.change;
  }

  get largestNumber(): Change | undefined {
    return typeof this.#largest?.value === 'string' ? undefined : this.#largest?.change;
  }

  /**
   * The range and, if all are numbers, the sum. Empty if there is nothing to say, as about texts
   * that are all listed.
   */
  render(isListed: boolean, rendering: Rendering): string {
    const smallest = this.#smallest?.value;
    const largest = this.#largest?.value;
    if (smallest === undefined || largest === undefined) return '';
    if (isListed && typeof smallest === 'string') return '';
    const range = `${renderValue(smallest, rendering)} to ${renderValue(largest, rendering)}`;
    const sum = this.#isNumeric ? this.#sum.text : undefined;
    const isOne = orderValues(smallest, largest) === 0;
    return [...(isOne ? [] : [range]), ...(sum === undefined ? [] : [`sum ${sum}`])].join(', ');
  }
}

/** About how large a number is; NaN for every other value. */
function sizeOf(value: Value): number {
  return typeof value === 'number' ? value : Number(numberText(value) ?? Number.NaN);
}

/** Whether a value lies beyond the one so far; numbers and texts of one column do not compare. */
function isBeyond(
  value: Value,
  size: number,
  known: Extreme | undefined,
  direction: -1 | 1,
): boolean {
  if (known === undefined) return true;
  if (value === known.value) return false;
  if (size < known.size || size > known.size) return (size - known.size) * direction > 0;
  return (orderValues(value, known.value) ?? 0) * direction > 0;
}

/** Equal for equal cells only. Generated labels differ in every row and count as one. */
function cellId(cell: Cell | undefined): string | number {
  if (cell === undefined) return '-';
  if (!('is' in cell))
    return 'generated' in cell ? 'generated' : valueText(cell as unknown as Value);
  return typeof cell.is === 'number' ? cell.is : `=${valueText(cell.is)}`;
}

function renderChange({ from, to }: Change, rendering: Rendering): string {
  const shown = to === undefined ? '<not stated>' : renderShort(to, rendering);
  return from === undefined ? shown : `${renderShort(from, rendering)} -> ${shown}`;
}

function renderShort(cell: Cell, rendering: Rendering): string {
  return 'generated' in cell ? '<generated>' : renderCell(cell, rendering);
}

/** The key of a row, if it is known and says more than the column itself. */
function renderRow({ effect: { key = {} } }: Change, column: string, rendering: Rendering): string {
  const known = sortedColumns(key).flatMap((name) => {
    const cell = key[name];
    if (name === column || cell === undefined || !('is' in cell)) return [];
    return [`${renderColumn(name)}=${renderCell(cell, rendering)}`];
  });
  return known.length === 0 ? '' : ` (${known.join(', ')})`;
}
