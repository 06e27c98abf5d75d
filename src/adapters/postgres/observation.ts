import { hash } from 'node:crypto';
import type { CandidateEvidence } from '../../backend/candidate.ts';
import { declaredReferences } from '../../backend/foreign-keys.ts';
import type { Assigned, ChannelReport, TargetCount } from '../../contract/adapter.ts';
import { errorsOf, invariant } from '../../errors.ts';
import type { TextRow } from '../../postgres/connection.ts';
import type { ChangeRecord, ChangeRecords, Op } from '../../protocol/effect.ts';
import type { Row } from '../../protocol/value.ts';
import { type PostgresBoundary, readRecorders, type Watched } from './boundary.ts';
import type { Control } from './control.ts';
import { type FindUsed, findUsed, freshIdentifiers, randomColumns } from './fresh.ts';
import { readImages } from './image.ts';
import type { PostgresColumn, PostgresRelation } from './relation.ts';
import {
  comparePositions,
  describeDrawn,
  describeMoved,
  type Moved,
  type UndoneDraws,
} from './residue.ts';
import { rowReader } from './value.ts';

/**
 * What an observation is built from: the answers of `open` and `observe`, and what the survey
 * found.
 */
interface ObservationInput {
  readonly opened: OpenAnswer;
  readonly answer: readonly TextRow[];
  readonly written: WrittenRelations;
  readonly boundary: PostgresBoundary;
  readonly isolation: string;
  /** Sees committed rows, not the candidate. */
  readonly control: Control;
  /** Sequence draws of calls that were undone. */
  readonly undone: UndoneDraws;
}

/**
 * The registered relations, or the probe table during admission, and their physical tables by id.
 */
export interface WrittenRelations {
  readonly relations: readonly PostgresRelation[];
  readonly leaves: ReadonlyMap<string, PostgresRelation>;
}

/** The answer of `open`. */
export interface OpenAnswer {
  readonly xid: string;
  readonly atMs: number;
  readonly positions: string;
}

/** Channels that must all answer and agree; see `establish`. */
export const CHANNELS = ['recorder', 'counters', 'relations', 'transaction', 'session'] as const;

/** Reads records and channels from the answer of `observe`. Draws no conclusions. */
export async function readObservation(input: ObservationInput): Promise<CandidateEvidence> {
  const { opened, answer, written, boundary, control } = input;
  const { relations, watched } = boundary;
  const [facts, ...rows] = answer;
  const [xid, counted, session] = facts?.[3]?.split('\n') ?? [];
  invariant(
    facts?.[1] === 'F' && xid !== undefined && counted !== undefined && session !== undefined,
    'observe answers with facts first',
  );
  const counters = readCounters(counted);
  const { records, report } = readRecords(written, rows);
  const moved = comparePositions(opened.positions, facts[4] ?? '');
  const kept = input.undone.subtractFrom(moved);
  const find: FindUsed = async (...column) => await findUsed(await control.connection(), ...column);
  const fresh = await freshIdentifiers(relations.flatMap(randomColumns), records, find);
  const expectedSession = `origin on UTF8 ${input.isolation} 0`;
  const channels: readonly ChannelReport[] = [
    report,
    await reportCounters(input, counters, rows),
    reportTouched(input, counters),
    { channel: 'transaction', kind: 'stable', before: opened.xid, after: xid },
    { channel: 'session', kind: 'stable', before: expectedSession, after: session },
  ];
  return {
    evidence: fingerprint(watched, facts, rows),
    records,
    channels,
    unattributed: 0,
    assigned: [...assignedRanges(relations, moved), ...fresh].map((assigned) => ({
      ...assigned,
      ...declaredReferences(boundary.foreignKeys, assigned),
    })),
    drawn: describeDrawn(boundary.drawableSequences, kept),
    residue: describeMoved(boundary.readableSequences, moved),
    window: { fromMs: opened.atMs, toMs: Number(facts[2]) },
  };
}

interface Counter {
  readonly oid: string;
  readonly counts: Readonly<Record<Op, number>>;
}

