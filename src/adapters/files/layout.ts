import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { unavailable } from '../../backend/setup.ts';
import { immediate } from '../../sqlite/connection.ts';
import { type FolderVersion, readCurrent } from './control.ts';
import { flush } from './tree.ts';

/** The paths of the adapter. `root` is a symbolic link to the tree of one version. */
export interface FolderLayout {
  readonly root: string;
  readonly control: string;
  readonly versions: string;
  readonly database: string;
}

export function layoutOf(options: {
  readonly root: string;
  readonly control?: string;
}): FolderLayout {
  const root = resolve(options.root);
  const control = resolve(options.control ?? join(dirname(root), `.${basename(root)}.effectmatch`));
  return {
    root,
    control,
    versions: join(control, 'versions'),
    database: join(control, 'control.db'),
  };
}

/** The tree of a version or candidate. */
export function treeOf(layout: FolderLayout, folder: string): string {
  return join(layout.versions, folder, 'tree');
}

/**
 * Creates the folder of a version or candidate, with a scratch folder that only the adapter can
 * access.
 */
export function makeFolder(
  layout: FolderLayout,
  folder: string,
): { readonly tree: string; readonly scratch: string } {
  makePassage(join(layout.versions, folder));
  const scratch = join(layout.versions, folder, 'scratch');
  mkdirSync(scratch, { mode: 0o700 });
  return { tree: treeOf(layout, folder), scratch };
}

/**
 * Creates a folder that other users can traverse but not list, regardless of the umask. Readers
 * reach files through the root.
 */
export function makePassage(folder: string): void {
  if (mkdirSync(folder, { recursive: true }) !== undefined) chmodSync(folder, 0o711);
}

/** The link is relative, so that root and control folder can be moved or copied together. */
function linkText(layout: FolderLayout, folder: string): string {
  return relative(dirname(layout.root), treeOf(layout, folder));
}

/** Whether the root is a link into the control folder, for any version. */
export function isOurLink(layout: FolderLayout): boolean {
  const text = readRootLink(layout);
  return text?.startsWith(`${relative(dirname(layout.root), layout.versions)}/`) ?? false;
}

function readRootLink({ root }: FolderLayout): string | undefined {
  return lstatSync(root, { throwIfNoEntry: false })?.isSymbolicLink()
    ? readlinkSync(root)
    : undefined;
}

/**
 * Makes the root show the current version if it does not yet: the redo step of a promotion and of
 * an adoption. It takes the write lock, so that a late process cannot switch the link back to an
 * older version.
 */
export async function showCurrent(
  db: DatabaseSync,
  layout: FolderLayout,
  deadline: { readonly deadlineMs: number },
): Promise<void> {
  const current = readCurrent(db);
  if (current === undefined || readRootLink(layout) === linkText(layout, current.folder)) return;
  await immediate(
    db,
    () => {
      const latest = readCurrent(db);
      if (latest !== undefined) switchRoot(layout, latest);
    },
    deadline,
  );
}

function switchRoot(layout: FolderLayout, version: FolderVersion): void {
  const { root, control } = layout;
  const stats = lstatSync(root, { throwIfNoEntry: false });
  if (
    stats?.isDirectory() &&
    lstatSync(treeOf(layout, version.folder), { throwIfNoEntry: false }) === undefined
  ) {
    // The adoption was recorded, but the folder is not moved yet.
    makePassage(join(layout.versions, version.folder));
    renameSync(root, treeOf(layout, version.folder));
    flush(join(layout.versions, version.folder));
    flush(layout.versions);
  } else if (stats !== undefined && !isOurLink(layout)) {
    throw unavailable(
      'the root is no longer the link that EffectMatch made; move aside what is there now, and open it again',
    );
  }
  const next = join(control, 'next');
  rmSync(next, { force: true });
  symlinkSync(linkText(layout, version.folder), next);
  renameSync(next, root);
  flush(dirname(root));
}
