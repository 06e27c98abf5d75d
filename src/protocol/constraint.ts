import { EffectMatchError, invariant, unreachable } from '../errors.ts';
import type { Budget } from './budget.ts';
import { canonical } from './canon.ts';
import type { Cell } from './effect.ts';
import { compilePattern, type Pattern, runPattern } from './pattern.ts';
import { RecentMap } from './recent-map.ts';
import { type Instant, readInstant } from './time-text.ts';
import { orderValues, readTag, type Value } from './value.ts';

/** What a constraint may depend on besides the value. */
export interface ConstraintContext {
  /** When the operation ran, on the backend's clock, in milliseconds since the epoch. */
  readonly window: { readonly fromMs: number; readonly toMs: number };
  /** Limits the cost of evaluation. Once it is exhausted, answers are meaningless. */
  readonly budget?: Budget;
}

/** The backend's evidence about the values it assigned in one column: a range or the values. */
type AssignedValues =
  | { readonly above: string; readonly upTo: string }
  | { readonly fresh: readonly Value[] };

/** Whether a cell approves exactly one value, so that values compare by canonical text. */
export function isExact(cell: Cell): cell is { readonly is: Value } {
  return 'is' in cell;
}

/**
 * Whether the cell approves an observed value. The matcher decides `generated` cells, because they
 * relate several cells of an outcome to each other.
 */
export function satisfies(cell: Cell, value: Value, context: ConstraintContext): boolean {
  if ('is' in cell) return sameValue(cell.is, value);
  if ('any' in cell) return true;
  if ('oneOf' in cell) return isOneOf(cell.oneOf, value, context);
  if ('between' in cell) return isBetween(cell.between, value);
  if ('matches' in cell)
    return typeof value === 'string' && matchesWhole(cell.matches, value, context);
  if ('now' in cell) return isNow(cell.now, value, context);
  invariant(!('generated' in cell), 'generated cells are decided by the matcher');
  return unreachable(cell);
}

/** The text of an integer that a double represents exactly. */
const SMALL_INTEGER = /^-?(?:0|[1-9]\d{0,14})$/;

/** Whether the backend may have assigned this value, by its evidence about the column. */
export function withinAssigned(assigned: AssignedValues, value: Value): boolean {
  if ('fresh' in assigned) return freshTexts(assigned.fresh).has(canonical(value));
  if (!isInteger(value)) return false;
  const { above, upTo } = assigned;
  // This runs for every inserted row, and nearly all numbers are small.
  if (typeof value === 'number' && SMALL_INTEGER.test(above) && SMALL_INTEGER.test(upTo))
    return Number(above) < value && value <= Number(upTo);
  const low = orderValues({ $int: assigned.above }, value);
  const high = orderValues(value, { $int: assigned.upTo });
  return low !== undefined && high !== undefined && low < 0 && high <= 0;
}

/**
 * Refuses a cell that no value can satisfy or that cannot be evaluated, and says what to change.
 * Call it before signing: after staging it is too late to tell the approver.
 */
export function checkCell(cell: Cell, where: string): void {
  if ('matches' in cell) patternOf(cell.matches);
  if (!('between' in cell)) return;
  const order = orderValues(...cell.between);
  if (order === undefined || order > 0) {
    throw new EffectMatchError(
      'ERR_EM_MANIFEST_INVALID',
      `${where}: between needs two numbers or two texts, the lower one first`,
    );
  }
  if (cell.between.some((bound) => typeof bound === 'string' && FAR_DATE.test(bound))) {
    throw new EffectMatchError(
      'ERR_EM_MANIFEST_INVALID',
      `${where}: between compares dates by their texts; their years must be 0001 to 9999`,
    );
  }
}

/** Longer texts match no pattern: the agent chooses the text, and so the cost. */
const MATCHED_LENGTH_MAX = 4096;

/**
 * Visiting a pattern state is so much faster than examining a pair that this many visits count as
 * one step.
 */
const STATES_PER_STEP = 16;

function matchesWhole(source: string, text: string, { budget }: ConstraintContext): boolean {
  if (text.length > MATCHED_LENGTH_MAX) return false;
  const pattern = patternOf(source, budget);
  const { matched, steps } = runPattern(pattern, text, budget && budget.left * STATES_PER_STEP);
  budget?.spend(Math.floor(steps / STATES_PER_STEP));
  return matched;
}

/**
 * Builds the text of an object or list only once: the list of allowed values can be long, and the
 * agent chooses the value.
 */
function isOneOf(allowed: readonly Value[], value: Value, { budget }: ConstraintContext): boolean {
  budget?.spend(Math.floor(allowed.length / STATES_PER_STEP));
  if (typeof value !== 'object' || value === null) return allowed.includes(value);
  const text = canonical(value);
  return allowed.some((one) => typeof one === 'object' && one !== null && canonical(one) === text);
}

