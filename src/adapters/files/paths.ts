/** The longest file name in bytes of UTF-8 that common file systems accept. */
const MAX_NAME_BYTES = 255;
/** The longest path below the root in bytes. This leaves room for the path of the versions. */
export const MAX_PATH_BYTES = 1024;
const ASCII = /^[\x20-\x7e]*$/;
/** Top-level names with this prefix belong to EffectMatch. */
export const RESERVED_PREFIX = '.effectmatch-';

/**
 * Why a path is not valid; undefined if it is. Paths are relative to the root and have only one
 * valid spelling, so that two paths name the same file exactly if their texts are equal.
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
 * Why a symbolic link at this path is not valid. The target may go up only at its beginning, and
 * then only down. The same rule applies to every link on the way, so no chain of links leaves the
 * root.
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
 * Folds a name. Names that a case-insensitive or normalising file system treats as equal have the
 * same folded form. Invisible characters are dropped, because such file systems ignore them. Lower
 * case comes first, because ẞ becomes SS only by way of ß.
 */
export function foldName(name: string): string {
  if (ASCII.test(name)) return name.toLowerCase();
  const visible = name.normalize('NFD').replace(/\p{Default_Ignorable_Code_Point}/gu, '');
  return visible.toLowerCase().toUpperCase().toLowerCase().normalize('NFC');
}
