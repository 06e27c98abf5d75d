import { canonical } from './canon.ts';
import type { ApprovedEffect, Cell, CellRow, Effect } from './effect.ts';
import type { Assigned } from './observation.ts';
import type { Registration } from './registration.ts';
import {
  declaresReference,
  Origins,
  type Pair,
  pairRehearsals,
  type Rehearsal,
  SIDES,
  type Side,
  timeUnit,
} from './rehearsal-pairs.ts';
import { renderObserved } from './render.ts';
import { quote, renderValue } from './render-text.ts';
import type { Value } from './value.ts';

export type { Rehearsal } from './rehearsal-pairs.ts';

/** What two rehearsals agree on, as effects to approve, or their unexplained differences. */
type Explained =
  | { readonly kind: 'explained'; readonly effects: readonly ApprovedEffect[] }
  | { readonly kind: 'unexplained'; readonly differences: readonly string[] };

/**
 * A clock may be read a moment before or after the window in which the backend says the action ran.
 */
const NOW_WITHIN_MS = 1000;
const DIFFERENCES_MAX = 10;

/**
 * Turns two rehearsals of one action into effects to approve. A value that the backend assigned
 * becomes `generated`, even if both rehearsals agree on it, because a rolled-back sequence repeats
 * itself. Values that refer to it become `generated` too. A time at which the action ran becomes
 * `now`. Everything else must be equal in both, and is approved as it is.
 */
export function explainRehearsals(
  first: Rehearsal,
  second: Rehearsal,
  registration: Registration,
): Explained {
  const pairing = pairRehearsals(first, second, registration);
  const shows = registration.values === 'plain';
  if (pairing.kind === 'unequal') {
    return {
      kind: 'unexplained',
      differences: [describeUnequal(pairing.first, pairing.second, shows)],
    };
  }
  const explanation = new Explanation(first, second, pairing.pairs, shows);
  const effects = pairing.pairs.map((pair) => explanation.approve(pair));
  const { differences } = explanation;
  if (differences.length === 0) return { kind: 'explained', effects };
  const shown = differences.slice(0, DIFFERENCES_MAX);
  const rest = differences.length - shown.length;
  return { kind: 'unexplained', differences: rest === 0 ? shown : [...shown, `and ${rest} more`] };
}

function describeUnequal(
  first: readonly Effect[],
  second: readonly Effect[],
  shows: boolean,
): string {
  const { op, target } = (first[0] ?? second[0]) as Effect;
  const only = first.length > second.length ? first : second;
  const example =
    shows && only[0] !== undefined ? `, such as ${renderObserved({ ...only[0], count: 1 })}` : '';
  return `${op} ${quote(target)}: ${first.length} in the first rehearsal, ${second.length} in the second${example}`;
}

interface Label {
  readonly name: string;
  readonly values: string;
  /** The pairs in which the backend assigned it: a row rarely refers to its own identifier. */
  readonly pairs: Set<Pair>;
  readonly assigned: Assigned | undefined;
}

/** One interpretation of two rehearsals: which identifiers correspond, and what is unexplained. */
class Explanation {
  readonly differences: string[] = [];
  readonly #runs: readonly [Rehearsal, Rehearsal];
  readonly #origins: readonly [Origins, Origins];
  readonly #shows: boolean;
  /**
   * By place and value, per rehearsal: the same identifier in the first must be the same in the
   * second.
   */
  readonly #labels: readonly [Map<string, Label>, Map<string, Label>] = [new Map(), new Map()];
  readonly #byValues = new Map<string, Set<Label>>();
  readonly #numbers = new Map<string, number>();