/** How many states the patterns of one outcome may need in total; equal patterns count once. */
const STATES_TOGETHER_MAX = 65_536;

/** Refuses patterns that need too many states in total, so that compiling takes bounded time. */
export function checkPatterns(sources: ReadonlySet<string>): void {
  let states = 0;
  for (const source of sources) {
    states += patternOf(source).states.length;
    if (states <= STATES_TOGETHER_MAX) continue;
    throw new EffectMatchError(
      'ERR_EM_MANIFEST_INVALID',
      `the ${sources.size} patterns need more than ${STATES_TOGETHER_MAX} states together; use fewer or shorter ones`,
    );
  }
}

function sameValue(a: Value, b: Value): boolean {
  if (a === b) return true;
  const scalar = typeof a !== 'object' || a === null || typeof b !== 'object' || b === null;
  return !scalar && canonical(a) === canonical(b);
}

/** Dates with a four-digit year sort like their texts. Later dates and dates BC do not. */
const DATE = /^\d{4}-\d\d-\d\d(?:[ T][\d:.]+(?:Z|[-+][\d:]+)?)?$/;
const FAR_DATE = /^\d{5,}-\d\d-\d\d|^\d{4,}-\d\d-\d\d.* BC$/;
const ENDLESS = /^-?infinity$/;

function isBetween([low, high]: readonly [Value, Value], value: Value): boolean {
  if (boundsDates(low, high) && !isDateText(value) && value !== low && value !== high) return false;
  const fromLow = orderValues(low, value);
  const toHigh = orderValues(value, high);
  return fromLow !== undefined && toHigh !== undefined && fromLow <= 0 && toHigh <= 0;
}

/** Whether the bounds are dates or infinite, so that only dates can lie between them. */
function boundsDates(low: Value, high: Value): boolean {
  const isEnd = (bound: Value) =>
    isDateText(bound) || (typeof bound === 'string' && ENDLESS.test(bound));
  return isEnd(low) && isEnd(high);
}

function isDateText(value: Value): boolean {
  return typeof value === 'string' && DATE.test(value);
}

function isInteger(value: Value): boolean {
  if (typeof value === 'number') return Number.isSafeInteger(value);
  const tagged = readTag(value);
  return tagged?.tag === '$int' || (tagged?.tag === '$dec' && !tagged.text.includes('.'));
}

type Now = Extract<Cell, { readonly now: unknown }>['now'];

function isNow(now: Now, value: Value, { window }: ConstraintContext): boolean {
  const instant = instantOf(now.unit, value);
  if (instant === undefined) return false;
  const { earliestMs, latestMs } = instant;
  // A value without milliseconds was truncated, or rounded up by at most half of what it omits.
  const roundedMs = Math.floor((latestMs + 1 - earliestMs) / 2);
  return (
    latestMs >= window.fromMs - now.withinMs && earliestMs - roundedMs <= window.toMs + now.withinMs
  );
}

function instantOf(unit: Now['unit'], value: Value): Instant | undefined {
  switch (unit) {
    case 'iso':
      return typeof value === 'string' ? readInstant(value) : undefined;
    case 'ms':
      return Number.isSafeInteger(value)
        ? { earliestMs: Number(value), latestMs: Number(value) }
        : undefined;
    case 's':
      return secondsOf(value);
    default:
      return unreachable(unit);
  }
}

/** A whole number of seconds may have been truncated, so it covers the whole second. */
function secondsOf(value: Value): Instant | undefined {
  const tagged = readTag(value);
  const seconds = tagged?.tag === '$real' ? Number(tagged.text) : value;
  if (typeof seconds !== 'number' || !Number.isFinite(seconds)) return undefined;
  if (Number.isInteger(seconds))
    return { earliestMs: seconds * 1000, latestMs: seconds * 1000 + 999 };
  const ms = Math.round(seconds * 1000);
  return tagged === undefined ? undefined : { earliestMs: ms, latestMs: ms };
}

const freshKnown = new WeakMap<readonly Value[], ReadonlySet<string>>();

/**
 * The texts of fresh values, built once per list: every generated row is checked, and a list can be
 * as long as there are rows.
 */
function freshTexts(fresh: readonly Value[]): ReadonlySet<string> {
  const known = freshKnown.get(fresh);
  if (known !== undefined) return known;
  const texts = new Set(fresh.map(canonical));
  freshKnown.set(fresh, texts);
  return texts;
}

const PATTERNS_KEPT = 64;
const patterns = new RecentMap<string, Pattern>(PATTERNS_KEPT);

/**
 * Caches compiled patterns, because one pattern is usually tried on many rows. Compiling spends
 * budget, as running does.
 */
function patternOf(source: string, budget?: Budget): Pattern {
  const known = patterns.get(source);
  if (known !== undefined) return known;
  const pattern = compilePattern(source);
  budget?.spend(Math.floor(pattern.states.length / STATES_PER_STEP));
  patterns.set(source, pattern);
  return pattern;
}
