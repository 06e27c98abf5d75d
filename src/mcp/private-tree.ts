import { createHash } from 'node:crypto';
import {
  cpSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EffectMatchError } from '../errors.ts';

/** The compared properties of one entry. */
interface TreeEntry {
  readonly kind: 'file' | 'directory' | 'symlink' | 'other';
  readonly mode: number;
  /** The digest of a file, or the target of a link. */
  readonly content: string;
}

type Entries = ReadonlyMap<string, TreeEntry>;

/**
 * A copy of a folder in which another program works. The program's changes become operations of the
 * adapter that protects the folder. Nothing else in the copy is used.
 */
export class PrivateTree {
  readonly folder: string;
  readonly #home: string;
  readonly #before: Entries;

  /** Copies the folder's current content. Links are copied as links. */
  constructor(root: string) {
    this.#home = realpathSync(mkdtempSync(join(tmpdir(), 'effectmatch-tree-')));
    this.folder = join(this.#home, 'tree');
    cpSync(realpathSync(root), this.folder, { recursive: true, verbatimSymlinks: true });
    this.#before = listEntries(this.folder);
    const leading = [...this.#before].find(([path, entry]) => leadsOut(path, entry));
    if (leading === undefined) return;
    this.remove();
    const why = `the link ${leading[0]} leads out of the folder ${root}; a copy would share what it leads to`;
    throw new EffectMatchError('ERR_EM_CONFIG_INVALID', why);
  }

  /** The changes since the copy was made, as operations in an order in which they can run. */
  operations(): readonly object[] {
    const before = this.#before;
    const after = listEntries(this.folder);
    const gone = [...before].flatMap(([path, was]) =>
      isReplaced(was, after.get(path)) ? [path] : [],
    );
    const removed = gone.filter((path) => !gone.some((above) => path.startsWith(`${above}/`)));
    const isUnder = (path: string) =>
      removed.some((top) => path === top || path.startsWith(`${top}/`));
    const made = [...after].flatMap(([path, is]) =>
      this.#operationsFor(path, isUnder(path) ? undefined : before.get(path), is),
    );
    return [...removed.map((path) => ({ remove: { path, recursive: true } })), ...made];
  }

  remove(): void {
    rmSync(this.#home, { recursive: true, force: true });
  }

  #operationsFor(path: string, was: TreeEntry | undefined, is: TreeEntry): readonly object[] {
    const { kind, mode, content } = is;
    if (kind === 'directory' && was === undefined) return [{ mkdir: { path, mode } }];
    if (kind === 'symlink' && was === undefined) return [{ symlink: { path, target: content } }];
    if (kind === 'file' && was?.content !== content) {
      const base64 = readFileSync(join(this.folder, path)).toString('base64');
      return [{ write: { path, base64, mode } }];
    }
    const isOtherMode = was !== undefined && was.mode !== mode;
    return isOtherMode && kind !== 'symlink' ? [{ chmod: { path, mode } }] : [];
  }
}

/** Whether an entry must be removed before the new one can be created. */
function isReplaced(was: TreeEntry, is: TreeEntry | undefined): boolean {
  if (is === undefined || is.kind !== was.kind) return true;
  return is.kind === 'symlink' && is.content !== was.content;
}

/**
 * A link may contain `..` only at its start, and may not lead out of the folder. Then no chain of
 * links leads out either.
 */
function leadsOut(path: string, { kind, content }: TreeEntry): boolean {
  if (kind !== 'symlink') return false;
  const names = content.split('/').filter((name) => name !== '' && name !== '.');
  const down = names.findIndex((name) => name !== '..');
  const ups = down === -1 ? names.length : down;
  const depth = path.split('/').length - 1;
  return content.startsWith('/') || ups > depth || names.lastIndexOf('..') >= ups;
}

/** Lists directories before their content. */
function listEntries(folder: string): Entries {
  const entries = new Map<string, TreeEntry>();
  const walk = (prefix: string): void => {
    for (const name of readdirSync(join(folder, prefix)).sort()) {
      const path = prefix === '' ? name : `${prefix}/${name}`;
      const entry = readEntry(join(folder, path));
      entries.set(path, entry);
      if (entry.kind === 'directory') walk(path);
    }
  };
  walk('');
  return entries;
}

function readEntry(place: string): TreeEntry {
  const stats = lstatSync(place);
  const mode = stats.mode & 0o777;
  if (stats.isDirectory()) return { kind: 'directory', mode, content: '' };
  if (stats.isSymbolicLink()) return { kind: 'symlink', mode: 0, content: readlinkSync(place) };
  if (!stats.isFile()) return { kind: 'other', mode, content: '' };
  const content = createHash('sha256').update(readFileSync(place)).digest('hex');
  return { kind: 'file', mode, content };
}
