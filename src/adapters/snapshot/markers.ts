import type { DatabaseSync } from 'node:sqlite';
import type { AdapterContext, Markers, VoidResult } from '../../contract/adapter.ts';
import type { MarkerText } from '../../contract/proof.ts';
import { EffectMatchError } from '../../errors.ts';
import { asFault, immediate, pinDurability, retryWhileBusy } from '../../sqlite/connection.ts';
import { MARKER_TABLE } from './control.ts';

/** A void marker waits this long for other writers; a promotion is short, and one that hangs is left alone. */
const VOID_DEADLINE_MS = 250;

/** The marker of an occurrence as this connection sees it. */
export function findMarker(db: DatabaseSync, occurrence: string): MarkerText | undefined {
  const row = db
    .prepare(`select occurrence, disposition, text, seal_key, seal_mac from main.${MARKER_TABLE} where occurrence = ?`)
    .get(occurrence);
  if (row === undefined) return undefined;
  const { disposition } = row;
  if (disposition !== 'committed' && disposition !== 'void') {
    throw new EffectMatchError('ERR_EM_MARKER_CONFLICT', `the marker of ${occurrence} is neither committed nor void`);
  }
  return {
    occurrence: String(row.occurrence),
    disposition,
    text: String(row.text),
    sealKey: String(row.seal_key),
    sealMac: String(row.seal_mac),
  };
}

/** Adds a marker inside the open transaction; the primary key refuses a second one. */
export function insertMarker(db: DatabaseSync, marker: MarkerText): void {
  db.prepare(
    `insert into main.${MARKER_TABLE} (occurrence, disposition, text, seal_key, seal_mac) values (?, ?, ?, ?, ?)`,
  ).run(marker.occurrence, marker.disposition, marker.text, marker.sealKey, marker.sealMac);
}

/** The marker table, reached through the adapter's own connection. */
export function markersOf(
  db: DatabaseSync,
  tools: { readonly busyTimeoutMs: number; readonly reached: AdapterContext['reached'] },
): Markers {
  const deadline = { deadlineMs: tools.busyTimeoutMs };
  return {
    find: async (occurrence) => await asUnavailable(retryWhileBusy(() => findMarker(db, occurrence), deadline)),
    void: async (marker) => await voidOccurrence(db, marker, tools.reached),
    async forget(occurrence) {
      const remove = () => db.prepare(`delete from main.${MARKER_TABLE} where occurrence = ?`).run(occurrence);
      await asUnavailable(immediate(db, remove, deadline));
    },
  };
}

async function voidOccurrence(
  db: DatabaseSync,
  marker: MarkerText,
  reached: AdapterContext['reached'],
): Promise<VoidResult> {
  try {
    // The journal mode may have changed since the connection was opened, and with it what a flush takes.
    await retryWhileBusy(() => pinDurability(db), { deadlineMs: VOID_DEADLINE_MS });
    const insert = () => {
      const existing = findMarker(db, marker.occurrence);
      if (existing !== undefined) return existing;
      insertMarker(db, marker);
      reached('adapter:void-written');
      return undefined;
    };
    const found = await immediate(db, insert, { deadlineMs: VOID_DEADLINE_MS });
    if (found !== undefined) return { kind: 'conflict', marker: found };
  } catch (error) {
    if (error instanceof EffectMatchError && error.code === 'ERR_EM_STORE_BUSY') {
      return { kind: 'busy', why: 'a writer holds the file; whether it is this attempt cannot be told from a lock' };
    }
    throw faultOf(error);
  }
  reached('adapter:void-committed');
  return { kind: 'inserted' };
}

async function asUnavailable<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw faultOf(error);
  }
}

/** Faults of the file under the adapter's code; faults that already say what is wrong stay as they are. */
export function faultOf(error: unknown): unknown {
  const stated = error instanceof EffectMatchError && !error.code.startsWith('ERR_EM_STORE_');
  return stated ? error : asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', 'the snapshot file could not be used');
}
