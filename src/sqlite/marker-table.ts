import type { DatabaseSync } from 'node:sqlite';
import type { Markers, VoidResult } from '../contract/adapter.ts';
import type { MarkerText } from '../contract/proof.ts';
import type { Reached } from '../contract/steps.ts';
import { EffectMatchError } from '../errors.ts';
import { isBusyFault } from './commit.ts';
import { immediate, pinDurability, retryWhileBusy, statement } from './connection.ts';

/** What access to a marker table needs besides its connection. */
export interface MarkerTableTools {
  readonly busyTimeoutMs: number;
  readonly reached: Reached;
  /**
   * Repeats the work that follows a committed marker, whenever one is found, because a process may
   * have died before doing it.
   */
  readonly redo?: () => Promise<void>;
}

/** The markers of a backend that commits in a SQLite transaction. */
export type MarkerTable = ReturnType<typeof markerTable>;

/**
 * The functions for one marker table. `voidDeadlineMs` is how long a void marker waits for other
 * writers before it reports that the file is busy.
 */
export function markerTable(options: { readonly table: string; readonly voidDeadlineMs: number }) {
  const { table, voidDeadlineMs } = options;
  const columns = 'occurrence, disposition, text, seal_key, seal_mac';
  const find = `select ${columns} from main.${table} where occurrence = ?`;
  const insert = `insert into main.${table} (${columns}) values (?, ?, ?, ?, ?)`;

  /** Finds the marker of an occurrence as this connection sees it. */
  function findMarker(db: DatabaseSync, occurrence: string): MarkerText | undefined {
    const row = statement(db, find).get(occurrence);
    return row && readMarker(row);
  }

  /** Adds a marker in the open transaction. The primary key refuses a second one. */
  function insertMarker(db: DatabaseSync, marker: MarkerText): void {
    const { occurrence, disposition, text, sealKey, sealMac } = marker;
    statement(db, insert).run(occurrence, disposition, text, sealKey, sealMac);
  }

  /** Returns the existing marker; undefined if this one was written. */
  function writeFirst(db: DatabaseSync, marker: MarkerText, reached: Reached) {
    const existing = findMarker(db, marker.occurrence);
    if (existing !== undefined) return existing;
    insertMarker(db, marker);
    reached('adapter:void-written');
    return undefined;
  }

  /** Access to the table through a trusted connection. */
  function markersOf(
    db: DatabaseSync,
    { busyTimeoutMs, reached, redo }: MarkerTableTools,
  ): Markers {
    const deadline = { deadlineMs: busyTimeoutMs };
    return {
      async find(occurrence) {
        const found = await retryWhileBusy(() => findMarker(db, occurrence), deadline);
        if (found?.disposition === 'committed') await redo?.();
        return found;
      },
      async void(marker) {
        const write = () => writeFirst(db, marker, reached);
        const result = await writeVoid(db, write, { deadlineMs: voidDeadlineMs });
        if (result.kind === 'inserted') reached('adapter:void-committed');
        if (result.kind === 'conflict' && result.marker.disposition === 'committed') await redo?.();
        return result;
      },
      async forget(occurrence) {
        const sql = `delete from main.${table} where occurrence = ?`;
        await immediate(db, () => statement(db, sql).run(occurrence), deadline);
      },
    };
  }

  return { findMarker, insertMarker, markersOf };
}

async function writeVoid(
  db: DatabaseSync,
  write: () => MarkerText | undefined,
  deadline: { readonly deadlineMs: number },
): Promise<VoidResult> {
  try {
    // The journal mode may have changed since the file was opened, and the flush depends on it.
    await retryWhileBusy(() => pinDurability(db), deadline);
    const first = await immediate(db, write, deadline);
    return first === undefined ? { kind: 'inserted' } : { kind: 'conflict', marker: first };
  } catch (error) {
    if (!isBusyFault(error)) throw error;
    return { kind: 'busy', why: LOCKED };
  }
}

const LOCKED = 'a writer holds the file; whether it is this attempt cannot be told from a lock';

function readMarker(row: Readonly<Record<string, unknown>>): MarkerText {
  const { disposition } = row;
  const occurrence = String(row.occurrence);
  if (disposition !== 'committed' && disposition !== 'void') {
    throw new EffectMatchError(
      'ERR_EM_MARKER_CONFLICT',
      `the marker of ${occurrence} is neither committed nor void`,
    );
  }
  return {
    occurrence,
    disposition,
    text: String(row.text),
    sealKey: String(row.seal_key),
    sealMac: String(row.seal_mac),
  };
}
