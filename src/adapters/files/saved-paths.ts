import { lstatSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { saveTree } from './clone.ts';
import type { Workplace } from './operations.ts';
import { removeTree } from './tree.ts';

/**
 * Saves some paths of a candidate, so that they can be restored. Operations create a new inode for
 * each change, so another hard link to a file keeps its content.
 */
export class SavedPaths {
  readonly #workplace: Workplace;
  /** Each path and where it is saved; undefined if nothing was there. */
  readonly #saved = new Map<string, string | undefined>();

  constructor(workplace: Workplace, paths: ReadonlySet<string>) {
    this.#workplace = workplace;
    for (const path of paths) {
      if (hasAbove(path, paths) || !isReachable(workplace.tree, path)) continue;
      const from = join(workplace.tree, path);
      const exists = lstatSync(from, { throwIfNoEntry: false }) !== undefined;
      const to = join(workplace.scratch, `saved-${this.#saved.size}`);
      if (exists) saveTree(from, to);
      this.#saved.set(path, exists ? to : undefined);
    }
  }

  /** Restores the saved paths. Nothing else can have changed. */
  putBack(): void {
    for (const [path, saved] of this.#saved) {
      const place = join(this.#workplace.tree, path);
      removeTree(place);
      if (saved !== undefined) renameSync(saved, place);
    }
  }

  /** Removes the saved links, because a changed file must have only one. */
  forget(): void {
    for (const saved of this.#saved.values()) if (saved !== undefined) removeTree(saved);
  }
}

function hasAbove(path: string, paths: ReadonlySet<string>): boolean {
  for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1))
    if (paths.has(path.slice(0, end))) return true;
  return false;
}

/** Whether every parent exists and is a real folder. Operations use no other paths. */
function isReachable(tree: string, path: string): boolean {
  const names = path.split('/').slice(0, -1);
  return names.every((_, index) => {
    const place = join(tree, ...names.slice(0, index + 1));
    return lstatSync(place, { throwIfNoEntry: false })?.isDirectory() === true;
  });
}
