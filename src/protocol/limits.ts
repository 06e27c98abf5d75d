import { type ApprovedEffect, type Cell, columnOf, type Op } from './effect.ts';
import { describeWindow, isWithin as isInWindow, localTime, windowSchema } from './hours.ts';
import type { License } from './license.ts';
import type { Approved } from './manifest.ts';
import { nameSchema } from './record.ts';
import { quote } from './render-text.ts';
import {
  choice,
  closed,
  dictionary,
  form,
  type Infer,
  integer,
  list,
  optional,
  text,
} from './schema.ts';
import { orderValues, readTag, type Value } from './value.ts';

export const OPS: readonly Op[] = ['insert', 'update', 'delete'];

const targetSchema = text(1, 512);
const decimalSchema = form(
  /^(?=.{1,100}$)-?(?:0|[1-9]\d*)(?:\.\d+)?$/,
  'a decimal number as text, of at most 100 characters',
);

/** Limits on what an issuer may approve. An absent field means no limit. */
export const limitsSchema = closed({
  /**
   * The only operations whose contracts this issuer may sign. An approval without an operation is
   * then refused.
   */
  operations: optional(list(nameSchema, 0, 1000)),
  /** The only relations that may change, and how. */
  relations: optional(
    list(
      closed({
        name: targetSchema,
        ops: list(choice('insert', 'update', 'delete'), 1),
      }),
      0,
      10_000,
    ),
  ),
  /** How many changes one license may allow, over all its occurrences. */
  maxEffects: optional(integer(0)),
  /** The same per relation. Only `maxEffects` limits relations that are not named here. */
  maxRows: optional(dictionary(targetSchema, integer(0))),
  /** The largest number that may be written to a column, as decimal text. */
  amounts: optional(
    list(
      closed({
        target: targetSchema,
        column: text(1, 256),
        max: decimalSchema,
      }),
      0,
      1000,
    ),
  ),
  /** The windows in which this issuer's approvals may be executed. */
  hours: optional(list(windowSchema, 1, 64)),
  /** How long a license of this issuer may be valid. */
  maxLifetimeMs: optional(integer(1)),
});
/** What an issuer may approve, where an absent field means no limit. */
export type Limits = Infer<typeof limitsSchema>;

/** The reasons with which a terminal names the limit that was exceeded. */
export const LIMIT_REASONS = [
  'limit-operation',
  'limit-relations',
  'limit-effects',
  'limit-rows',
  'limit-amount',
  'limit-hours',
  'limit-lifetime',
] as const;
/** One of {@link LIMIT_REASONS}. */
export type LimitReason = (typeof LIMIT_REASONS)[number];

/**
 * The first limit that an approval exceeds: a stable reason, and a sentence with the limit and, if
 * values may be stored, the value.
 */
export interface Exceeded {
  readonly reason: LimitReason;
  readonly detail: string;
}

/**
 * The first of the issuer's limits that an approval exceeds, if any. Considers everything that A
 * would allow: a constraint counts as the largest value it admits, and occurrences are added up.
 */
export function findExceeded(
  limits: Limits,
  license: Pick<License, 'operation' | 'occurrences'>,
  approved: Pick<Approved, 'effects' | 'registration'>,
): Exceeded | undefined {
  return (
    checkOperation(limits, license) ??
    checkRelations(limits, approved.effects) ??
    checkCounts(limits, license, approved.effects) ??
    checkAmounts(limits, approved)
  );
}

/**
 * Checks whether an approval of this issuer may be executed now, by the clock of the executing
 * machine. The time of signing does not count: only the approver's machine vouches for it.
 */
export function findUntimely({ hours }: Limits, atMs: number): Exceeded | undefined {
  if (hours === undefined || hours.some((window) => isInWindow(window, atMs))) return undefined;
  const places = [...new Set(hours.map(({ zone }) => zone))].map(
    (zone) => localTime(zone, atMs).text,
  );
  const allowed = hours.map(describeWindow).join(', ');
  return {
    reason: 'limit-hours',
    detail: `it is ${places.join(', ')}; approvals of this issuer run only ${allowed}`,
  };
}

/**
 * How many changes one request may make: an adapter looks at every single effect, however short the
 * text that counts them.
 */
const REMOTE_EFFECTS_MAX = 10_000;

/** A message if one request would make more changes than any request may, else undefined. */
export function findOversized(
  effects: readonly Pick<ApprovedEffect, 'count'>[],
): string | undefined {
  const total = effects.reduce((sum, { count }) => sum + count, 0);
  if (total <= REMOTE_EFFECTS_MAX) return undefined;
  return `${total} changes are more than the ${REMOTE_EFFECTS_MAX} that one request may make`;
}

/**
 * A license becomes valid a minute before it is signed, because clocks differ. That minute does not
 * count.
 */
const EARLY_MS = 60_000;

/**
 * Checks that a license is not valid for longer than its issuer allows. A longer one is always
 * refused.
 */
