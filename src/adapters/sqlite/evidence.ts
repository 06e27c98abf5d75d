import { hash } from 'node:crypto';
import type { DatabaseSync, Session } from 'node:sqlite';
import type { CandidateEvidence } from '../../backend/candidate.ts';
import { declaredReferences } from '../../backend/foreign-keys.ts';
import type { Assigned, ChannelReport, Evidence } from '../../contract/adapter.ts';
import type { ChangeRecord } from '../../protocol/effect.ts';
import type { Affinity } from './affinity.ts';
import type { SqliteCatalog, SqliteRelation } from './catalog.ts';
import { decodeChangeset, type TableChanges } from './changeset.ts';
import type { Fence, FenceLog } from './fence.ts';
import { findTurnedZero, type NamedRecords, nameRecords, restateChanges } from './records.ts';
import { inspectRelation } from './relation.ts';
import {
  type CandidateState,
  type Connections,
  countChanges,
  type RowidCounters,
  takeSnapshot,
} from './snapshot.ts';

/** The channels that must report and agree before an observation is complete. */
export const CHANNELS = [
  'changeset',
  'authorizer',
  'schema',
  'transaction',
  'sequence',
  'settings',
] as const;

/** The fingerprint of everything that an observation is made from. */
function fingerprintEvidence(changeset: Uint8Array, now: CandidateState): string {
  const sequence = [...now.sequence].map(([name, highest]) => [name, String(highest)]);
  const facts = [now.versions, now.settings, sequence, String(now.totalChanges), now.baseVersion];
  return hash('sha256', `${hash('sha256', changeset, 'hex')}\n${JSON.stringify(facts)}`, 'hex');
}

/**
 * State that must be the same after the action, at the final gate and before the commit, so that
 * the observation in between describes this candidate. On a held connection, the fence denies and
 * counts every statement that writes, sets a pragma, or begins or ends a transaction. Statements
 * compiled earlier count the rows they write. While none of these counts changes, a second
 * changeset would equal the first, and so would the settings.
 */
export function readStanding(candidate: DatabaseSync, fence: Fence): string {
  const held = candidate.isTransaction ? 'held' : 'ended';
  return `${held}, ${fence.trespasses} trespasses, ${countChanges(candidate)} changes`;
}

/** What an observation is made from. */
export interface HeldState {
  readonly candidate: string;
  readonly connections: Connections;
  readonly affinity: Affinity;
  /** The certified schema. The candidate still has its versions. */
  readonly catalog: SqliteCatalog;
  readonly session: Session;
  /** The relations that may be written, by name. */
  readonly relations: ReadonlyMap<string, SqliteRelation>;
  readonly log: FenceLog;
  /** The highest rowid of each written relation before its first write. */
  readonly rowidsBefore: ReadonlyMap<string, bigint>;
  readonly before: CandidateState;
  readonly window: Evidence['window'];
}

/** Reads the records and channels of a candidate. It draws no conclusions. */
export function observeCandidate(observed: HeldState): CandidateEvidence {
  const { candidate, connections, log, before } = observed;
  const changeset = observed.session.changeset();
  const after = takeSnapshot(connections, observed.catalog);
  const gross = after.totalChanges - before.totalChanges;
  const result = readRecords(observed, changeset, gross);
  const records = result.kind === 'records' ? result.records : [];
  const version = `${candidate} on version ${String(after.baseVersion)}`;
  const channels: ChannelReport[] = [
    result.kind === 'records'
      ? { channel: 'changeset', kind: 'records', count: records.length }
      : { channel: 'changeset', kind: 'silent', why: result.why },
    { channel: 'authorizer', kind: 'touched', targets: [...log.written.keys()] },
    stable('schema', before.versions, after.versions),
    stable(
      'transaction',
      `${candidate} on version ${String(before.baseVersion)}`,
      connections.candidate.isTransaction ? version : 'ended',
    ),
    compareSequence(before.sequence, after.sequence, observed.relations, records),
    stable('settings', before.settings, after.settings),
  ];
  return {
    evidence: fingerprintEvidence(changeset, after),
    records,
    channels,
    unattributed: 0,
    assigned: assignedKeys(observed, after.sequence, records, gross),
    window: observed.window,
  };
}

/**
 * Leaves the channel silent if the changeset is unreadable, because unknown changes must not count
 * as none.
 */
