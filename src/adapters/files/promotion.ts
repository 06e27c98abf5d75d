import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { type PromotionRefusal, refusedPromotion } from '../../backend/candidate.ts';
import type { Promotion } from '../../contract/adapter.ts';
import type { MarkerText } from '../../contract/proof.ts';
import type { Reached } from '../../contract/steps.ts';
import { commitAtOnce } from '../../sqlite/commit.ts';
import { pinDurability } from '../../sqlite/connection.ts';
import { readCurrent, writeVersion } from './control.ts';
import { type BaseVersion, type CandidateWalk, describeBase, describeVersion } from './evidence.ts';
import { type FolderLayout, showCurrent, treeOf } from './layout.ts';
import { insertMarker } from './markers.ts';
import { endStage, isStageRegistered } from './sweep.ts';
import { flush, systemWords } from './tree.ts';

/** An observed candidate, ready to become the next version. */
interface ObservedCandidate {
  readonly folder: string;
  readonly base: BaseVersion;
  readonly walk: CandidateWalk;
}

/**
 * Makes a candidate the current version. Its files are already flushed, and its folders are flushed
 * first. The commit point is one transaction that writes the marker and the pointer, provided that
 * the pointer is still at the base. The rest only makes the version visible, and the next process
 * repeats it if necessary.
 */
export async function promoteCandidate(
  tools: {
    readonly db: DatabaseSync;
    readonly layout: FolderLayout;
    readonly busyTimeoutMs: number;
    readonly reached: Reached;
  },
  candidate: ObservedCandidate,
  marker: MarkerText,
): Promise<Promotion> {
  const { db, layout, busyTimeoutMs, reached } = tools;
  try {
    flushFolders(layout, candidate);
    pinDurability(db);
  } catch (error) {
    const why = `the candidate could not be flushed: ${systemWords(error)}`;
    return refusedPromotion('flush-failed', why);
  }
  const promotion = await commitAtOnce(db, {
    marker,
    insertMarker,
    busyTimeoutMs,
    reached,
    check: () => findObstacle(db, candidate),
    write: () => {
      const { folder, base, walk } = candidate;
      writeVersion(db, { number: base.version.number + 1, folder }, base.entries, walk.after);
      endStage(db, folder);
      return undefined;
    },
  });
  if (promotion.kind !== 'confirmed') return promotion;
  try {
    await showCurrent(db, layout, { deadlineMs: busyTimeoutMs });
    return promotion;
  } catch (cause) {
    // The version is committed but not visible yet. Recovery finds the marker and repeats the
    // switch.
    return { kind: 'unknown', cause };
  }
}

/** Every folder of the candidate is new, so its entries are durable only after this flush. */
function flushFolders(layout: FolderLayout, { folder, walk }: ObservedCandidate): void {
  const tree = treeOf(layout, folder);
  rmSync(join(layout.versions, folder, 'scratch'), { recursive: true, force: true });
  for (const { path, kind } of walk.after.values())
    if (kind === 'directory') flush(join(tree, path));
  flush(join(layout.versions, folder));
  flush(layout.versions);
}

function findObstacle(
  db: DatabaseSync,
  { folder, base, walk }: ObservedCandidate,
): PromotionRefusal | undefined {
  const current = readCurrent(db);
  if (current?.number !== base.version.number || current.folder !== base.version.folder)
    return refusedPromotion(
      'base-changed',
      'another promotion came first; nothing of it is overwritten, approve again on top of it',
    );
  if (describeBase(base, current, walk) !== describeVersion(base.version))
    return refusedPromotion(
      'base-changed',
      'the folder was changed past EffectMatch; put it back, or adopt it as it is',
    );
  if (!isStageRegistered(db, folder))
    return refusedPromotion(
      'stage-lost',
      'the candidate was held for too long and has been given up',
    );
  return undefined;
}
