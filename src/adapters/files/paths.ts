/** Longest name of one file, in bytes of UTF-8: what the usual file systems take. */
const MAX_NAME_BYTES = 255;
/** Longest path below the root, in bytes; leaves room for the place where versions are kept. */
export const MAX_PATH_BYTES = 1024;
const ASCII = /^[\x20-\x7e]*$/;
/** Names at the top that start with this belong to EffectMatch. */
export const RESERVED_PREFIX = '.effectmatch-';

/**
 * What is wrong with a path, in words; undefined where nothing is. A path is relative to the root
 * and spelled in its only form, so that two paths are the same file exactly when they are the same
 * text.
 */
export function findPathProblem(path: string): string | undefined {
  if (path === '') return 'it is empty';
  if (path.includes('\0')) return 'it contains a NUL character';
  if (!path.isWellFormed()) return 'it is not well-formed Unicode';
  if (path.startsWith('/')) return 'it is absolute; paths are relative to the root';
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) return `it is longer than ${MAX_PATH_BYTES} bytes`;
  for (const name of path.split('/')) {
    if (name === '' || name === '.' || name === '..')
      return `"${name}" is not a name; write it without "//", "." and ".."`;
    if (Buffer.byteLength(name) > MAX_NAME_BYTES)
      return `a name in it is longer than ${MAX_NAME_BYTES} bytes`;
  }
  if (foldName(path).startsWith(RESERVED_PREFIX))
    return `names that start with ${RESERVED_PREFIX} are reserved`;
  return undefined;
}

/**
 * What is wrong with a symbolic link, by its text and by where it lies. It may go up only at its
 * beginning: from there on every step goes down, and a link met on the way is bound by the same
 * rule, so no chain leaves the root.
 */
export function findLinkProblem(path: string, link: string): string | undefined {
  if (link === '' || link.includes('\0') || !link.isWellFormed())
    return 'its target is not a usable text';
  if (link.startsWith('/')) return 'its target is absolute; links stay inside the root';
  if (Buffer.byteLength(link) > MAX_PATH_BYTES)
    return `its target is longer than ${MAX_PATH_BYTES} bytes`;
  let depth = path.split('/').length - 1;
  let descended = false;
  for (const name of link.split('/')) {
    if (name === '' || name === '.') continue;
    if (name !== '..') {
      descended = true;
      continue;
    }
    if (descended) return 'its target goes up again after a name; write ".." only at its beginning';
    depth -= 1;
    if (depth < 0) return 'its target lies outside the root';
  }
  return undefined;
}

/**
 * Names that a file system without case, or with its own Unicode normal form, takes for one have
 * one folded form. Characters without a glyph go, because such file systems skip them. Lower case
 * comes first too: only as ß does ẞ become SS.
 */
export function foldName(name: string): string {
  if (ASCII.test(name)) return name.toLowerCase();
  const visible = name.normalize('NFD').replace(/\p{Default_Ignorable_Code_Point}/gu, '');
  return visible.toLowerCase().toUpperCase().toLowerCase().normalize('NFC');
}
