import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import type { CandidateEvidence } from '../../backend/candidate.ts';
import { fingerprint } from '../../backend/setup.ts';
import type { ChannelReport, Evidence } from '../../contract/adapter.ts';
import { EffectMatchError } from '../../errors.ts';
import type { ChangeRecord } from '../../protocol/effect.ts';
import { fileEntryOf } from './adoption.ts';
import { hashFile } from './content.ts';
import {
  describeEntry,
  type FileEntry,
  type FolderVersion,
  type VersionEntries,
} from './control.ts';
import { FILE_TARGET } from './normalise.ts';
import { RESERVED_PREFIX } from './paths.ts';
import { rowOf } from './reading.ts';
import { describePlace, listTree, stampOf, systemCode, type TreeItem } from './tree.ts';

/** What must be reported, and must agree, before an observation is complete. */
export const CHANNELS = ['walk', 'operations', 'base', 'links'] as const;
/**
 * The target for records of the admission probe. It is not registered, so it cannot be approved.
 */
export const PROBE_TARGET = 'effectmatch-probe';

/** The version that a candidate was made from, as it was found when it was cloned. */
export interface BaseVersion {
  readonly version: FolderVersion;
  readonly tree: string;
  readonly entries: VersionEntries;
  readonly folders: ReadonlyMap<string, string>;
}

/** The result of walking the candidate. */
export interface CandidateWalk {
  readonly after: VersionEntries;
  /** Paths at which the candidate differs from the base. */
  readonly changed: readonly string[];
  /** Special files, names or targets that are not UTF-8, and changed files with several links. */
  readonly strays: readonly string[];
  /**
   * Base files that the candidate does not share. Only these must be checked for writes by others.
   */
  readonly unshared: readonly FileEntry[];
  /** The fingerprint of everything found. */
  readonly text: string;
}

/**
 * Walks the candidate. An unwritten file with the same inode as in the base has the base's content.
 * Every other file is hashed.
 */
export function walkCandidate(tree: string, base: VersionEntries): CandidateWalk {
  const found = listTree(tree);
  const known = new Map(
    [...base.values()].filter(({ stamp }) => stamp !== '').map((entry) => [entry.stamp, entry]),
  );
  const after = new Map<string, FileEntry>();
  const changed: string[] = [];
  const strays: string[] = [];
  for (const item of found) {
    const shared = item.kind === 'file' ? known.get(item.stamp) : undefined;
    const stray = describeStray(item, shared !== undefined);
    if (stray !== undefined) strays.push(stray);
    if (item.kind === 'special') continue;
    const digest =
      item.kind === 'file' ? (shared?.digest ?? hashFile(join(tree, item.path))) : null;
    const entry = fileEntryOf(item, digest);
    after.set(item.path, entry);
    const was = base.get(item.path);
    if (was === undefined || describeEntry(was) !== describeEntry(entry)) changed.push(item.path);
  }
  for (const path of base.keys()) if (!after.has(path)) changed.push(path);
  const stamps = new Set(found.map(({ stamp }) => stamp));
  const unshared = [...base.values()].filter(
    ({ kind, stamp }) => kind === 'file' && !stamps.has(stamp),
  );
  return { after, changed, strays, unshared, text: fingerprint(describeFound(found, after)) };
}

function describeStray({ kind, links, notUtf8 }: TreeItem, isShared: boolean): string | undefined {
  if (notUtf8 !== null) return `an entry whose ${notUtf8} is not valid UTF-8`;
  if (kind === 'special') return 'a special file';
  return kind === 'file' && !isShared && links !== 1
    ? `a changed file with ${links} links`
    : undefined;
}

function describeFound(found: readonly TreeItem[], after: VersionEntries): unknown {
  return found.map(({ path, kind, mode, link, stamp }) => [
    path,
    kind,
    mode,
    link,
    kind === 'file' ? stamp : '',
    after.get(path)?.digest ?? '',
  ]);
}

