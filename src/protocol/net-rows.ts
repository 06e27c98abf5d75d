import { numberOf, rowText } from './bag.ts';
import type { Effect } from './effect.ts';
import { type Change, findChanges, type Relation } from './relation.ts';
import type { Row } from './value.ts';

/** What stood under one key before some write, and what stood there after one. */
interface Images {
  readonly key: Row;
  readonly removed: Row[];
  readonly added: Row[];
}

/**
 * The net effects of writes that are known by whole rows, in whatever order they are reported:
 * triggers record a nested write before the outer one. Every image that one write left and another
 * one found cancels out, so that per key at most one row from before and one from after remain.
 */
export function netRows(
  target: string,
  relation: Relation,
  changes: readonly Change[],
): readonly Effect[] {
  const keys = new Map<string | number, Images>();
  const at = (key: Row): Images => {
    const id = numberOf(key) ?? rowText(key);
    const known = keys.get(id);
    if (known !== undefined) return known;
    const images = { key, removed: [], added: [] };
    keys.set(id, images);
    return images;
  };
  for (const change of changes) {
    const { key } = change;
    if (key === undefined) throw relation.fault(change.op, 'it has no key');
    if (change.op !== 'insert') at(key).removed.push(change.before);
    if (change.op === 'insert') at(key).added.push(change.after);
    else if (change.op === 'update') at(change.newKey ?? key).added.push(change.after);
  }
  const effects: Effect[] = [];
  for (const images of keys.values()) {
    const effect = netOfKey(target, relation, images);
    if (effect !== undefined) effects.push(effect);
  }
  return effects;
}

function netOfKey(target: string, relation: Relation, images: Images): Effect | undefined {
  const { key } = images;
  const { removed, added } =
    images.removed.length + images.added.length > 2 ? cancel(images) : images;
  if (removed.length > 1 || added.length > 1) {
    throw relation.fault('series of writes', 'they do not follow from each other');
  }
  const [before] = removed;
  const [after] = added;
  if (before === undefined) return after && { op: 'insert', target, key, after };
  if (after === undefined) return { op: 'delete', target, key, before };
  const differences = findChanges(before, after);
  return (
    differences && {
      op: 'update',
      target,
      key,
      before: differences.before,
      after: differences.after,
    }
  );
}

function cancel({ removed, added }: Images): {
  readonly removed: readonly Row[];
  readonly added: readonly Row[];
} {
  const surplus = new Map<string, { readonly row: Row; count: number }>();
  const tally = (row: Row, by: number) => {
    const id = rowText(row);
    const known = surplus.get(id);
    if (known === undefined) surplus.set(id, { row, count: by });
    else known.count += by;
  };
  for (const row of added) tally(row, 1);
  for (const row of removed) tally(row, -1);
  const left = (sign: 1 | -1) =>
    [...surplus.values()].flatMap(({ row, count }) =>
      Array.from({ length: Math.max(0, sign * count) }, () => row),
    );
  return { removed: left(-1), added: left(1) };
}
