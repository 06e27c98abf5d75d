import { createHash } from 'node:crypto';
import type { Assigned } from '../../contract/adapter.ts';
import { canonical } from '../../protocol/canon.ts';
import type { ChangeRecord, Op } from '../../protocol/effect.ts';
import { type Row, readTag, type Value } from '../../protocol/value.ts';
import type { RawRow } from './connection.ts';
import { isSameImage, openImage, type RowImage } from './row-image.ts';
import type { ColumnKind } from './value.ts';

/** The parts of a relation that reading records needs. */
export interface TracedRelation {
  readonly target: string;
  readonly key: readonly string[];
  readonly columns: readonly {
    readonly name: string;
    readonly kind: ColumnKind;
    readonly isAssigned?: boolean;
  }[];
}

/** What the recorders wrote during a stage. */
export interface Recorded {
  readonly records: readonly ChangeRecord[];
  /** The number of rows the recorders wrote, including notes about chosen identifiers. */
  readonly written: number;
  /** The number of undo entries that the recorded writes must have made. */
  readonly undo: number;
  readonly assigned: readonly Assigned[];
  /** The first and the current value of each written row. */
  readonly histories: readonly History[];
  /** How the records contradict each other; undefined if they do not. */
  readonly contradiction: string | undefined;
  readonly evidence: string;
}

/** One written row, by its key. */
export interface History {
  readonly relation: TracedRelation;
  readonly id: string;
  readonly key: Row;
  readonly first: RowImage | null;
  readonly last: RowImage | null;
}

/** Reads the rows that `observe` returns. Throws if a row is unreadable. */
export function readRecords(
  relations: ReadonlyMap<string, TracedRelation>,
  rows: readonly RawRow[],
): Recorded {
  const chosen = new Set<string>();
  const changes: Change[] = [];
  for (const [name, op, before = null, after = null] of rows) {
    const relation = relations.get(String(name));
    if (relation === undefined)
      throw new Error(`a record names "${name}", which is not registered`);
    // The server pads numbers of a ZEROFILL column.
    if (String(op) === 'chosen')
      chosen.add(canonical([relation.target, String(BigInt(String(after)))]));
    else changes.push(readChange(relation, String(op) as Op, before, after));
  }
  const { histories, contradiction } = traceRows(changes);
  return {
    records: changes.map(({ op, relation: { target }, before, after }) => ({
      ...{ op, target, key: null, before: before?.row ?? null, after: after?.row ?? null },
    })),
    written: rows.length,
    undo: changes.reduce((sum, change) => sum + undoOf(change), 0),
    assigned: findAssigned(changes, chosen),
    ...{ histories, contradiction },
    evidence: digestOf(rows),
  };
}

/** A digest of all cells. Each comes with its length, so that no two lists have the same digest. */
function digestOf(rows: readonly RawRow[]): string {
  const digest = createHash('sha256');
  for (const [name = null, op = null, before = null, after = null] of rows)
    for (const cell of [name, op, before, after]) {
      digest.update(cell === null ? '-' : `${cell.length}:`);
      if (cell !== null) digest.update(cell);
    }
  return digest.digest('hex');
}

interface Change {
  readonly relation: TracedRelation;
  readonly op: Op;
  readonly before: RowImage | null;
  readonly after: RowImage | null;
}

function readChange(
  relation: TracedRelation,
  op: Op,
  was: Buffer | null,
  became: Buffer | null,
): Change {
  const { target } = relation;
  if ((was === null) !== (op === 'insert') || (became === null) !== (op === 'delete'))
    throw new Error(`a record of "${target}" lacks an image`);
  const before = was && openImage(relation, was);
  const after = became && openImage(relation, became);
  return { relation, op, before, after };
}

/**
 * InnoDB writes one undo entry for each row, none for an update that changes nothing, and two for
 * an update that changes the key, because it deletes the row and inserts another.
 */
function undoOf({ before, after }: Change): number {
  if (before === null || after === null) return 1;
  if (before.bytes.equals(after.bytes)) return 0;
  return before.id === after.id ? 1 : 2;
}

function keyOf({ key }: TracedRelation, row: Row): Row {
  return Object.fromEntries(key.map((name) => [name, row[name] ?? null]));
}

/**
 * Follows every row through its records. Each record must begin where the previous one ended. A
 * recorder that ran for a write that never happened breaks the chain, or ends it with a row that
 * does not exist.
 */
function traceRows(changes: readonly Change[]): Pick<Recorded, 'histories' | 'contradiction'> {
  const rows = new Map<string, { -readonly [Name in keyof History]: History[Name] }>();
  let contradiction: string | undefined;
  const step = (
    relation: TracedRelation,
    { id, row }: RowImage,
    from: RowImage | null,
    to: RowImage | null,
  ) => {
    const known = rows.get(id);
    if (known === undefined) {
      rows.set(id, { relation, id, key: keyOf(relation, row), first: from, last: to });
      return;
    }
    if (!isSameImage(known.last, from))
      contradiction ??= `the records of "${relation.target}" do not follow from each other`;
    known.last = to;
  };
  // An update is a delete and an insert here, because it may change the key.
  for (const { relation, before, after } of changes) {
    if (before !== null) step(relation, before, before, null);
    if (after !== null) step(relation, after, null, after);
  }
  return { histories: [...rows.values()], contradiction };
}

/**
 * Inserted identifiers that no statement or trigger chose were assigned by the server. There may be
 * very many, so consecutive ones form one range.
 */
function findAssigned(
  changes: readonly Change[],
  chosen: ReadonlySet<string>,
): readonly Assigned[] {
  const inserted = changes.filter(({ op }) => op === 'insert');
  return [...Map.groupBy(inserted, ({ relation }) => relation)].flatMap(([relation, group]) => {
    const { target } = relation;
    const column = relation.columns.find(({ isAssigned }) => isAssigned)?.name;
    if (column === undefined) return [];
    const identifiers = group
      .map(({ after }) => integerText(after?.row[column] ?? null))
      .filter((text) => text !== undefined)
      .filter((text) => !chosen.has(canonical([target, text])))
      .map(BigInt);
    return rangesOf(identifiers).map(({ above, upTo }) => ({
      ...{ target, column, above: String(above), upTo: String(upTo) },
    }));
  });
}

function rangesOf(identifiers: readonly bigint[]): readonly { above: bigint; upTo: bigint }[] {
  const ranges: { above: bigint; upTo: bigint }[] = [];
  for (const identifier of identifiers.toSorted((a, b) => (a < b ? -1 : 1))) {
    const last = ranges.at(-1);
    if (last !== undefined && identifier <= last.upTo + 1n) last.upTo = identifier;
    else ranges.push({ above: identifier - 1n, upTo: identifier });
  }
  return ranges;
}

function integerText(value: Value): string | undefined {
  return typeof value === 'number' ? String(value) : readTag(value)?.text;
}
