import { randomBytes } from 'node:crypto';
import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { refusalsOf } from '../../backend/setup.ts';
import { immediate } from '../../sqlite/connection.ts';
import { findTreeProblem } from './boundary.ts';
import { hashFile } from './content.ts';
import { type FileEntry, readCurrent, writeVersion } from './control.ts';
import type { FolderLayout } from './layout.ts';
import { listTree, systemCode, systemWords, type TreeItem } from './tree.ts';

export const refused = refusalsOf('files');

/** Returns a folder name that cannot be guessed. */
export function newFolderName(): string {
  return randomBytes(16).toString('hex');
}

/** The entry that a version keeps for a tree item. `digest` is the digest of a file. */
export function fileEntryOf(item: TreeItem, digest: string | null): FileEntry {
  const { path, kind, mode, size, link, stamp } = item;
  if (kind === 'special') throw refused(`"${path}" is a device, pipe or socket`);
  const isFile = kind === 'file';
  return { path, kind, mode, link, size: isFile ? size : 0, digest, stamp: isFile ? stamp : '' };
}

/**
 * Records the plain folder at the root as version 1. The redo step that follows moves the folder
 * and puts a link in its place. Nothing is copied, and if a process dies in between, the next one
 * finishes the work.
 */
export async function adoptFolder(
  db: DatabaseSync,
  layout: FolderLayout,
  deadline: { readonly deadlineMs: number },
): Promise<void> {
  await immediate(
    db,
    () => {
      if (readCurrent(db) !== undefined) return;
      const found = inspectFolder(layout.root);
      const entries = new Map(found.map((entry) => [entry.path, entry]));
      writeVersion(db, { number: 1, folder: newFolderName() }, new Map(), entries);
    },
    deadline,
  );
}

function inspectFolder(root: string): readonly FileEntry[] {
  try {
    const found = listTree(root);
    const problem = findTreeProblem(found);
    if (problem !== undefined)
      throw refused(`"${problem.path}": ${problem.what}; change that, then open it again`);
    return found.map((item) => {
      if (item.kind === 'file' && item.links !== 1) {
        throw refused(
          `"${item.path}" has another hard link, through which it can be changed; copy the file`,
        );
      }
      return fileEntryOf(item, item.kind === 'file' ? hashReadable(root, item.path) : null);
    });
  } catch (error) {
    if (systemCode(error) === undefined) throw error;
    throw refused(`the folder cannot be read: ${systemWords(error)}`, error);
  }
}

function hashReadable(root: string, path: string): string {
  try {
    return hashFile(join(root, path));
  } catch (error) {
    if (systemCode(error) === undefined) throw error;
    throw refused(
      `"${path}" cannot be read: ${systemWords(error)}; what cannot be read cannot be compared`,
      error,
    );
  }
}

/** Requires a plain folder at the root, before adoption. */
export function demandPlainFolder(root: string): void {
  const stats = lstatSync(root, { throwIfNoEntry: false });
  if (stats === undefined) throw refused(`there is no folder "${root}"; create it first`);
  if (!stats.isDirectory()) throw refused(`"${root}" is not a plain folder`);
}