export function findOverlong(
  { maxLifetimeMs }: Limits,
  { notBefore, expiresAt }: Pick<License, 'notBefore' | 'expiresAt'>,
): Exceeded | undefined {
  if (maxLifetimeMs === undefined) return undefined;
  // An unreadable time fails this comparison and is refused.
  if (Date.parse(expiresAt) - Date.parse(notBefore) - EARLY_MS <= maxLifetimeMs) return undefined;
  return {
    reason: 'limit-lifetime',
    detail: `the license is valid from ${notBefore} to ${expiresAt}; the limit is ${maxLifetimeMs / 1000} seconds`,
  };
}

function checkOperation(
  { operations }: Limits,
  { operation }: Pick<License, 'operation'>,
): Exceeded | undefined {
  if (operations === undefined || operations.some((name) => name === operation)) return undefined;
  const allowed = operations.join(', ') || 'no operation';
  const found =
    operation === undefined
      ? 'this approval names no operation'
      : `this approval is for ${operation}`;
  return { reason: 'limit-operation', detail: `${found}; the issuer may approve only ${allowed}` };
}

function checkRelations(
  { relations }: Limits,
  effects: readonly ApprovedEffect[],
): Exceeded | undefined {
  if (relations === undefined) return undefined;
  const allows = (op: Op, target: string) =>
    relations.some(({ name, ops }) => name === target && ops.includes(op));
  const outside = effects.find(({ op, target }) => !allows(op, target));
  if (outside === undefined) return undefined;
  const allowed =
    relations.map(({ name, ops }) => `${quote(name)} (${ops.join(', ')})`).join(', ') ||
    'no change';
  return {
    reason: 'limit-relations',
    detail: `${outside.op} on ${quote(outside.target)} is approved; the issuer may approve only ${allowed}`,
  };
}

function checkCounts(
  { maxEffects = Number.POSITIVE_INFINITY, maxRows = {} }: Limits,
  { occurrences }: Pick<License, 'occurrences'>,
  effects: readonly ApprovedEffect[],
): Exceeded | undefined {
  const rows = new Map<string, number>();
  for (const { target, count } of effects)
    rows.set(target, count * occurrences + (rows.get(target) ?? 0));
  const total = [...rows.values()].reduce((sum, count) => sum + count, 0);
  const over = occurrences === 1 ? '' : ` over ${occurrences} occurrences`;
  if (total > maxEffects) {
    return {
      reason: 'limit-effects',
      detail: `${total} changes are approved${over}; the limit is ${maxEffects}`,
    };
  }
  for (const [target, max] of Object.entries(maxRows)) {
    const count = rows.get(target) ?? 0;
    if (count <= max) continue;
    const detail = `${count} changes of ${quote(target)} are approved${over}; the limit is ${max}`;
    return { reason: 'limit-rows', detail };
  }
  return undefined;
}

function checkAmounts(
  { amounts = [] }: Limits,
  { effects, registration }: Pick<Approved, 'effects' | 'registration'>,
): Exceeded | undefined {
  for (const { target, column, max } of amounts) {
    const place = `${quote(target)}.${quote(column)}`;
    const exceeded = (what: string): Exceeded => ({
      reason: 'limit-amount',
      detail: `${what} is approved for ${place}; the limit is ${max}`,
    });
    const unseen = registration.targets.some(
      ({ name, volatile }) => name === target && volatile.includes(column),
    );
    for (const effect of effects) {
      if (effect.target !== target || effect.op === 'delete') continue;
      const cells =
        effect.op === 'insert' ? { ...effect.key, ...effect.after } : (effect.after ?? {});
      const cell = columnOf(cells, column);
      const isStated = effect.op === 'update' && effect.after !== undefined;
      if (cell === undefined && isStated && !unseen) continue;
      const beyond = cell === undefined ? 'an amount that is not compared' : findBeyond(cell, max);
      if (beyond === undefined) continue;
      return exceeded(
        registration.values === 'plain' || cell === undefined ? beyond : 'more than may be',
      );
    }
  }
  return undefined;
}

/**
 * What the cell admits beyond the limit, or undefined if its upper bound is within. NULL is not an
 * amount.
 */
function findBeyond(cell: Cell, max: string): string | undefined {
  if ('is' in cell) return isWithin(cell.is, max) ? undefined : describe(cell.is);
  if ('oneOf' in cell) {
    const beyond = cell.oneOf.find((value) => !isWithin(value, max));
    return beyond === undefined ? undefined : describe(beyond);
  }
  if ('between' in cell) {
    const high = cell.between[1];
    return high !== null && isWithin(high, max) ? undefined : `up to ${describe(high)}`;
  }
  return `"${Object.keys(cell)[0]}", which has no upper bound,`;
}

function isWithin(value: Value, max: string): boolean {
  if (value === null) return true;
  const order = orderValues(value, { $dec: max });
  return order !== undefined && order <= 0;
}

function describe(value: Value): string {
  const tagged = readTag(value);
  if (tagged !== undefined) return tagged.text.slice(0, 100);
  return typeof value === 'number'
    ? String(value)
    : `a ${Array.isArray(value) ? 'list' : typeof value}`;
}
