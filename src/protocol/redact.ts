import type { CountedEffect, Diff } from './diff.ts';
import type { ApprovedEffect, Cell, CellRow } from './effect.ts';
import type { Approved } from './manifest.ts';
import type { Row, Value } from './value.ts';

/** A keyed digest of one value of one column. */
export type DigestValue = (target: string, column: string, value: Value) => string;

/**
 * A without its values, for journals that must not keep them. Shape, columns, labels and counts stay, and equal values
 * of one column keep equal digests, so people can still see what was approved and whether two approvals agree.
 */
export function redactApproved(approved: Approved, digestValue: DigestValue): Approved {
  return {
    ...approved,
    // The digests of A and of the task state stay in the journal; with the salt beside them they could be tried out.
    salt: '0'.repeat(approved.salt.length),
    effects: approved.effects.map((effect) => redactEffect(effect, digestValue)),
    requires: approved.requires.map(({ target, key, row }) => ({
      target,
      key: redactRow(target, key, digestValue),
      row: row === null ? null : redactRow(target, row, digestValue),
    })),
    watch: approved.watch.map((read) => ({ ...read, key: redactRow(read.target, read.key, digestValue) })),
  };
}

/** A diff without its values, on the same terms as {@link redactApproved}. */
export function redactDiff(diff: Diff, digestValue: DigestValue): Diff {
  return {
    extra: diff.extra.map((effect) => redactObserved(effect, digestValue)),
    missing: diff.missing.map((effect) => redactEffect(effect, digestValue)),
    altered: diff.altered.map(({ approved, observed }) => ({
      approved: redactEffect(approved, digestValue),
      observed: redactObserved(observed, digestValue),
    })),
    omitted: diff.omitted,
  };
}

/**
 * Keeps at most `maxEntries` entries and counts the rest in `omitted`. Each kind gets a third first, so that ten
 * thousand extra effects do not hide the one that is missing.
 */
export function boundDiff(diff: Diff, maxEntries: number): Diff {
  const third = Math.floor(maxEntries / 3);
  const lengths = [diff.altered.length, diff.extra.length, diff.missing.length];
  let left = maxEntries - lengths.reduce((sum, length) => sum + Math.min(length, third), 0);
  const [altered = 0, extra = 0, missing = 0] = lengths.map((length) => {
    const more = Math.max(0, Math.min(length - third, left));
    left -= more;
    return Math.min(length, third) + more;
  });
  const kept = altered + extra + missing;
  return {
    extra: diff.extra.slice(0, extra),
    missing: diff.missing.slice(0, missing),
    altered: diff.altered.slice(0, altered),
    omitted: diff.omitted + lengths.reduce((sum, length) => sum + length, 0) - kept,
  };
}

function redactEffect(effect: ApprovedEffect, digestValue: DigestValue): ApprovedEffect {
  const { op, target, key, before, after, count } = effect;
  const redact = (cells: CellRow): CellRow =>
    mapColumns(cells, (cell, column) => redactCell(cell, (value) => ({ $digest: digestValue(target, column, value) })));
  return {
    op,
    target,
    ...(key !== undefined && { key: redact(key) }),
    ...(before !== undefined && { before: redact(before) }),
    ...(after !== undefined && { after: redact(after) }),
    count,
  };
}

function redactObserved(effect: CountedEffect, digestValue: DigestValue): CountedEffect {
  const { op, target, key, before, after, count } = effect;
  return {
    op,
    target,
    ...(key !== undefined && { key: redactRow(target, key, digestValue) }),
    ...(before !== undefined && { before: redactRow(target, before, digestValue) }),
    ...(after !== undefined && { after: redactRow(target, after, digestValue) }),
    count,
  };
}

function redactCell(cell: Cell, redact: (value: Value) => Value): Cell {
  if ('is' in cell) return { is: redact(cell.is) };
  if ('oneOf' in cell) return { oneOf: cell.oneOf.map(redact) };
  if ('between' in cell) return { between: [redact(cell.between[0]), redact(cell.between[1])] };
  return cell;
}

function redactRow(target: string, row: Row, digestValue: DigestValue): Row {
  return mapColumns(row, (value, column) => ({ $digest: digestValue(target, column, value) }));
}

function mapColumns<T, U>(
  row: { readonly [column: string]: T },
  map: (value: T, column: string) => U,
): { readonly [column: string]: U } {
  return Object.fromEntries(Object.entries(row).map(([column, value]) => [column, map(value, column)]));
}
