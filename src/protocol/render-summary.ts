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
    .flatMap((column) => new ColumnChanges(effects, column).render(rendering));
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
  readonly #column: string;
  readonly #changes: () => Iterable<Change>;
  readonly #counts = new Map<string | number, number>();
  readonly #from = new Side();
  readonly #to = new Side();
  readonly #rise = new Extreme(1);
  readonly #fall = new Extreme(-1);
  #isUpdate = false;
  #effects = 0;

  constructor(effects: readonly ApprovedEffect[], column: string) {
    this.#column = column;
    this.#changes = () => changesOf(effects, column);
    for (const change of this.#changes()) this.#add(change);
  }

  #add(change: Change): void {
    const id = changeId(change);
    this.#counts.set(id, (this.#counts.get(id) ?? 0) + change.effect.count);
    this.#effects += 1;
    const after = this.#to.add(change.to, change);
    if (change.from === undefined) return;
    this.#isUpdate = true;
    const before = this.#from.add(change.from, change);
    const rise = after.high - before.low;
    const fall = after.low - before.high;
    if (rise > 0) this.#rise.offer(rise, rise, change);
    if (fall < 0) this.#fall.offer(fall, fall, change);
  }

  render(rendering: Rendering): readonly string[] {
    const name = renderColumn(this.#column);
    const isListed = this.#counts.size <= FEW;
    const [from, to] = [this.#from, this.#to].map((side) => side.render(isListed, rendering));
    const ranges = this.#isUpdate ? [from && `before ${from}`, to && `after ${to}`] : [to];
    const range = ranges.filter(Boolean).join('; ');
    const listed = isListed ? this.#rarest() : [];
    const [only] = listed;
    if (listed.length === 1 && only !== undefined) {
      const all = `${name}: ${renderChange(only.change, rendering)} in all`;
      return [range === '' ? all : `${all}; ${range}`];
    }
    const total = `${name}: ${this.#counts.size} different`;
    const shown = isListed ? listByCount(listed) : this.#outstanding(rendering);
    const rows = shown.map(({ label, change, showsRow }) => {
      const row = showsRow ? renderRow(change, this.#column, rendering) : '';
      return `  ${label}: ${renderChange(change, rendering)}${row}`;
    });
    if (!this.#isUpdate && !isListed)
      return [range === '' ? `${total} values` : `${total} values, ${range}`, ...rows];
    const lines = [`${total} ${this.#isUpdate ? 'changes' : 'values'}`, ...rows];
    return range === '' ? lines : [...lines, `  ${range}`];
  }

  /** Each change that stands out, once, with every reason why. */
  #outstanding(rendering: Rendering): readonly Labelled[] {
    // In a column where changes occur at least twice on average, the rare ones stand out.
    const isRepeating = this.#effects >= 2 * this.#counts.size;
    const found = [
      ...this.#extremes(rendering),
      ...this.#to.exceptions(''),
      ...this.#from.exceptions('before '),
      ...(isRepeating ? this.#rarest() : []).map((one) => labelCount(one, 'rarest, ')),
    ];
    const groups = Map.groupBy(found, ({ change }) => change.index);
    return [...groups.values()].map((group) => ({
      label: group.map(({ label }) => label).join(', '),
      change: (group[0] as Labelled).change,
      showsRow: group.some(({ showsRow }) => showsRow),
    }));
  }

  #extremes(rendering: Rendering): readonly Labelled[] {
    const found = [
      ['largest', this.#to.numbers.largest],
      ['largest rise', this.#rise],
      ['largest fall', this.#fall],
      ['smallest', this.#to.numbers.smallest],
    ] as const;
    return found.flatMap(([label, { change }]) => {
      if (change === undefined) return [];
      // Without a row to point to, the extremes are already in the range.
      if (!this.#isUpdate && renderRow(change, this.#column, rendering) === '') return [];
      return [{ label, change, showsRow: true }];
    });
  }

  /** The rarest changes with their counts; of equally rare ones those that occur first. */
  #rarest(): readonly Counted[] {
    const sorted = [...this.#counts].sort(([, a], [, b]) => a - b);
    const wanted = new Map(sorted.slice(0, FEW));
    const found: Counted[] = [];
    for (const change of this.#changes()) {
      if (wanted.size === 0) break;
      const id = changeId(change);
      const count = wanted.get(id);
      if (count === undefined) continue;
      wanted.delete(id);
      found.push({ change, count });
    }
    return found.sort((a, b) => a.count - b.count);
  }
}

/** Every change, the most frequent first. */
function listByCount(counted: readonly Counted[]): readonly Labelled[] {
  return counted
    .toSorted((a, b) => b.count - a.count || a.change.index - b.change.index)
    .map((one) => labelCount(one));
}

function labelCount({ change, count }: Counted, prefix = ''): Labelled {
  const times = count === 1 ? 'once' : `${count} times`;
  return { label: `${prefix}${times}`, change, showsRow: count === 1 };
}

/** The most extreme value in one direction, and where it first occurs. */
class Extreme {
  value: Value = null;
  change: Change | undefined;
  readonly #direction: -1 | 1;
  #size = Number.NaN;

  constructor(direction: -1 | 1) {
    this.#direction = direction;
  }

  /** `size` is the approximate size of a number, and NaN for text. */
  offer(value: Value, size: number, change: Change): void {
    if (this.change !== undefined && this.#order(value, size) * this.#direction <= 0) return;
    this.value = value;
    this.change = change;
    this.#size = size;
  }

  /** Compares exactly only what approximately is the same. */
  #order(value: Value, size: number): number {
    if (value === this.value) return 0;
    if (size < this.#size || size > this.#size) return size - this.#size;
    return orderValues(value, this.value) ?? 0;
  }
}

/** The smallest and largest of comparable values: all numbers or all texts. */
class Range {
  readonly smallest = new Extreme(-1);
  readonly largest = new Extreme(1);

  add(value: Value, size: number, change: Change): void {
    this.smallest.offer(value, size, change);
    this.largest.offer(value, size, change);
  }

  get isEmpty(): boolean {
    return this.smallest.change === undefined;
  }

  /** Empty if all values are equal. */
  render(rendering: Rendering): string {
    const [low, high] = [this.smallest.value, this.largest.value];
    if (this.isEmpty || orderValues(low, high) === 0) return '';
    return `${renderValue(low, rendering)} to ${renderValue(high, rendering)}`;
  }
}

/** The approximate bounds of the numbers that a cell lists. Without any, `low` is above `high`. */
interface Size {
  readonly low: number;
  readonly high: number;
}

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
    const exact = cell !== undefined && 'is' in cell ? sizeOf(cell.is) : Number.NaN;
    const kind = Number.isNaN(exact) ? kindOf(cell) : 'number';
    const known = this.#kinds.get(kind);
    if (known === undefined) this.#kinds.set(kind, { change, count });
    else known.count += count;
    let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (const value of valuesOf(cell)) {
      const size = kind === 'number' ? exact : sizeOf(value);
      if (kind === 'number') this.#sum.add(value, count);
      if (typeof value === 'string') this.#texts.add(value, size, change);
      if (Number.isNaN(size)) continue;
      this.numbers.add(value, size, change);
      low = Math.min(low, size);
      high = Math.max(high, size);
    }
    return { low, high };
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
   * The range and, if all are numbers, the sum. Empty if that adds nothing, for example because all
   * texts are listed.
   */
  render(isListed: boolean, rendering: Rendering): string {
    const numbers = this.numbers.render(rendering);
    const texts = isListed ? '' : this.#texts.render(rendering);
    const isNumeric = this.#kinds.size === 1 && this.#kinds.has('number');
    const sum = isNumeric ? this.#sum.text : undefined;
    const hasBoth = !this.numbers.isEmpty && texts !== '';
    return [numbers, hasBoth ? `texts ${texts}` : texts, sum && `sum ${sum}`]
      .filter(Boolean)
      .join(', ');
  }
}

/** A constraint counts as each bound or value that it lists. */
function valuesOf(cell: Cell | undefined): readonly Value[] {
  if (cell === undefined) return [];
  if ('is' in cell) return [cell.is];
  return 'between' in cell ? cell.between : 'oneOf' in cell ? cell.oneOf : [];
}

/** Kinds that need no mention if most of a column has them. */
const PLAIN_KINDS: readonly string[] = ['number', 'text', 'other value'];

/** The kind of a cell that is not a finite number. */
function kindOf(cell: Cell | undefined): string {
  if (cell === undefined) return '<not stated>';
  if ('oneOf' in cell) return '<one of>';
  if (!('is' in cell)) return `<${Object.keys(cell)[0]}>`;
  if (cell.is === null) return 'null';
  if (typeof cell.is === 'string') return 'text';
  return readTag(cell.is)?.tag === '$real' ? 'not finite' : 'other value';
}

/** The approximate size of a number; NaN for any other value. */
function sizeOf(value: Value): number {
  return typeof value === 'number' ? value : Number(numberText(value) ?? Number.NaN);
}

const MARK = '\0';

/**
 * Equal only for equal changes. Exact values of inserted and deleted rows stand for themselves, so
 * that no text is made for each of a million. Other ids begin with a mark, and so that no text
 * reads as one of them, a text with that beginning gets one mark more.
 */
function changeId({ from, to }: Change): string | number {
  if (from !== undefined) return `${MARK}${cellId(from)} ${cellId(to)}`;
  const value = to !== undefined && 'is' in to ? to.is : undefined;
  if (typeof value === 'number') return value;
  if (typeof value === 'string') return value.startsWith(MARK) ? `${MARK}${value}` : value;
  return `${MARK}${cellId(to)}`;
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