function readCounters(text: string): readonly Counter[] {
  if (text === '') return [];
  return text.split(' ').map((entry) => {
    const [oid = '', counts = ''] = entry.split(':');
    const [insert, update, deleted] = counts.split('/').map(Number);
    invariant(
      insert !== undefined && update !== undefined && deleted !== undefined,
      'a counter has three numbers',
    );
    return { oid, counts: { insert, update, delete: deleted } };
  });
}

/**
 * Counters and records agree unless something was rolled back on the way. Then a look at the
 * recorders themselves explains the missing records. It costs a round trip, and few operations need
 * it.
 */
async function reportCounters(
  { written, boundary, control }: ObservationInput,
  counters: readonly Counter[],
  rows: readonly TextRow[],
): Promise<ChannelReport> {
  const counts = countRegistered(written, counters);
  const recorded = countRecorded(boundary.watched, counters, rows);
  const report = { channel: 'counters', kind: 'gross', counts, recorded } as const;
  if (counts.reduce((sum, { count }) => sum + count, 0) <= recorded) return report;
  const oids = counters.map(({ oid }) => oid).filter((oid) => written.leaves.has(oid));
  const now = await readRecorders(await control.connection(), oids);
  const known = boundary.recorders;
  return {
    ...report,
    intact: oids.every((oid) => now.has(oid) && now.get(oid) === known.get(oid)),
  };
}

const OPS = ['insert', 'update', 'delete'] as const;

function countRegistered(
  { leaves }: WrittenRelations,
  counters: readonly Counter[],
): readonly TargetCount[] {
  return counters.flatMap(({ oid, counts }) => {
    const target = leaves.get(oid)?.target;
    if (target === undefined) return [];
    return OPS.flatMap((op) => (counts[op] === 0 ? [] : [{ target, op, count: counts[op] }]));
  });
}

/**
 * How many writes the recorders saw, including writes that were rolled back. A row recorder inserts
 * one record per write, and the counters count these inserts. A statement recorder inserts one
 * record for many writes, so only the records that remain tell how many it saw.
 */
function countRecorded(
  watched: Watched,
  counters: readonly Counter[],
  rows: readonly TextRow[],
): number {
  const inserted = counters.find(({ oid }) => oid === watched.recordOid)?.counts.insert ?? 0;
  const images = rows.reduce((sum, row) => sum + Number(row[2]), 0);
  return inserted - rows.length + images;
}

/**
 * All targets that were written. The record table counts as one if a record was changed or removed.
 */
function reportTouched(
  { written, boundary }: ObservationInput,
  counters: readonly Counter[],
): ChannelReport {
  const { watched } = boundary;
  const touched = new Set<string>();
  const routes = new Map<string, string>();
  for (const { oid, counts } of counters) {
    if (oid === watched.recordOid && counts.update === 0 && counts.delete === 0) continue;
    const target = written.leaves.get(oid)?.target ?? watched.names.get(oid) ?? `relation ${oid}`;
    const route = boundary.routes.get(oid);
    touched.add(target);
    if (route !== undefined) routes.set(target, route);
  }
  return { channel: 'relations', kind: 'touched', targets: [...touched], routes };
}

const OP_OF: Readonly<Record<string, Op>> = { I: 'insert', U: 'update', D: 'delete' };

/** If there are more images than this, they are parsed whenever they are needed and not kept. */
const KEPT_MAX = 1000;

function readRecords(
  written: WrittenRelations,
  rows: readonly TextRow[],
): { readonly records: ChangeRecords; readonly report: ChannelReport } {
  const channel = 'recorder';
  const length = rows.reduce((sum, row) => sum + Number(row[2]), 0);
  const read = () => readEach(written, rows);
  try {
    const isLong = length > KEPT_MAX;
    const records = isLong
      ? { length, counts: countRows(written, rows), [Symbol.iterator]: read }
      : [...read()];
    return { records, report: { channel, kind: 'records', count: length } };
  } catch (error) {
    return { records: [], report: { channel, kind: 'silent', why: String(error) } };
  }
}

