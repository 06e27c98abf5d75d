import {
  chmodSync,
  constants,
  copyFileSync,
  linkSync,
  mkdirSync,
  symlinkSync,
  utimesSync,
} from 'node:fs';
import { join } from 'node:path';
import { hashFile } from './content.ts';
import type { FileEntry, VersionEntries } from './control.ts';
import {
  describePlace,
  flush,
  keepOwner,
  listTree,
  type Owner,
  systemCode,
  type TreeItem,
} from './tree.ts';

/**
 * A candidate that starts as its base version, or what in the base differs from what was promoted.
 */
type Cloned =
  | {
      readonly kind: 'cloned';
      /** The base with current stamps; the same object if no stamp changed. */
      readonly base: VersionEntries;
      /**
       * The state of each folder in the base version, by path. It changes when an entry is added or
       * removed, or if permissions change.
       */
      readonly folders: ReadonlyMap<string, string>;
    }
  | { readonly kind: 'changed'; readonly path: string; readonly what: string };

/** The errors of a file system that cannot create another hard link. */
const CANNOT_LINK = ['EMLINK', 'EXDEV', 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'];

/**
 * Lays out a version again: folders are new, and files are hard links to the same inodes, so that
 * no content is copied or read. Every file is inspected on the way. Only a file whose stamp differs
 * from the promoted one is hashed again.
 */
export function cloneTree(from: string, entries: VersionEntries, to: string): Cloned {
  const found = listTree(from);
  const restamped: FileEntry[] = [];
  const folders = new Map<string, string>();
  for (const item of found) {
    const entry = entries.get(item.path);
    const what = compareWithEntry(from, item, entry);
    if (entry === undefined || what !== undefined)
      return { kind: 'changed', path: item.path, what: what ?? 'it is new' };
    if (item.kind === 'file' && item.stamp !== entry.stamp)
      restamped.push({ ...entry, stamp: item.stamp });
    if (item.kind === 'directory') folders.set(item.path, describePlace(item));
    layOut(from, item, to);
  }
  if (found.length !== entries.size) {
    const paths = new Set(found.map(({ path }) => path));
    const path = [...entries.keys()].find((known) => !paths.has(known)) ?? '.';
    return { kind: 'changed', path, what: 'it is missing' };
  }
  permitFolders(found, to);
  const base =
    restamped.length === 0
      ? entries
      : new Map([...entries, ...restamped.map((e) => [e.path, e] as const)]);
  return { kind: 'cloned', base, folders };
}

/** Sets modes last and from the inside out, because a folder may deny writing even to its owner. */
function permitFolders(found: readonly TreeItem[], to: string): void {
  for (const { kind, path, mode } of found.toReversed())
    if (kind === 'directory') chmodSync(join(to, path), mode ?? 0);
}

/** Lays out a file or folder again in the same way, without checking it. */
export function saveTree(from: string, to: string): void {
  const found = listTree(from);
  for (const item of found) layOut(from, item, to);
  permitFolders(found, to);
}

/** How an item differs from what was promoted; undefined if it does not. */
function compareWithEntry(
  from: string,
  item: TreeItem,
  entry: FileEntry | undefined,
): string | undefined {
  if (item.notUtf8 !== null) return `its ${item.notUtf8} is not valid UTF-8`;
  if (entry === undefined) return 'it appeared';
  if (item.kind !== entry.kind) return 'it is something else';
  if (item.mode !== entry.mode) return 'its permissions changed';
  if (item.link !== entry.link) return 'its target changed';
  if (item.kind !== 'file' || item.stamp === entry.stamp) return undefined;
  if (item.size !== entry.size || hashFile(join(from, item.path)) !== entry.digest)
    return 'its content changed';
  return undefined;
}

function layOut(from: string, item: TreeItem, to: string): void {
  const place = join(to, item.path);
  if (item.kind === 'directory') mkdirSync(place, { mode: 0o700 });
  else if (item.kind === 'symlink') symlinkSync(item.link ?? '', place);
  else linkOrCopy(join(from, item.path), place, item);
  if (item.kind !== 'file') keepOwner(place, item.owner);
}

function linkOrCopy(from: string, to: string, { mode, owner }: TreeItem): void {
  try {
    linkSync(from, to);
  } catch (error) {
    if (!CANNOT_LINK.includes(systemCode(error) ?? '')) throw error;
    copyFile(from, to, { mode: mode ?? 0, owner });
  }
}

/** Copies a file and flushes the copy. Shares blocks if the file system can. */
export function copyFile(
  from: string,
  to: string,
  { mode, owner }: { readonly mode: number; readonly owner: Owner },
): void {
  copyFileSync(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  chmodSync(to, 0o600);
  keepOwner(to, owner);
  stampTime(to);
  flush(to);
  chmodSync(to, mode);
}

/**
 * Sets a new file's modification time to a whole millisecond. A later write sets the kernel's
 * finer-grained time, so the write is visible even within the same clock tick.
 */
export function stampTime(file: string): void {
  const seconds = Date.now() / 1000;
  utimesSync(file, seconds, seconds);
}
