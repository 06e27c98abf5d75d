import { readdirSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { immediate, statement } from '../../sqlite/connection.ts';
import { readCurrent } from './control.ts';
import type { FolderLayout } from './layout.ts';
import { removeTree, systemCode } from './tree.ts';

/** How many versions keep their trees, for programs that are still reading an older one. */
const KEPT_VERSIONS = 3;
/** A candidate that is held longer may be removed. It can then no longer be promoted. */
const STAGE_LEASE_MS = 60 * 60 * 1000;

/**
 * Registers a candidate before its folder exists. A sweep removes folders without a registration.
 */
export function registerStage(db: DatabaseSync, folder: string, nowMs: number): void {
  const sql = 'insert into stage (folder, host, pid, since_ms) values (?, ?, ?, ?)';
  statement(db, sql).run(folder, hostname(), process.pid, nowMs);
}

/**
 * Ends the registration. Returns false if it had already ended; the candidate must then not be
 * promoted.
 */
export function endStage(db: DatabaseSync, folder: string): boolean {
  return statement(db, 'delete from stage where folder = ?').run(folder).changes === 1;
}

const abandoned = new Set<string>();

/**
 * Marks an ended stage of this process whose registration could not be ended. The next sweep ends
 * it.
 */
export function abandonStage(folder: string): void {
  abandoned.add(folder);
}

export function isStageRegistered(db: DatabaseSync, folder: string): boolean {
  return statement(db, 'select 1 from stage where folder = ?').get(folder) !== undefined;
}

/**
 * Removes old versions and candidates that are no longer held. One transaction decides what to
 * remove, and the folders are removed after it. A candidate that a slow process still holds loses
 * its registration first.
 */
export async function sweep(
  db: DatabaseSync,
  layout: FolderLayout,
  options: { readonly nowMs: number; readonly deadlineMs: number },
): Promise<void> {
  const { nowMs } = options;
  const leftovers = await immediate(
    db,
    () => {
      endDeadStages(db, nowMs);
      endOldVersions(db);
      const rows = statement(db, 'select folder from version union select folder from stage').all();
      const kept = new Set(rows.map((row) => String(row.folder)));
      return readdirSync(layout.versions).filter((name) => !kept.has(name));
    },
    options,
  );
  for (const folder of leftovers) {
    try {
      removeTree(join(layout.versions, folder));
      abandoned.delete(folder);
    } catch (error) {
      // Another process may be removing the same folder. The next sweep finds what is left.
      if (systemCode(error) === undefined) throw error;
    }
  }
}

function endDeadStages(db: DatabaseSync, nowMs: number): void {
  for (const row of statement(db, 'select folder, host, pid, since_ms from stage').all()) {
    const expired = Math.abs(nowMs - Number(row.since_ms)) > STAGE_LEASE_MS;
    const gone = row.host === hostname() && !isAlive(Number(row.pid));
    if (expired || gone || abandoned.has(String(row.folder))) endStage(db, String(row.folder));
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemCode(error) === 'EPERM';
  }
}

function endOldVersions(db: DatabaseSync): void {
  const oldest = (readCurrent(db)?.number ?? 0) - KEPT_VERSIONS + 1;
  statement(db, 'delete from version where number < ?').run(oldest);
  statement(db, 'delete from entry where until <= ?').run(oldest);
}