function readRecords(observed: HeldState, changeset: Uint8Array, gross: number): NamedRecords {
  const { relations, connections, log } = observed;
  try {
    const stated: TableChanges[] = [];
    const restated: ChangeRecord[] = [];
    for (const table of decodeChangeset(changeset)) {
      const relation = relations.get(table.table);
      const inspection = relation && inspectRelation(observed.catalog, relation.name);
      const isTrusted = inspection?.kind === 'usable' && !inspection.isRestated;
      // Of other relations, the rows are read instead of trusting the session.
      if (relation === undefined || isTrusted) stated.push(table);
      else
        for (const record of restateChanges(connections, relation, observed.affinity, table))
          restated.push(record);
    }
    const plain = nameRecords(stated, relations);
    if (plain.kind === 'unclear') return plain;
    const named = { kind: 'records' as const, records: [...plain.records, ...restated] };
    for (const [name, written] of log.written) {
      const relation = relations.get(name);
      if (relation === undefined)
        return { kind: 'unclear', why: `"${name}" was written and is not registered` };
      if (
        findTurnedZero(connections, relation, { written, records: named.records, gross }) !==
        undefined
      ) {
        return {
          kind: 'unclear',
          why: `a zero in "${name}" changed only its sign, which sessions do not record`,
        };
      }
    }
    return named;
  } catch (error) {
    return { kind: 'unclear', why: String(error) };
  }
}

/**
 * AUTOINCREMENT advances its counter with the inserted rows, which the records explain. Any other
 * advance, such as a high row that was inserted and deleted again, is a lasting change that no row
 * shows. It is reported as a difference.
 */
function compareSequence(
  before: RowidCounters,
  after: RowidCounters,
  relations: HeldState['relations'],
  records: readonly ChangeRecord[],
): ChannelReport {
  const differing = [...new Set([...before.keys(), ...after.keys()])].filter((name) => {
    // A table that never had a row has no counter, or a zero counter that SQLite adds when it
    // compiles a write.
    const to = after.get(name) ?? 0n;
    if (to === (before.get(name) ?? 0n)) return false;
    return to !== highestInserted(relations, records, name);
  });
  const show = (sequence: RowidCounters) =>
    differing.map((name) => `${name} ${sequence.get(name) ?? 'none'}`).join(', ');
  return stable('sequence', show(before), show(after));
}

function highestInserted(
  relations: HeldState['relations'],
  records: readonly ChangeRecord[],
  name: string,
): bigint | undefined {
  const alias = relations.get(name)?.rowidAlias;
  if (alias === undefined) return undefined;
  let highest: bigint | undefined;
  for (const record of records) {
    if (record.op !== 'insert' || record.target !== name) continue;
    const key = integerOf(record.key?.[alias]);
    if (key !== undefined && (highest === undefined || key > highest)) highest = key;
  }
  return highest;
}

function integerOf(value: unknown): bigint | undefined {
  if (typeof value === 'number') return BigInt(value);
  if (typeof value !== 'object' || value === null || !('$int' in value)) return undefined;
  return BigInt(String(value.$int));
}

/**
 * SQLite assigns an INTEGER PRIMARY KEY above the highest one in use (or ever used), one step for
 * each added row. Rows that were added and deleted again cannot be counted. There are at most as
 * many of them as writes that no record explains. A delete explains no write, because REPLACE
 * deletes rows without counting them. AUTOINCREMENT never reuses a key, so only rows that remain
 * count there.
 */
function assignedKeys(
  observed: HeldState,
  counters: RowidCounters,
  records: readonly ChangeRecord[],
  gross: number,
): readonly Assigned[] {
  const added = new Map<string, number>();
  let accounted = 0;
  for (const { op, target } of records) {
    if (op === 'insert') added.set(target, 1 + (added.get(target) ?? 0));
    if (op !== 'delete') accounted += 1;
  }
  if (added.size === 0) return [];
  const unseen = Math.max(0, gross - accounted);
  const relations = [...observed.relations.values()];
  const foreignKeys = relations.flatMap((relation) => relation.foreignKeys);
  return relations.flatMap(({ name, rowidAlias }) => {
    const steps = added.get(name);
    const inUse = observed.rowidsBefore.get(name);
    if (rowidAlias === undefined || steps === undefined || inUse === undefined) return [];
    const everUsed = observed.before.sequence.get(name);
    const above = typeof everUsed === 'bigint' && everUsed > inUse ? everUsed : inUse;
    const gone = counters.has(name) ? 0 : unseen;
    const upTo = above + BigInt(steps + gone);
    const assigned = {
      target: name,
      column: rowidAlias,
      above: String(above),
      upTo: String(upTo),
    };
    return [{ ...assigned, ...declaredReferences(foreignKeys, assigned) }];
  });
}

function stable(channel: string, before: string, after: string): ChannelReport {
  return { channel, kind: 'stable', before, after };
}