/**
 * The current state of the base as one text: the current version, and whether others wrote to
 * folders of the base or to files that the candidate replaced. Writes to all other files show in
 * the candidate, which shares them.
 */
export function describeBase(
  base: BaseVersion,
  current: FolderVersion | undefined,
  { unshared }: CandidateWalk,
): string {
  const version = current === undefined ? 'no version' : describeVersion(current);
  const files = unshared.map((entry) => [entry.path, describePlace(entry)] as const);
  const moved = [...base.folders, ...files].filter(
    ([path, was]) => lookAt(join(base.tree, path)) !== was,
  );
  return moved.length === 0
    ? version
    : `${version}, with ${moved.length} of its entries written to by others`;
}

function lookAt(path: string): string {
  const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  return stats === undefined
    ? 'gone'
    : describePlace({ stamp: stampOf(stats), mode: Number(stats.mode & 0o7777n) });
}

/** What the evidence is made from, besides the walk. */
interface ObservedTree {
  readonly tree: string;
  readonly base: BaseVersion;
  /** The paths that operations named. */
  readonly named: ReadonlySet<string>;
  readonly window: Evidence['window'];
}

/** The fingerprint of the raw evidence. */
export function fingerprintEvidence(walk: CandidateWalk, baseNow: string): string {
  return fingerprint([walk.text, walk.strays, baseNow]);
}

/** Builds evidence from a walk of the candidate. It draws no conclusions. */
export function observeCandidate(
  observed: ObservedTree,
  walk: CandidateWalk,
  baseNow: string,
): CandidateEvidence {
  const { base, window } = observed;
  const result = readRecords(observed, walk);
  const records = result.kind === 'records' ? result.records : [];
  const targets = new Set([...observed.named].map(targetOf));
  const channels: ChannelReport[] = [
    result.kind === 'records'
      ? { channel: 'walk', kind: 'records', count: records.length }
      : { channel: 'walk', kind: 'silent', why: result.why },
    { channel: 'operations', kind: 'touched', targets: [...targets] },
    { channel: 'base', kind: 'stable', before: describeVersion(base.version), after: baseNow },
    { channel: 'links', kind: 'stable', before: '', after: walk.strays.slice(0, 5).join(', ') },
  ];
  return {
    evidence: fingerprintEvidence(walk, baseNow),
    records,
    channels,
    unattributed: walk.changed.filter((path) => !isExplained(path, observed.named)).length,
    assigned: [],
    window,
  };
}

function targetOf(path: string): string {
  return path.startsWith(RESERVED_PREFIX) ? PROBE_TARGET : FILE_TARGET.name;
}

/** Whether an operation named this path or a folder above it. Nothing else may have changed. */
function isExplained(path: string, named: ReadonlySet<string>): boolean {
  for (let end = path.length; end > 0; end = path.lastIndexOf('/', end - 1)) {
    if (named.has(path.slice(0, end))) return true;
  }
  return false;
}

export function describeVersion({ number, folder }: FolderVersion): string {
  return `version ${number} in ${folder}`;
}

type Records =
  | { readonly kind: 'records'; readonly records: readonly ChangeRecord[] }
  | { readonly kind: 'unclear'; readonly why: string };

/** Leaves the channel silent if a file is unreadable: unknown changes must not count as none. */
function readRecords({ tree, base }: ObservedTree, { changed, after }: CandidateWalk): Records {
  try {
    const records = changed.map((path): ChangeRecord => {
      const was = base.entries.get(path);
      const is = after.get(path);
      return {
        op: was === undefined ? 'insert' : is === undefined ? 'delete' : 'update',
        target: targetOf(path),
        key: { path },
        before: was === undefined ? null : rowOf(base.tree, was),
        after: is === undefined ? null : rowOf(tree, is),
      };
    });
    return { kind: 'records', records };
  } catch (error) {
    if (systemCode(error) === undefined && !(error instanceof EffectMatchError)) throw error;
    return { kind: 'unclear', why: 'a changed file could not be read' };
  }
}
