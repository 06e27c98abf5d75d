import { sortedColumns, valueText } from './bag.ts';
import { DecimalSum, numberText } from './decimal-sum.ts';
import { type ApprovedEffect, type Cell, columnOf } from './effect.ts';
import { type Rendering, renderCell, renderColumn, renderValue } from './render-text.ts';
import { orderValues, readTag, type Value } from './value.ts';

/** Up to this many different values or changes of a column are all listed. */
const FEW = 6;

/**
 * Summarises many changes of one kind, column by column: how many different changes there are, the
 * smallest and the largest value, the sum, and the rows that stand out: extremes, constraints,
 * null, values unlike the others, and rare changes.
 */
export function summariseColumns(
  effects: readonly ApprovedEffect[],
  rendering: Rendering,
): readonly string[] {
  const columns = new Set<string>();
  for (const effect of effects)
    for (const row of changedRows(effect)) for (const column in row) columns.add(column);
  return [...columns]
    .sort()
    .flatMap((column) => new ColumnChanges(effects, column).render(column, rendering));
}

/** What the effects do to one column, in their order. */
function* changesOf(effects: readonly ApprovedEffect[], column: string): Generator<Change> {
  let index = 0;
  for (const effect of effects) {
    const [first, second] = changedRows(effect).map((row) => columnOf(row, column));
    if (effect.op === 'update') {
      if (first !== undefined || second !== undefined)
        yield { from: first, to: second, effect, index: index++ };
      continue;
    }
    for (const to of [first, second])
      if (to !== undefined) yield { from: undefined, to, effect, index: index++ };
  }
}

/** Both sides of an update; the key and the only side of another effect. */
function changedRows({ op, key = {}, before = {}, after = {} }: ApprovedEffect) {
  return op === 'update' ? [before, after] : [key, op === 'insert' ? after : before];
}

/** What one effect does to one column: both cells of an update, otherwise the only cell. */
interface Change {
  readonly from: Cell | undefined;
  readonly to: Cell | undefined;
  readonly effect: ApprovedEffect;
  /** The position among the changes of its column. */
  readonly index: number;
}

/** A change and how often it occurs; `change` is its first occurrence. */
interface Counted {
  readonly change: Change;
  count: number;
}

/** A change to show, and why. `showsRow` adds the key of its row. */
interface Labelled {
  readonly label: string;
  readonly change: Change;
  readonly showsRow: boolean;
}

/**
 * All changes of one column. There may be a million different ones, so only their counts are kept,
 * and those to show are looked up again.
 */
class ColumnChanges {
  readonly #changes: () => Iterable<Change>;
  readonly #different = new Different();
  readonly #from = new Side();
  readonly #to = new Side();
  #isUpdate = false;
  #effects = 0;
  #rise: { readonly by: number; readonly change: Change } | undefined;
  #fall: { readonly by: number; readonly change: Change } | undefined;

