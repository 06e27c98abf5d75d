import type { DatabaseSync } from 'node:sqlite';
import type { AdapterContext, Markers, VoidResult } from '../contract/adapter.ts';
import type { MarkerText } from '../contract/proof.ts';
import { EffectMatchError } from '../errors.ts';
import { asFault, immediate, pinDurability, retryWhileBusy, statement } from './connection.ts';

/** What the marker table needs beside its connection. */
export interface MarkerTools {
  readonly busyTimeoutMs: number;
  readonly reached: AdapterContext['reached'];
  /**
   * What a committed marker entails and a dead process may have left undone; repeated whenever one
   * is found.
   */
  readonly redo?: () => Promise<void>;
}

/** The markers of a backend whose commit point is a SQLite transaction. */
export interface MarkerTable {
  /** The marker of an occurrence as this connection sees it. */
  findMarker(db: DatabaseSync, occurrence: string): MarkerText | undefined;
  /** Adds a marker inside the open transaction; the primary key refuses a second one. */
  insertMarker(db: DatabaseSync, marker: MarkerText): void;
  /** The table as a port, through a trusted connection. */
  markersOf(db: DatabaseSync, tools: MarkerTools): Markers;
  /**
   * Faults of the file under the adapter's code; faults that already say what is wrong stay as they
   * are.
   */
  faultOf(error: unknown): unknown;
  /** The same for work that is waited for. */
  asUnavailable<T>(work: () => T | Promise<T>): Promise<T>;
}

/**
 * The functions for one marker table. `subject` names what could not be used; `voidDeadlineMs` is
 * how long a void marker waits for other writers before it leaves the occurrence alone.
 */
export function markerTable(options: {
  readonly table: string;
  readonly subject: string;
  readonly voidDeadlineMs: number;
}): MarkerTable {
  const { table, subject, voidDeadlineMs } = options;
  const find = `select occurrence, disposition, text, seal_key, seal_mac from main.${table} where occurrence = ?`;
  const insert = `insert into main.${table} (occurrence, disposition, text, seal_key, seal_mac) values (?, ?, ?, ?, ?)`;
  const remove = `delete from main.${table} where occurrence = ?`;

  function findMarker(db: DatabaseSync, occurrence: string): MarkerText | undefined {
    const row = statement(db, find).get(occurrence);
    if (row === undefined) return undefined;
    const { disposition } = row;
    if (disposition !== 'committed' && disposition !== 'void') {
      throw new EffectMatchError(
        'ERR_EM_MARKER_CONFLICT',
        `the marker of ${occurrence} is neither committed nor void`,
      );
    }
    return {
      occurrence: String(row.occurrence),
      disposition,
      text: String(row.text),
      sealKey: String(row.seal_key),
      sealMac: String(row.seal_mac),
    };
  }

  function insertMarker(db: DatabaseSync, marker: MarkerText): void {
    const { occurrence, disposition, text, sealKey, sealMac } = marker;
    statement(db, insert).run(occurrence, disposition, text, sealKey, sealMac);
  }

  function markersOf(db: DatabaseSync, { busyTimeoutMs, reached, redo }: MarkerTools): Markers {
    const deadline = { deadlineMs: busyTimeoutMs };
    const redone = async (found: MarkerText | undefined): Promise<MarkerText | undefined> => {
      if (found?.disposition === 'committed') await redo?.();
      return found;
    };
    return {
      find: (occurrence) =>
        asUnavailable(
          async () =>
            await redone(await retryWhileBusy(() => findMarker(db, occurrence), deadline)),
        ),
      void: (marker) =>
        asUnavailable(async () => await voidOccurrence(db, marker, { reached, redone })),
      forget: (occurrence) =>
        asUnavailable(async () => {
          await immediate(db, () => statement(db, remove).run(occurrence), deadline);
        }),
    };
  }

  async function voidOccurrence(
    db: DatabaseSync,
    marker: MarkerText,
    tools: {
      readonly reached: AdapterContext['reached'];
      readonly redone: (found: MarkerText | undefined) => Promise<MarkerText | undefined>;
    },
  ): Promise<VoidResult> {
    const deadline = { deadlineMs: voidDeadlineMs };
    const write = (): MarkerText | undefined => {
      const existing = findMarker(db, marker.occurrence);
      if (existing !== undefined) return existing;
      insertMarker(db, marker);
      tools.reached('adapter:void-written');
      return undefined;
    };
    try {
      // The journal mode may have changed since the connection was opened, and with it what a flush
      // takes.
      await retryWhileBusy(() => pinDurability(db), deadline);
      const found = await tools.redone(await immediate(db, write, deadline));
      if (found !== undefined) return { kind: 'conflict', marker: found };
    } catch (error) {
      if (!(error instanceof EffectMatchError) || error.code !== 'ERR_EM_STORE_BUSY') throw error;
      return {
        kind: 'busy',
        why: 'a writer holds the file; whether it is this attempt cannot be told from a lock',
      };
    }
    tools.reached('adapter:void-committed');
    return { kind: 'inserted' };
  }

  function faultOf(error: unknown): unknown {
    const stated = error instanceof EffectMatchError && !error.code.startsWith('ERR_EM_STORE_');
    return stated
      ? error
      : asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', `${subject} could not be used`);
  }

  async function asUnavailable<T>(work: () => T | Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw faultOf(error);
    }
  }

  return { findMarker, insertMarker, markersOf, faultOf, asUnavailable };
}