  constructor(first: Rehearsal, second: Rehearsal, pairs: readonly Pair[], shows: boolean) {
    this.#runs = [first, second];
    this.#origins = [new Origins(first), new Origins(second)];
    this.#shows = shows;
    for (const pair of pairs) {
      const sides = SIDES.filter((side) => !this.#isOldKey(pair, side));
      for (const { column, values } of sides.flatMap((side) => cellsOf(pair, side)))
        this.#noteOrigin(pair, column, values);
    }
  }

  approve(pair: Pair): ApprovedEffect {
    const { op, target } = pair.first;
    const rows: { [side in Side]?: CellRow } = {};
    for (const side of SIDES) {
      if (pair.first[side] === undefined) continue;
      const cells = cellsOf(pair, side).map((cell) => [
        cell.column,
        this.#cellOf(pair, side, cell),
      ]);
      rows[side] = Object.fromEntries(cells);
    }
    return { op, target, ...rows, count: 1 };
  }

  #noteOrigin(pair: Pair, column: string, values: Values): void {
    const { target } = pair.first;
    if (!this.#isOrigin(target, column, values)) return;
    const [left, right] = [0, 1].map((run) =>
      canonical([target, column, values[run as 0 | 1]]),
    ) as [string, string];
    const known = this.#labels[0].get(left);
    if (known !== this.#labels[1].get(right)) {
      this.#differ(pair, column, values);
      return;
    }
    const label = known ?? this.#newLabel(target, column, values);
    label.pairs.add(pair);
    this.#labels[0].set(left, label);
    this.#labels[1].set(right, label);
  }

  #newLabel(target: string, column: string, values: Values): Label {
    const stem = `new ${target}.${column}`.slice(0, 100);
    const number = 1 + (this.#numbers.get(stem) ?? 0);
    this.#numbers.set(stem, number);
    const label = {
      name: `${stem} ${number}`,
      values: canonical(values),
      pairs: new Set<Pair>(),
      assigned: this.#origins[0].find(target, column, values[0]),
    };
    const same = this.#byValues.get(label.values) ?? new Set();
    this.#byValues.set(label.values, same.add(label));
    return label;
  }

  #isOrigin(target: string, column: string, values: Values): boolean {
    return this.#origins.every(
      (origins, run) => origins.find(target, column, values[run as 0 | 1]) !== undefined,
    );
  }

  #isOldKey({ first, second }: Pair, side: Side): boolean {
    const [ours, theirs] = this.#origins;
    return side === 'key' && ours.isOldRow(first) && theirs.isOldRow(second);
  }

  #cellOf(pair: Pair, side: Side, cell: PairedCell): Cell {
    const { column, values } = cell;
    const agree = canonical(values[0]) === canonical(values[1]);
    const explained = this.#isOldKey(pair, side)
      ? undefined
      : this.#explain(pair, side, { ...cell, agree });
    if (explained !== undefined) return explained;
    if (!agree) this.#differ(pair, column, values);
    return { is: values[0] };
  }

  #explain(pair: Pair, side: Side, cell: ComparedCell): Cell | undefined {
    const { column, values, agree } = cell;
    const { op, target } = pair.first;
    const label = this.#labels[0].get(canonical([target, column, values[0]]));
    if (label !== undefined && this.#isOrigin(target, column, values))
      return { generated: label.name };
    // The value existed before the action, so if both rehearsals agree, it is exact.
    if (agree && (side === 'before' || (side === 'key' && op !== 'insert'))) return undefined;
    const reference = this.#referenceOf(pair, cell);
    if (reference !== undefined) return { generated: reference.name };
    const unit = timeUnit(values[0], this.#runs[0].window);
    if (unit === undefined || unit !== timeUnit(values[1], this.#runs[1].window)) return undefined;
    return { now: { withinMs: NOW_WITHIN_MS, unit } };
  }

  /**
   * The identifier that this value repeats. If the schema declares that the column refers to one,
   * that one is taken. Otherwise, if the rehearsals agree, equality may be chance: the identifier
   * must be the only one of another row about which the schema says nothing. The exact value is at
   * least as strict. Values that differ, and equal an identifier in both, are hardly chance.
   */
  #referenceOf(pair: Pair, { column, values, agree }: ComparedCell): Label | undefined {
    const labels = [...(this.#byValues.get(canonical(values)) ?? [])];
    const place = { target: pair.first.target, column };
    const declared = labels.find(({ assigned }) => declaresReference(assigned, place) === true);
    if (declared !== undefined) return declared;
    const others = labels.filter((label) => !label.pairs.has(pair));
    if (!agree) return others[0] ?? labels[0];
    const possible = others.filter(
      ({ assigned }) => declaresReference(assigned, place) === undefined,
    );
    return possible.length === 1 ? possible[0] : undefined;
  }

  #differ(pair: Pair, column: string, values: Values): void {
    const { op, target } = pair.first;
    const rendering = { full: false, cut: false };
    const [first, second] = values.map((value) =>
      this.#shows ? renderValue(value, rendering) : 'one value',
    );
    const other = this.#shows ? second : 'another';
    const place = `${op} ${quote(target)}, column ${quote(column)}`;
    this.differences.push(`${place}: ${first} in the first rehearsal, ${other} in the second`);
  }
}

type Values = readonly [Value, Value];

interface PairedCell {
  readonly column: string;
  readonly values: Values;
}

interface ComparedCell extends PairedCell {
  /** Whether both values are the same. */
  readonly agree: boolean;
}

function cellsOf(pair: Pair, side: Side): readonly PairedCell[] {
  const second = pair.second[side] ?? {};
  return Object.entries(pair.first[side] ?? {}).map(([column, value]) => ({
    column,
    values: [value, second[column] as Value] as const,
  }));
}
