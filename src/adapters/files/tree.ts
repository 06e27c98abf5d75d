import { isUtf8 } from 'node:buffer';
import {
  type BigIntStats,
  chmodSync,
  closeSync,
  fsyncSync,
  lchownSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  rmSync,
} from 'node:fs';
import { join } from 'node:path';
import util from 'node:util';
import type { FileEntry } from './control.ts';

/** The owner of an item. It is not compared, but a new copy gets the same owner. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/**
 * One item in a folder, as the file system reports it. The folder itself is `.` and comes first.
 */
export interface TreeItem {
  readonly path: string;
  readonly kind: FileEntry['kind'] | 'special';
  /** Permission bits, including the special ones; null for a symbolic link. */
  readonly mode: number | null;
  readonly size: number;
  readonly link: string | null;
  /**
   * Distinguishes contents of an inode without reading them: inode, size and time of the last
   * write.
   */
  readonly stamp: string;
  readonly links: number;
  readonly owner: Owner;
  /** Which part is not UTF-8. No approval can state such a part, so the item is `special`. */
  readonly notUtf8: 'name' | 'target' | null;
}

/** Lists a folder, parents before children, in a fixed order. It does not follow links. */
export function listTree(folder: string): readonly TreeItem[] {
  const found: TreeItem[] = [describe(folder, '.')];
  if (found[0]?.kind === 'directory') listInto(found, folder, '');
  return found;
}

function listInto(found: TreeItem[], folder: string, prefix: string): void {
  const names = readdirSync(join(folder, prefix), { encoding: 'buffer' }).sort(Buffer.compare);
  for (const bytes of names) {
    const path = `${prefix}${bytes.toString('utf8')}`;
    if (!isUtf8(bytes)) {
      const unread = { mode: null, size: 0, link: null, stamp: '', links: 0, owner: UNKNOWN_OWNER };
      found.push({ path, kind: 'special', ...unread, notUtf8: 'name' });
      continue;
    }
    const entry = describe(folder, path);
    found.push(entry);
    if (entry.kind === 'directory') listInto(found, folder, `${path}/`);
  }
}

const UNKNOWN_OWNER: Owner = { uid: -1, gid: -1 };

function describe(folder: string, path: string): TreeItem {
  const file = join(folder, path);
  const stats = lstatSync(file, { bigint: true });
  const kind = kindOf(stats);
  const target = kind === 'symlink' ? readlinkSync(file, 'buffer') : null;
  const isText = target === null || isUtf8(target);
  const mode = kind === 'symlink' ? null : Number(stats.mode & 0o7777n);
  return {
    path,
    kind: isText ? kind : 'special',
    mode,
    size: Number(stats.size),
    link: isText && target !== null ? target.toString('utf8') : null,
    stamp: stampOf(stats),
    links: Number(stats.nlink),
    owner: { uid: Number(stats.uid), gid: Number(stats.gid) },
    notUtf8: isText ? null : 'target',
  };
}

function kindOf(stats: BigIntStats): TreeItem['kind'] {
  if (stats.isFile()) return 'file';
  if (stats.isDirectory()) return 'directory';
  return stats.isSymbolicLink() ? 'symlink' : 'special';
}

/**
 * The change time is left out, because another hard link to the inode changes it but not the
 * content.
 */
export function stampOf(stats: BigIntStats): string {
  return `${stats.ino}:${stats.size}:${stats.mtimeNs}`;
}

/** Changes when the item is written or its permissions change. */
export function describePlace({ stamp, mode }: Pick<TreeItem, 'stamp' | 'mode'>): string {
  return `${stamp}:${mode}`;
}

/**
 * Gives a new entry the owner of the one it replaces, if permitted. Only root can do this for every
 * owner.
 */
export function keepOwner(path: string, { uid, gid }: Owner): void {
  const made = lstatSync(path);
  if (made.uid === uid && made.gid === gid) return;
  try {
    lchownSync(path, uid, gid);
  } catch (error) {
    if (systemCode(error) !== 'EPERM') throw error;
  }
}

/** Flushes a folder or file, so that its contents survive a power cut. */
export function flush(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Removes one of our folders with its contents, even if folders in it deny writing. It never
 * changes the mode of a file, which other versions may share.
 */
export function removeTree(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch (error) {
    if (!['EACCES', 'EPERM'].includes(systemCode(error) ?? '')) throw error;
    openFolders(folder);
    rmSync(folder, { recursive: true, force: true });
  }
}

function openFolders(folder: string): void {
  chmodSync(folder, 0o700);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) openFolders(join(folder, entry.name));
  }
}

/** The code of an operating system error, such as ENOSPC; undefined for other errors. */
export function systemCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && 'errno' in error
    ? String(error.code)
    : undefined;
}

/** The message of an operating system error, without the path, because paths are values. */
export function systemWords(error: unknown): string {
  const code = systemCode(error);
  if (code === undefined || !(error instanceof Error) || !('errno' in error))
    return 'an unexpected error';
  return `${util.getSystemErrorMessage(Number(error.errno))} (${code})`;
}
