import { effectKey, rowText, valueText } from './bag.ts';
import { type ApprovedEffect, type Effect, exactKey, mapColumns, mapImages } from './effect.ts';
import type { Value } from './value.ts';

/** An observed effect with its count. */
export interface CountedEffect extends Effect {
  readonly count: number;
}

/** An observed effect in the form in which an approval would state it. */
export function asApproved(effect: CountedEffect): ApprovedEffect {
  const { op, target, count } = effect;
  const images = mapImages(effect, (row) => mapColumns(row, (value) => ({ is: value })));
  return { op, target, ...images, count };
}

/**
 * How E differs from A. `altered` pairs approved and observed effects that have the same target and
 * key.
 */
export interface Diff {
  readonly extra: readonly CountedEffect[];
  readonly missing: readonly ApprovedEffect[];
  readonly altered: readonly {
    readonly approved: ApprovedEffect;
    readonly observed: CountedEffect;
  }[];
  /** How many changes were left out of a stored diff because it was too large. */
  readonly omitted: number;
}

/**
 * The difference as people read it. A missing and an extra effect on the same row become one
 * altered row. Effects with the same operation are paired first. The result does not depend on the
 * order of the arguments.
 */
export function diffOf(missing: readonly ApprovedEffect[], extra: readonly CountedEffect[]): Diff {
  const start = { missing: sortByText(missing, approvedText), extra: sortByText(extra, effectKey) };
  const sameOp = pairUp(start, ({ op }) => op);
  const otherOp = pairUp(sameOp, () => '');
  return {
    extra: otherOp.extra,
    missing: otherOp.missing,
    altered: [...sameOp.altered, ...otherOp.altered],
    omitted: 0,
  };
}

type Sides = Pick<Diff, 'missing' | 'extra'>;

interface Waiting {
  readonly effect: CountedEffect;
  left: number;
}

function pairUp(
  { missing, extra }: Sides,
  prefixOf: (effect: Pick<Effect, 'op'>) => string,
): Omit<Diff, 'omitted'> {
  const observed = extra.map((effect): Waiting => ({ effect, left: effect.count }));
  const waiting = Map.groupBy(observed, ({ effect: { op, target, key } }) =>
    key === undefined ? undefined : prefixOf({ op }) + rowName(target, rowText(key)),
  );
  const altered: Diff['altered'][number][] = [];
  const unpaired: ApprovedEffect[] = [];
  for (const approved of missing) {
    let open = approved.count;
    const key = exactKey(approved);
    const row = key && rowName(approved.target, rowText(key));
    for (const entry of (row !== undefined && waiting.get(prefixOf(approved) + row)) || []) {
      const count = Math.min(open, entry.left);
      if (count === 0) continue;
      altered.push({ approved: { ...approved, count }, observed: { ...entry.effect, count } });
      open -= count;
      entry.left -= count;
    }
    if (open > 0) unpaired.push({ ...approved, count: open });
  }
  const left = observed
    .filter((entry) => entry.left > 0)
    .map(({ effect, left: count }) => ({ ...effect, count }));
  return { altered, missing: unpaired, extra: left };
}

function rowName(target: string, keyText: string): string {
  return `${target.length}:${target}${keyText}`;
}

function approvedText({ count, ...effect }: ApprovedEffect): string {
  return `${valueText(effect as unknown as Value)}${count}`;
}

function sortByText<T>(effects: readonly T[], textOf: (effect: T) => string): readonly T[] {
  return effects
    .map((effect) => ({ effect, text: textOf(effect) }))
    .sort((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0))
    .map(({ effect }) => effect);
}