  constructor(effects: readonly ApprovedEffect[], column: string) {
    this.#changes = () => changesOf(effects, column);
    for (const change of this.#changes()) this.#add(change);
  }

  #add(change: Change): void {
    const { from, to } = change;
    this.#different.add(change);
    this.#effects += 1;
    const after = this.#to.add(to, change);
    if (from === undefined) return;
    this.#isUpdate = true;
    const before = this.#from.add(from, change);
    const rise = after.high - before.low;
    const fall = after.low - before.high;
    if (rise > (this.#rise?.by ?? 0)) this.#rise = { by: rise, change };
    if (fall < (this.#fall?.by ?? 0)) this.#fall = { by: fall, change };
  }

  render(column: string, rendering: Rendering): readonly string[] {
    const name = renderColumn(column);
    const isListed = this.#different.size <= FEW;
    const [from, to] = [this.#from, this.#to].map((side) => side.render(isListed, rendering));
    const ranges = this.#isUpdate ? [from && `before ${from}`, to && `after ${to}`] : [to];
    const range = ranges.filter(Boolean).join('; ');
    const listed = isListed ? this.#different.rarest(this.#changes()) : [];
    const [only] = listed;
    if (listed.length === 1 && only !== undefined) {
      const all = `${name}: ${renderChange(only.change, rendering)} in all`;
      return [range === '' ? all : `${all}; ${range}`];
    }
    const total = `${name}: ${this.#different.size} different`;
    const shown = isListed ? listByCount(listed) : this.#outstanding(column, rendering);
    const rows = shown.map(({ label, change, showsRow }) => {
      const row = showsRow ? renderRow(change, column, rendering) : '';
      return `  ${label}: ${renderChange(change, rendering)}${row}`;
    });
    if (!this.#isUpdate && !isListed)
      return [range === '' ? `${total} values` : `${total} values, ${range}`, ...rows];
    const lines = [`${total} ${this.#isUpdate ? 'changes' : 'values'}`, ...rows];
    return range === '' ? lines : [...lines, `  ${range}`];
  }

  /** Each change that stands out, once, with every reason why. */
  #outstanding(column: string, rendering: Rendering): readonly Labelled[] {
    const found = [
      ...this.#extremes(column, rendering),
      ...this.#to.exceptions(''),
      ...this.#from.exceptions('before '),
      ...this.#rarest(),
    ];
    const groups = Map.groupBy(found, ({ change }) => change.index);
    return [...groups.values()].map((group) => ({
      label: group.map(({ label }) => label).join(', '),
      change: (group[0] as Labelled).change,
      showsRow: group.some(({ showsRow }) => showsRow),
    }));
  }

  #extremes(column: string, rendering: Rendering): readonly Labelled[] {
    const found = [
      ['largest', this.#to.numbers.largest?.change],
      ['largest rise', this.#rise?.change],
      ['largest fall', this.#fall?.change],
      ['smallest', this.#to.numbers.smallest?.change],
    ] as const;
    return found.flatMap(([label, change]) => {
      if (change === undefined) return [];
      // Without a row to point to, the extremes are already in the range.
      if (!this.#isUpdate && renderRow(change, column, rendering) === '') return [];
      return [{ label, change, showsRow: true }];
    });
  }

  /** The rarest changes, in a column where changes occur at least twice on average. */
  #rarest(): readonly Labelled[] {
    if (this.#effects < 2 * this.#different.size) return [];
    return this.#different.rarest(this.#changes()).map(({ change, count }) => ({
      label: `rarest, ${timesOf(count)}`,
      change,
      showsRow: count === 1,
    }));
  }
}

/** Every change, the most frequent first. */
function listByCount(counted: readonly Counted[]): readonly Labelled[] {
  const sorted = counted
    .toSorted((a, b) => a.change.index - b.change.index)
    .toSorted((a, b) => b.count - a.count);
  return sorted.map(({ change, count }) => ({
    label: timesOf(count),
    change,
    showsRow: count === 1,
  }));
}

/** How often each different change of a column occurs. */
class Different {
  /** By value, for exact values of rows that are inserted or deleted: no text is made for each. */
  readonly #values = new Map<string | number, number>();
  readonly #others = new Map<string | number, number>();

  get size(): number {
    return this.#values.size + this.#others.size;
  }

  add(change: Change): void {
    const [counts, id] = this.#find(change);
    counts.set(id, (counts.get(id) ?? 0) + change.effect.count);
  }

  /** The rarest changes with their counts; of equally rare ones those that occur first. */
  rarest(changes: Iterable<Change>): readonly Counted[] {
    const wanted = [this.#values, this.#others].map((counts) => {
      const sorted = [...counts].sort(([, a], [, b]) => a - b);
      return new Set(sorted.slice(0, FEW).map(([id]) => id));
    });
    const found: Counted[] = [];
    for (const change of changes) {
      if (wanted.every(({ size }) => size === 0)) break;
      const [counts, id] = this.#find(change);
      const isWanted = wanted[counts === this.#values ? 0 : 1]?.delete(id);
      if (isWanted) found.push({ change, count: counts.get(id) ?? 0 });
    }
    return found.sort((a, b) => a.count - b.count).slice(0, FEW);
  }

  #find({ from, to }: Change): readonly [Map<string | number, number>, id: string | number] {
    if (from !== undefined) return [this.#others, `${cellId(from)} ${cellId(to)}`];
    const value = to !== undefined && 'is' in to ? to.is : undefined;
    if (typeof value === 'string' || typeof value === 'number') return [this.#values, value];
    return [this.#others, cellId(to)];
  }
}

function timesOf(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}

/** The smallest or largest value so far, and where it occurs. */
interface Extreme {
  readonly value: Value;
  /** The approximate size of a number; NaN for text. */
  readonly size: number;
  readonly change: Change;
}

/** The smallest and largest of comparable values: all numbers or all texts. */
class Range {
  smallest: Extreme | undefined;
  largest: Extreme | undefined;

  add(value: Value, size: number, change: Change): void {
    if (isBeyond(value, size, this.smallest, -1)) this.smallest = { value, size, change };
    if (isBeyond(value, size, this.largest, 1)) this.largest = { value, size, change };
  }

  /** Empty if all values are equal. */
  render(rendering: Rendering): string {
    const { smallest, largest } = this;
    if (smallest === undefined || largest === undefined) return '';
    if (orderValues(smallest.value, largest.value) === 0) return '';
    return `${renderValue(smallest.value, rendering)} to ${renderValue(largest.value, rendering)}`;
  }
}

/** The approximate bounds of the numbers that a cell admits; NaN if it admits none or any. */
interface Size {
  readonly low: number;
  readonly high: number;
}

const NO_SIZE: Size = { low: Number.NaN, high: Number.NaN };

/** One side of the changes of a column. */
class Side {
  readonly numbers = new Range();
  readonly #texts = new Range();
  readonly #sum = new DecimalSum();
  /** How many cells of each kind there are, and the first one. */
  readonly #kinds = new Map<string, Counted>();

  /** Adds a cell. Returns the approximate size of its numbers. */
  add(cell: Cell | undefined, change: Change): Size {
    const { count } = change.effect;
    const size = cell === undefined || !('is' in cell) ? Number.NaN : sizeOf(cell.is);
    const kind = Number.isNaN(size) ? kindOf(cell) : 'number';
    const known = this.#kinds.get(kind);
    if (known === undefined) this.#kinds.set(kind, { change, count });
    else known.count += count;
    if (cell === undefined) return NO_SIZE;
    if ('is' in cell) {
      if (kind === 'number') this.#sum.add(cell.is, count);
      this.#addValue(cell.is, size, change);
      return { low: size, high: size };
    }
    // A constraint counts as each bound or value that it lists.
    const ends = 'between' in cell ? cell.between : 'oneOf' in cell ? cell.oneOf : [];
    for (const value of ends) this.#addValue(value, sizeOf(value), change);
    const sizes = ends.map(sizeOf).filter((end) => !Number.isNaN(end));
    if (sizes.length === 0) return NO_SIZE;
    return {
      low: sizes.reduce((a, b) => Math.min(a, b)),
      high: sizes.reduce((a, b) => Math.max(a, b)),
    };
  }

  #addValue(value: Value, size: number, change: Change): void {
    if (!Number.isNaN(size)) this.numbers.add(value, size, change);
    else if (typeof value === 'string') this.#texts.add(value, size, change);
  }

  /**
   * One example of each kind of cell that the ranges do not cover: constraints, null, and
   * everything unlike most of the column.
   */
  exceptions(side: string): readonly Labelled[] {
    const kinds = [...this.#kinds].sort(([, a], [, b]) => b.count - a.count);
    const [main] = kinds[0] ?? [];
    return kinds
      .filter(([kind]) => kind !== main || !PLAIN_KINDS.includes(kind))
      .map(([kind, { change, count }]) => ({
        label: `${side}${kind} in ${count}`,
        change,
        showsRow: true,
      }));
  }

  /**
   * The range and, if all are numbers, the sum. Empty if there is nothing to add, as for texts that
   * are all listed.
   */
  render(isListed: boolean, rendering: Rendering): string {
    const numbers = this.numbers.render(rendering);
    const texts = isListed ? '' : this.#texts.render(rendering);
    const isNumeric = this.#kinds.size === 1 && this.#kinds.has('number');
    const sum = isNumeric ? this.#sum.text : undefined;
    const hasBoth = this.numbers.smallest !== undefined && texts !== '';
    return [numbers, hasBoth ? `texts ${texts}` : texts, sum && `sum ${sum}`]
      .filter(Boolean)
      .join(', ');
  }
}

/** Kinds that need no mention if most of a column has them. */
const PLAIN_KINDS: readonly string[] = ['number', 'text', 'other value'];

/** The kind of a cell that is not a finite number. */
function kindOf(cell: Cell | undefined): string {
  if (cell === undefined) return '<not stated>';
  if (!('is' in cell)) return CONSTRAINTS.find(([name]) => name in cell)?.[1] ?? '<constraint>';
  if (cell.is === null) return 'null';
  if (typeof cell.is === 'string') return 'text';
  return isNumeric(cell.is) ? 'not finite' : 'other value';
}

const CONSTRAINTS = [
  ['any', '<any>'],
  ['generated', '<generated>'],
  ['oneOf', '<one of>'],
  ['between', '<between>'],
  ['matches', '<matches>'],
  ['now', '<now>'],
] as const;

function isNumeric(value: Value): boolean {
  const tag = typeof value === 'object' && value !== null ? readTag(value)?.tag : undefined;
  return tag === '$int' || tag === '$dec' || tag === '$real';
}

/** The approximate size of a number; NaN for any other value. */
function sizeOf(value: Value): number {
  return typeof value === 'number' ? value : Number(numberText(value) ?? Number.NaN);
}

/** Whether a value is more extreme than the known one. */
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

/** Equal only for equal cells. Generated labels differ in every row and count as one. */
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
