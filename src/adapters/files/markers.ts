import type { DatabaseSync } from 'node:sqlite';
import type { AdapterContext, Markers, VoidResult } from '../../contract/adapter.ts';
import type { MarkerText } from '../../contract/proof.ts';
import { EffectMatchError } from '../../errors.ts';
import { asFault, immediate, pinDurability, retryWhileBusy, statement } from '../../sqlite/connection.ts';

/** A void marker waits this long for other writers; every transaction on the control file is short. */
const VOID_DEADLINE_MS = 1000;

/** The marker of an occurrence. */
export function findMarker(db: DatabaseSync, occurrence: string): MarkerText | undefined {
  const sql = 'select occurrence, disposition, text, seal_key, seal_mac from marker where occurrence = ?';
  const row = statement(db, sql).get(occurrence);
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
  const { occurrence, disposition, text, sealKey, sealMac } = marker;
  statement(db, 'insert into marker (occurrence, disposition, text, seal_key, seal_mac) values (?, ?, ?, ?, ?)').run(
    occurrence,
    disposition,
    text,
    sealKey,
    sealMac,
  );
}

/** What the marker table needs beside its connection. */
export interface MarkerTools {
  readonly busyTimeoutMs: number;
  readonly reached: AdapterContext['reached'];
  /** Repeats the visible switch where a process died before it: a committed marker is told only of what can be seen. */
  readonly redo: () => Promise<void>;
}

/** The marker table of the control file. Whoever asks for a marker finds the visible folder switched to it. */
export function markersOf(db: DatabaseSync, tools: MarkerTools): Markers {
  const deadline = { deadlineMs: tools.busyTimeoutMs };
  return {
    find: async (occurrence) =>
      await asUnavailable(async () => {
        const found = await retryWhileBusy(() => findMarker(db, occurrence), deadline);
        if (found?.disposition === 'committed') await tools.redo();
        return found;
      }),
    void: async (marker) => await asUnavailable(async () => await voidOccurrence(db, marker, tools)),
    forget: async (occurrence) =>
      await asUnavailable(async () => {
        await immediate(db, () => statement(db, 'delete from marker where occurrence = ?').run(occurrence), deadline);
      }),
  };
}

async function voidOccurrence(db: DatabaseSync, marker: MarkerText, tools: MarkerTools): Promise<VoidResult> {
  const insert = (): MarkerText | undefined => {
    const existing = findMarker(db, marker.occurrence);
    if (existing !== undefined) return existing;
    insertMarker(db, marker);
    tools.reached('adapter:void-written');
    return undefined;
  };
  try {
    pinDurability(db);
    const found = await immediate(db, insert, { deadlineMs: VOID_DEADLINE_MS });
    if (found?.disposition === 'committed') await tools.redo();
    if (found !== undefined) return { kind: 'conflict', marker: found };
  } catch (error) {
    if (!(error instanceof EffectMatchError) || error.code !== 'ERR_EM_STORE_BUSY') throw error;
    return { kind: 'busy', why: 'a writer holds the control file; which one cannot be told from a lock' };
  }
  tools.reached('adapter:void-committed');
  return { kind: 'inserted' };
}

/** Faults of the control file under the adapter's code; faults that already say what is wrong stay as they are. */
export async function asUnavailable<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof EffectMatchError && !error.code.startsWith('ERR_EM_STORE_')) throw error;
    throw asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', 'the folder could not be used');
  }
}
