import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type { AdapterContext, Promotion } from '../../contract/adapter.ts';
import type { MarkerText } from '../../contract/proof.ts';
import { EffectMatchError } from '../../errors.ts';
import { immediate, pinDurability } from '../../sqlite/connection.ts';
import { readCurrent, writeVersion } from './control.ts';
import { type Base, describeBase, describeVersion, type Reading } from './evidence.ts';
import { type Layout, showCurrent, treeOf } from './layout.ts';
import { findMarker, insertMarker } from './markers.ts';
import { endStage, isRegistered } from './sweep.ts';
import { flush, systemWords } from './tree.ts';

/** What a promotion needs beside the candidate. */
export interface PromotionTools {
  readonly db: DatabaseSync;
  readonly layout: Layout;
  readonly busyTimeoutMs: number;
  readonly reached: AdapterContext['reached'];
}

/** A candidate that was observed, ready to become the version after its base. */
export interface Promotable {
  readonly folder: string;
  readonly base: Base;
  readonly reading: Reading;
}

type Refused = Extract<Promotion, { kind: 'refused' }>;

/**
 * Makes a candidate the version that counts. Its files are flushed already; its folders are flushed
 * first. The commit point is one transaction: marker and pointer, on condition that the pointer
 * still is at the base. What follows only shows it, and is repeated by whoever comes next if this
 * process does not get to it.
 */
export async function promoteCandidate(
  tools: PromotionTools,
  candidate: Promotable,
  marker: MarkerText,
): Promise<Promotion> {
  const { db, layout, busyTimeoutMs, reached } = tools;
  try {
    flushFolders(layout, candidate);
  } catch (error) {
    return refuse('flush-failed', `the candidate could not be flushed: ${systemWords(error)}`);
  }
  try {
    pinDurability(db);
    const refusal = await immediate(db, () => commitVersion(tools, candidate, marker), {
      deadlineMs: busyTimeoutMs,
    });
    if (refusal !== undefined) return refusal;
  } catch (error) {
    return judgeError(db, error);
  }
  reached('adapter:commit-returned');
  try {
    await showCurrent(db, layout, { deadlineMs: busyTimeoutMs });
  } catch (cause) {
    // It counts, but nobody can see it yet. Whoever settles this finds the marker and repeats the
    // switch.
    return { kind: 'unknown', cause };
  }
  return { kind: 'confirmed' };
}

/** Every folder of the candidate is new, so the names in it are durable only after this. */
function flushFolders(layout: Layout, { folder, reading }: Promotable): void {
  const tree = treeOf(layout, folder);
  rmSync(join(layout.versions, folder, 'scratch'), { recursive: true, force: true });
  for (const { path, kind } of reading.after.values())
    if (kind === 'directory') flush(join(tree, path));
  flush(join(layout.versions, folder));
  flush(layout.versions);
}

/**
 * Everything is asked before anything is written, so that a refusal leaves an empty transaction.
 */
function commitVersion(
  tools: PromotionTools,
  candidate: Promotable,
  marker: MarkerText,
): Refused | undefined {
  const { db } = tools;
  const { folder, base, reading } = candidate;
  if (findMarker(db, marker.occurrence) !== undefined) {
    return refuse(
      'marker-conflict',
      'a marker of this occurrence exists, so it can no longer commit',
    );
  }
  const current = readCurrent(db);
  if (current?.number !== base.version.number || current.folder !== base.version.folder) {
    return refuse(
      'base-changed',
      'another promotion came first; nothing of it is overwritten, approve again on top of it',
    );
  }
  if (describeBase(base, current, reading) !== describeVersion(base.version)) {
    return refuse(
      'base-changed',
      'the folder was changed past EffectMatch; put it back, or adopt it as it is',
    );
  }
  if (!isRegistered(db, folder)) {
    return refuse('stage-lost', 'the candidate was held for too long and has been given up');
  }
  insertMarker(db, marker);
  writeVersion(db, { number: base.version.number + 1, folder }, base.manifest, reading.after);
  endStage(db, folder);
  tools.reached('adapter:marker-written');
  return undefined;
}

/**
 * Until COMMIT was issued every failure is a refusal, proved by the rollback; after that only a
 * busy file is one.
 */
function judgeError(db: DatabaseSync, error: unknown): Promotion {
  const code = error instanceof EffectMatchError ? error.code : undefined;
  if (db.isTransaction || code === 'ERR_EM_STORE_UNAVAILABLE')
    return { kind: 'unknown', cause: error };
  if (code === 'ERR_EM_STORE_BUSY')
    return refuse('busy', 'other writers kept the control file locked');
  return refuse('marker-failed', String(error));
}

function refuse(reason: string, detail: string): Refused {
  return { kind: 'refused', reason, detail };
}