/** The number of images that each row claims to have. Reading the images checks it. */
function countRows(written: WrittenRelations, rows: readonly TextRow[]): readonly TargetCount[] {
  return rows.map((row) => {
    const { op, relation } = findWritten(written, row);
    return { op, target: relation.target, count: Number(row[2]) };
  });
}

function findWritten({ leaves, relations }: WrittenRelations, [oid, code]: TextRow) {
  const id = String(oid);
  const relation = leaves.get(id) ?? relations.find((known) => String(known.oid) === id);
  const op = OP_OF[String(code)];
  if (relation === undefined || op === undefined)
    throw unclear(`a record names relation ${id}, which is not registered`);
  return { id, op, relation };
}

function* readEach(written: WrittenRelations, rows: readonly TextRow[]): Generator<ChangeRecord> {
  const shapes = new Map<string, Shape>();
  for (const row of rows) {
    const { id, relation } = findWritten(written, row);
    const shape = shapes.get(id) ?? shapeOf(relation, id);
    shapes.set(id, shape);
    yield* readRecord(written, shape, row);
  }
}

/** Statement recorders list old and new rows in the order in which the statement wrote them. */
function* readRecord(
  written: WrittenRelations,
  shape: Shape,
  row: TextRow,
): Generator<ChangeRecord> {
  const { op, relation } = findWritten(written, row);
  const { target } = relation;
  const [, , images, was, became] = row;
  const count = Number(images);
  const old = op === 'insert' ? undefined : readRows(was, shape);
  const now = op === 'delete' ? undefined : readRows(became, shape);
  if ((op === 'insert' && was != null) || (op === 'delete' && became != null))
    throw unclear(`a record of "${target}" has images that it cannot have`);
  for (let index = 0; index < count; index += 1) {
    const [before, after] = [old?.next().value, now?.next().value];
    if (!before !== !old || !after !== !now) throw unclear(`a record of "${target}" lacks images`);
    yield { op, target, key: null, before: before ?? null, after: after ?? null };
  }
  if (old?.next().done === false || now?.next().done === false)
    throw unclear(`a record of "${target}" has more images than it says`);
}

/** The columns of one physical table, in the order of its images. */
type Shape = readonly Pick<PostgresColumn, 'name' | 'type'>[];

function shapeOf(relation: PostgresRelation, oid: string): Shape {
  const leaf = relation.leaves.find((candidate) => String(candidate.oid) === oid);
  if (leaf === undefined) return relation.columns;
  return leaf.columns.map((name) => {
    const column = relation.columns.find((candidate) => candidate.name === name);
    if (column === undefined) throw unclear(`"${relation.target}" has no column "${name}"`);
    return column;
  });
}

function readRows(text: string | null | undefined, shape: Shape): Iterator<Row, undefined> {
  return text == null ? [].values() : readImages(text, shape.length, rowReader(shape));
}

const unclear = errorsOf('ERR_EM_INVARIANT');

/** A sequence gave out the values between its two positions, to this transaction or to others. */
function assignedRanges(relations: readonly PostgresRelation[], moved: Moved): readonly Assigned[] {
  const assigned: Assigned[] = [];
  for (const { target, columns } of relations) {
    for (const { name: column, sequence } of columns) {
      const positions = sequence && moved.get(sequence.oid);
      if (sequence === undefined || positions === undefined) continue;
      const step = BigInt(sequence.increment);
      const first = BigInt(sequence.start) - step;
      const from = positions.from === '' ? first : BigInt(positions.from);
      const to = positions.to === '' ? first : BigInt(positions.to);
      const [above, upTo] = step > 0n ? [from, to] : [to - 1n, from - 1n];
      if (from !== to) assigned.push({ target, column, above: String(above), upTo: String(upTo) });
    }
  }
  return assigned;
}

/**
 * A digest of everything that the observation rests on. On promotion the backend itself checks that
 * nothing was written since.
 */
function fingerprint(watched: Watched, facts: TextRow, rows: readonly TextRow[]): string {
  return hash('sha256', JSON.stringify([watched.oids.length, facts[3], rows.length, rows]), 'hex');
}
