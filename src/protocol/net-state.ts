import { numberOf, rowText, sameValue } from './bag.ts';
import type { ChangeRecord, ChangeRecords, Effect } from './effect.ts';
import { findChanges, type ReadChange, type RelationReader } from './relation.ts';
import type { Row } from './value.ts';

/**
 * The net difference that writes make to one relation, between its first and last state. A single
 * write of a row is its net difference, and whole rows cancel out in any order. If only changed
 * columns are known of a row that was written twice, writes are followed in the order in which they
 * happened.
 */
export class NetState {
  readonly #target: string;
  readonly #relation: RelationReader;
  readonly #rows: NetRows = new Map();
  /** Whether all writes so far report whole rows. */
  #isWhole = true;
  /** Whether a row was written twice, or got another key. */
  #isRepeated = false;

  constructor(target: string, relation: RelationReader) {
    this.#target = target;
    this.#relation = relation;
  }

  /** Adds the next write. The record is not kept: there may be a million. */
  add(record: ChangeRecord): void {
    const change = this.#relation.read(record);
    this.#isWhole &&= this.#relation.isWhole(change);
    if (this.#needsOrder) return;
    const isNew = cancelWrite(this.#rows, change);
    this.#isRepeated ||= !isNew;
  }

  get #needsOrder(): boolean {
    return this.#isRepeated && !this.#isWhole;
  }

  /** `records` must include all that were added, and may include those of other relations. */
  effects(records: ChangeRecords): readonly Effect[] {
    const effects: Effect[] = [];
    for (const row of this.#needsOrder ? this.#followed(records) : this.#cancelled()) {
      const effect = effectOf(this.#target, row);
      if (effect !== undefined) effects.push(effect);
    }
    return effects;
  }

  *#cancelled(): Generator<NetRow> {
    for (const known of this.#rows.values()) {
      if (!('removed' in known) && known.key !== undefined) yield known;
      else yield* netImages(this.#relation, imagesOf(known));
    }
  }

  #followed(records: ChangeRecords): readonly NetRow[] {
    const changes: ReadChange[] = [];
    for (const record of records)
      if (record.target === this.#target) changes.push(this.#relation.read(record));
    return followRows(this.#relation, changes);
  }
}

/** The first and the last row under a key; undefined if the row does not exist. */
interface NetRow {
  /** Absent in relations without a key. */
  readonly key: Row | undefined;
  readonly before: Row | undefined;
  readonly after: Row | undefined;
}

function effectOf(target: string, { key, before, after }: NetRow): Effect | undefined {
  const named = key && { key };
  if (before === undefined) return after && { op: 'insert', target, ...named, after };
  if (after === undefined) return { op: 'delete', target, ...named, before };
  const changes = findChanges(before, after);
  return changes && { op: 'update', target, ...named, ...changes };
}

/** The writes so far, by key. */
type NetRows = Map<string | number, NetRow | Images>;

/** The images that writes under one key replaced and left. */
interface Images {
  readonly key: Row | undefined;
  readonly removed: Row[];
  readonly added: Row[];
}

/**
 * Triggers record a nested write before the outer one, so order is meaningless here. An image that
 * one write left and another replaced cancels out. Per key, at most one row before and one row
 * after remain. Without a key, every remaining row was inserted or deleted. Returns whether the row
 * was not written before and keeps its key.
 */
function cancelWrite(rows: NetRows, change: ReadChange): boolean {
  const { op, key } = change;
  if (op === 'insert') return replaceRow(rows, key, undefined, change.after);
  if (op === 'delete') return replaceRow(rows, key, change.before, undefined);
  if (change.newKey === undefined) return replaceRow(rows, key, change.before, change.after);
  replaceRow(rows, key, change.before, undefined);
  replaceRow(rows, change.newKey, undefined, change.after);
  return false;
}

function replaceRow(
  rows: NetRows,
  key: Row | undefined,
  before: Row | undefined,
  after: Row | undefined,
): boolean {
  const id = key === undefined ? '' : (numberOf(key) ?? rowText(key));
  const known = rows.get(id);
  // Most rows are written once, and that write is their net change.
  if (known === undefined) {
    rows.set(id, { key, before, after });
    return true;
  }
  const images = imagesOf(known);
  if (images !== known) rows.set(id, images);
  if (before !== undefined) images.removed.push(before);
  if (after !== undefined) images.added.push(after);
  return false;
}

function imagesOf(written: NetRow | Images): Images {
  if ('removed' in written) return written;
  const { key, before, after } = written;
  return {
    key,
    removed: before === undefined ? [] : [before],
    added: after === undefined ? [] : [after],
  };
}

function netImages(relation: RelationReader, images: Images): readonly NetRow[] {
  const { key } = images;
  const isSingle = key !== undefined && images.removed.length + images.added.length <= 2;
  const { removed, added } = isSingle ? images : withoutCommon(images);
  if (key === undefined) {
    return [
      ...removed.map((before) => ({ key, before, after: undefined })),
      ...added.map((after) => ({ key, before: undefined, after })),
    ];
  }
  if (removed.length > 1 || added.length > 1)
    throw relation.fault('series of writes', 'they do not follow from each other');
  // Not by index: on an empty list, `[0]` could read a property of Array.prototype.
  return [{ key, before: removed.at(0), after: added.at(0) }];
}

function withoutCommon({ removed, added }: Images): Pick<Images, 'removed' | 'added'> {
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

/** The row under one key, at first and now. */
interface KeyedRow {
  readonly key: Row;
  before: Row | undefined;
  after: Row | undefined;
  /**
   * Whether several records were merged into this row. A single one has the same columns on both
   * sides.
   */
  folded: boolean;
}

function followRows(relation: RelationReader, changes: readonly ReadChange[]): readonly NetRow[] {
  const rows = new Map<string, KeyedRow>();
  for (const change of changes) {
    const { op, key } = change;
    if (key === undefined) throw relation.fault(op, 'it has no key');
    const before = op === 'insert' ? undefined : change.before;
    const after = op === 'delete' ? undefined : change.after;
    if (op !== 'update' || change.newKey === undefined) {
      rewrite(relation, rows, { key, before, after });
      continue;
    }
    // If a row's key changes, the row disappears under the old key and appears in full under the
    // new one.
    const whole = { ...rows.get(rowText(key))?.after, ...before };
    relation.demandWhole('update of a key', whole);
    rewrite(relation, rows, { key, before: whole, after: undefined });
    const moved = { ...whole, ...after };
    rewrite(relation, rows, { key: change.newKey, before: undefined, after: moved });
  }
  for (const row of rows.values()) if (row.folded) demandBothSides(relation, row);
  return [...rows.values()];
}

function rewrite(
  relation: RelationReader,
  rows: Map<string, KeyedRow>,
  change: Omit<KeyedRow, 'folded'>,
): void {
  const id = rowText(change.key);
  const row = rows.get(id);
  if (row === undefined) {
    rows.set(id, { ...change, folded: false });
    return;
  }
  row.folded = true;
  const rest = continueFrom(relation, row, change.before);
  row.after = change.after && { ...rest, ...change.after };
}

/**
 * The current row, completed by the columns of `before`, which must agree with what is known. A
 * column seen for the first time has not changed yet, so the first row also had that value.
 */
function continueFrom(
  relation: RelationReader,
  row: KeyedRow,
  before: Row | undefined,
): Row | undefined {
  const { after } = row;
  if (before === undefined) {
    if (after !== undefined) throw relation.fault('insert', 'a row with its key already exists');
    return undefined;
  }
  if (after === undefined) throw relation.fault('write', 'the row with its key was deleted');
  for (const column of Object.keys(before)) {
    if (!Object.hasOwn(after, column) || sameValue(after[column], before[column])) continue;
    throw relation.fault(
      'write',
      `column ${JSON.stringify(column)} is not what the record before left`,
    );
  }
  row.before &&= { ...before, ...row.before };
  return { ...before, ...after };
}

function demandBothSides(relation: RelationReader, { before, after }: KeyedRow): void {
  if (before === undefined || after === undefined) return;
  for (const column of Object.keys({ ...before, ...after })) {
    if (Object.hasOwn(before, column) && Object.hasOwn(after, column)) continue;
    throw relation.fault(
      'rewrite of a row',
      `column ${JSON.stringify(column)} is not reported on both sides`,
    );
  }
}
