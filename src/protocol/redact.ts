import { canonicalBytes } from './canon-size.ts';
import type { CountedEffect, Diff } from './diff.ts';
import { type ApprovedEffect, type Cell, type CellRow, mapColumns, mapImages } from './effect.ts';
import type { Approved } from './manifest.ts';
import type { SessionSettings } from './settings.ts';
import { type Row, readTag, type Value } from './value.ts';

/** A keyed digest of one value of one column. */
export type DigestValue = (target: string, column: string, value: Value) => string;

/**
 * A without its values, for journals that must not keep them. Shape, columns, labels and counts
 * stay, and equal values of one column have equal digests, so people can still see what was
 * approved and whether two approvals agree.
 */
export function redactApproved(approved: Approved, digestValue: DigestValue): Approved {
  const digest: MapValue = digesting(digestValue);
  const { settings } = approved;
  return {
    ...approved,
    ...(settings && { settings: redactSettings(settings, digest) }),
    // The digests of A and of the task state stay in the journal. With the salt next to them,
    // values could be guessed.
    salt: '0'.repeat(approved.salt.length),
    effects: approved.effects.map((effect) => mapApproved(effect, digest)),
    requires: approved.requires.map(({ target, key, row }) => ({
      target,
      key: mapRow(target, key, digest),
      row: row === null ? null : mapRow(target, row, digest),
    })),
    watch: approved.watch.map((read) => ({ ...read, key: mapRow(read.target, read.key, digest) })),
  };
}

function redactSettings(settings: SessionSettings, map: MapValue): SessionSettings {
  return mapColumns(settings, (value, name) =>
    mapText(value, (text) => map(text, 'settings', name)),
  );
}

/** A diff without its values, redacted like {@link redactApproved}. */
export function redactDiff(diff: Diff, digestValue: DigestValue): Diff {
  return mapDiff(diff, digesting(digestValue));
}

/** A diff in which values larger than `maxBytes` are replaced by their size in bytes. */
export function cutDiff(diff: Diff, maxBytes: number): Diff {
  return mapDiff(diff, (value) => {
    const bytes = canonicalBytes(value);
    return bytes <= maxBytes ? value : { $omitted: String(bytes) };
  });
}

function mapDiff(diff: Diff, map: MapValue): Diff {
  return {
    extra: diff.extra.map((effect) => mapObserved(effect, map)),
    missing: diff.missing.map((effect) => mapApproved(effect, map)),
    altered: diff.altered.map(({ approved, observed }) => ({
      approved: mapApproved(approved, map),
      observed: mapObserved(observed, map),
    })),
    omitted: diff.omitted,
  };
}

/**
 * Keeps at most `maxEntries` entries and counts the changes of the rest in `omitted`. Each kind
 * gets a third first, so that ten thousand extra effects do not hide one missing effect.
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
  const cut = [
    ...diff.extra.slice(extra),
    ...diff.missing.slice(missing),
    ...diff.altered.slice(altered).map(({ approved }) => approved),
  ];
  return {
    extra: diff.extra.slice(0, extra),
    missing: diff.missing.slice(0, missing),
    altered: diff.altered.slice(0, altered),
    omitted: cut.reduce((sum, { count }) => sum + count, diff.omitted),
  };
}

/** Replaces one value of one column. */
type MapValue = (value: Value, target: string, column: string) => Value;

/** Keeps omitted values: their digest would say nothing. */
function digesting(digestValue: DigestValue): MapValue {
  return (value, target, column) =>
    readTag(value)?.tag === '$omitted' ? value : { $digest: digestValue(target, column, value) };
}

function mapApproved(effect: ApprovedEffect, map: MapValue): ApprovedEffect {
  const { op, target, count } = effect;
  const mapCells = (cells: CellRow): CellRow =>
    mapColumns(cells, (cell, column) => mapCell(cell, (value) => map(value, target, column)));
  return { op, target, ...mapImages(effect, mapCells), count };
}

function mapObserved(effect: CountedEffect, map: MapValue): CountedEffect {
  const { op, target, count } = effect;
  return { op, target, ...mapImages(effect, (row) => mapRow(target, row, map)), count };
}

function mapCell(cell: Cell, map: (value: Value) => Value): Cell {
  if ('is' in cell) return { is: map(cell.is) };
  if ('oneOf' in cell) return { oneOf: cell.oneOf.map(map) };
  if ('between' in cell) return { between: [map(cell.between[0]), map(cell.between[1])] };
  if ('matches' in cell) return { matches: mapText(cell.matches, map) };
  return cell;
}

/**
 * A pattern may spell out what it matches. Like a setting it is text, so only the text of a digest
 * can replace it.
 */
function mapText(text: string, map: (value: Value) => Value): string {
  const stands = readTag(map(text));
  return stands?.tag === '$digest' ? `digest ${stands.text}` : text;
}

function mapRow(target: string, row: Row, map: MapValue): Row {
  return mapColumns(row, (value, column) => map(value, target, column));
}
