import { errorsOf } from '../errors.ts';
import { checkCell } from './constraint.ts';
import type { Cell } from './effect.ts';
import { encodeReal, fromJs } from './value.ts';

/**
 * Registered globally, because a configuration file and the command line may load separate copies
 * of this package.
 */
const constraintBrand: unique symbol = Symbol.for('effectmatch/constraint');
const changeBrand: unique symbol = Symbol.for('effectmatch/change');

/** Data as applications write it. */
export type Plain =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | readonly Plain[]
  | { readonly [key: string]: Plain };

/**
 * A constraint on one column. A symbol brands it, so that data such as `{ any: true }` is never
 * read as a constraint.
 */
export interface Constraint {
  readonly [constraintBrand]: Cell;
}

/** A change of one column that states both sides, made by `to` or `from`. */
export interface Change {
  readonly [changeBrand]: { readonly before: Cell; readonly after: Cell };
}

/** The backend assigns the value. Equal labels mean equal values. */
export function generated(label: string): Constraint {
  if (typeof label !== 'string' || label === '' || label.length > 128) {
    throw refuse('generated needs a label of 1 to 128 characters');
  }
  return constrain({ generated: label });
}

/**
 * A floating-point number. Accepts numbers beyond 2^53, which are refused as plain numbers because
 * they may be rounded integers.
 */
export function real(value: number): Constraint {
  if (typeof value !== 'number') throw refuse('real needs a number');
  return constrain({ is: encodeReal(value) });
}

/** One of the listed values. */
export function oneOf(...values: readonly Plain[]): Constraint {
  if (values.length === 0 || values.length > 1000) throw refuse('oneOf needs 1 to 1000 values');
  return constrain({
    oneOf: values.map((value, index) => fromJs(value, `oneOf value ${index + 1}`)),
  });
}

/** A number or text from `low` to `high`, both included. */
export function between(low: Plain, high: Plain): Constraint {
  const cell: Cell = { between: [fromJs(low, 'between'), fromJs(high, 'between')] };
  checkCell(cell, 'between');
  return constrain(cell);
}

/**
 * Text of at most 4,096 characters that matches as a whole. `compilePattern` defines the syntax.
 */
export function matches(pattern: string): Constraint {
  if (typeof pattern !== 'string' || pattern === '')
    throw refuse('matches needs a pattern, as text');
  const cell: Cell = { matches: pattern };
  checkCell(cell, 'matches');
  return constrain(cell);
}

/** Any value: the approver does not care. */
export function any(): Constraint {
  return constrain({ any: true });
}

/**
 * The time at which the operation runs, plus or minus `within`: UTC text, or seconds or
 * milliseconds since 1970.
 */
export function now(options: {
  readonly within: number | string;
  readonly unit?: 'iso' | 's' | 'ms' | undefined;
}): Constraint {
  const withinMs = readDuration(options?.within);
  const unit = options.unit ?? 'iso';
  if (!['iso', 's', 'ms'].includes(unit)) throw refuse("now: unit must be 'iso', 's' or 'ms'");
  return constrain({ now: { withinMs, unit } });
}

/**
 * Sets a column to a constraint, or to a value that would otherwise be read as [from, to], whatever
 * the column held before.
 */
export function to(after: Plain | Constraint): Change {
  return { [changeBrand]: { before: { any: true }, after: readCell(after, 'to') } };
}

/**
 * Changes a column from one value or constraint to another; the long form of a two-element array.
 */
export function from(before: Plain | Constraint, after: Plain | Constraint): Change {
  return { [changeBrand]: { before: readCell(before, 'from'), after: readCell(after, 'from') } };
}

/** The constraint's cell, or the exact value if the input is not a constraint. */
export function readCell(input: unknown, where: string): Cell {
  if (isBranded(input, changeBrand))
    throw refuse(`${where}: to() and from() belong directly in the changes of update()`);
  return isBranded(input, constraintBrand)
    ? (input as unknown as Constraint)[constraintBrand]
    : { is: fromJs(input, where) };
}

/**
 * Both sides of a change, given as [from, to], `to`, `from`, or only the new value or constraint.
 */
export function readChange(
  input: unknown,
  where: string,
): { readonly before: Cell; readonly after: Cell } {
  if (isBranded(input, changeBrand)) return (input as unknown as Change)[changeBrand];
  if (!Array.isArray(input)) return { before: { any: true }, after: readCell(input, where) };
  if (input.length !== 2) {
    throw refuse(
      `${where}: an array means [from, to]; write to([…]) to set the column to an array`,
    );
  }
  return {
    before: readCell(input[0], `${where} (from)`),
    after: readCell(input[1], `${where} (to)`),
  };
}

/** Whether a function of this file made the input, so that it is not mistaken for a row. */
export function isMarked(input: unknown): boolean {
  return isBranded(input, constraintBrand) || isBranded(input, changeBrand);
}

function isBranded(input: unknown, brand: symbol): boolean {
  return typeof input === 'object' && input !== null && Object.hasOwn(input, brand);
}

function constrain(cell: Cell): Constraint {
  return { [constraintBrand]: cell };
}

const UNITS_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const;

function readDuration(within: unknown): number {
  const found = typeof within === 'string' ? /^(\d{1,9})(ms|s|m|h)$/.exec(within) : null;
  const ms =
    found === null ? within : Number(found[1]) * UNITS_MS[found[2] as keyof typeof UNITS_MS];
  if (typeof ms !== 'number' || !Number.isInteger(ms) || ms < 0 || ms > 86_400_000) {
    throw refuse(
      "now: write now({ within: '5s' }); within must be milliseconds or text like '5s' or '2m', at most a day",
    );
  }
  return ms;
}

const refuse = errorsOf('ERR_EM_MANIFEST_INVALID');
