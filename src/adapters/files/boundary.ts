import { findLinkProblem, findPathProblem, foldName, RESERVED_PREFIX } from './paths.ts';
import type { TreeItem } from './tree.ts';

/** Something in a folder that cannot be protected, and why. */
interface TreeProblem {
  readonly path: string;
  readonly what: string;
}

/**
 * The first item in a folder that leads out of it, that no approval can name, or that is not a
 * file, folder or link.
 */
export function findTreeProblem(found: readonly TreeItem[]): TreeProblem | undefined {
  const names = new Set<string>();
  for (const item of found) {
    const what = findItemProblem(item, names);
    if (what !== undefined) return { path: item.path, what };
  }
  return undefined;
}

function findItemProblem(item: TreeItem, names: Set<string>): string | undefined {
  const { path, kind, mode, link, notUtf8 } = item;
  if (notUtf8 !== null) return `its ${notUtf8} is not valid UTF-8`;
  if (kind === 'special') return 'it is a device, pipe or socket';
  if (mode !== null && (mode & 0o7000) !== 0)
    return 'it has a set-user-id, set-group-id or sticky bit';
  if (path === '.') return undefined;
  const problem = path.startsWith(RESERVED_PREFIX) ? undefined : findPathProblem(path);
  if (problem !== undefined) return problem;
  const folded = foldName(path);
  if (names.has(folded)) return 'another name in this folder differs only in case or Unicode form';
  names.add(folded);
  return link === null ? undefined : findLinkProblem(path, link);
}
