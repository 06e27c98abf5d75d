import { isUtf8 } from 'node:buffer';
import {
  chmodSync,
  closeSync,
  fchmodSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  type Stats,
  symlinkSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { unreachable } from '../../errors.ts';
import type { Value } from '../../protocol/value.ts';
import { type CheckedFilesAction, type CheckedOperation, formatMode } from './action.ts';
import { copyFile, stampTime } from './clone.ts';
import { keepOwner, removeTree, systemCode, systemWords } from './tree.ts';

/**
 * Where operations run: the candidate's tree, and a scratch folder for files before they are moved
 * into it.
 */
export interface Workplace {
  readonly tree: string;
  readonly scratch: string;
}

const DEFAULT_FILE_MODE = 0o644;

/** An error that the agent may read: the operation does not fit the current folder. */
class Misfit extends Error {}

/** What each operation returned, or why the first failed operation failed. */
type Operated =
  | { readonly kind: 'done'; readonly returned: readonly Value[] }
  | { readonly kind: 'failed'; readonly why: string };

/**
 * Runs the operations in order and stops at the first failure. It never writes to a file that the
 * candidate shares with another version: each change creates a new inode.
 */
export function runOperations(
  workplace: Workplace,
  action: CheckedFilesAction,
  options: { readonly quotesValues: boolean; readonly first: number },
): Operated {
  const returned: Value[] = [];
  for (const [index, operation] of action.operations.entries()) {
    try {
      returned.push(runOperation(workplace, operation, options.first + index));
    } catch (error) {
      const where = `operation ${index + 1} (${operation.op}${options.quotesValues ? ` ${JSON.stringify(operation.path)}` : ''})`;
      const why = error instanceof Misfit ? error.message : undefined;
      if (why === undefined && systemCode(error) === undefined) throw error;
      return { kind: 'failed', why: `${where}: ${why ?? systemWords(error)}` };
    }
  }
  return { kind: 'done', returned };
}

function runOperation(workplace: Workplace, operation: CheckedOperation, index: number): Value {
  const { tree } = workplace;
  if (operation.op === 'read') return readContent(locate(tree, operation.path));
  if (operation.op === 'list') return listFolder(locate(tree, operation.path));
  changeTree(workplace, operation, index);
  return null;
}

/** Larger files are not returned. */
const MAX_READ_BYTES = 1024 * 1024;

/** Returns the content of a file in the form that `write` accepts. */
function readContent({ file, stats }: Located): Value {
  if (!demandThere(stats).isFile()) throw new Misfit('it is not a regular file');
  if (demandThere(stats).size > MAX_READ_BYTES)
    throw new Misfit(`it is larger than ${MAX_READ_BYTES} bytes, which is the most that is read`);
  const bytes = readFileSync(file);
  return isUtf8(bytes) ? { text: bytes.toString('utf8') } : { base64: bytes.toString('base64') };
}

function listFolder({ file, stats }: Located): Value {
  if (!demandThere(stats).isDirectory()) throw new Misfit('it is not a folder');
  const entries = readdirSync(file, { withFileTypes: true });
  return entries.map((entry) => {
    const kind = entry.isDirectory() ? 'directory' : entry.isFile() ? 'file' : 'symlink';
    return { name: entry.name, kind };
  });
}

type Change = Exclude<CheckedOperation, { readonly op: 'read' | 'list' }>;

function changeTree(workplace: Workplace, operation: Change, index: number): void {
  const { tree } = workplace;
  const place = locate(tree, operation.path);
  const { stats } = place;
  const made = join(workplace.scratch, String(index));
  switch (operation.op) {
    case 'write':
      if (stats !== undefined && !stats.isFile())
        throw new Misfit('it is not a regular file; remove it first');
      writeNewFile(
        made,
        operation.bytes,
        operation.mode ?? (stats ? stats.mode & 0o777 : DEFAULT_FILE_MODE),
      );
      if (stats !== undefined) keepOwner(made, stats);
      renameSync(made, place.file);
      break;
    case 'mkdir':
      demandFree(stats);
      mkdirSync(place.file, { mode: 0o700 });
      chmodSync(place.file, operation.mode);
      break;
    case 'symlink':
      demandFree(stats);
      symlinkSync(operation.target, place.file);
      break;
    case 'remove':
      if (!demandThere(stats).isDirectory()) unlinkSync(place.file);
      else if (operation.recursive) removeTree(place.file);
      else rmdirSync(place.file);
      break;
    case 'rename': {
      demandThere(stats);
      if (operation.to.startsWith(`${operation.path}/`))
        throw new Misfit('a folder cannot be moved into itself');
      const to = locate(tree, operation.to);
      demandFree(to.stats);
      renameSync(place.file, to.file);
      break;
    }
    case 'chmod':
      changeMode(place.file, demandThere(stats), operation.mode, made);
      break;
    default:
      unreachable(operation);
  }
}

interface Located {
  readonly file: string;
  readonly stats: Stats | undefined;
}

/** Finds a path in the tree. Every parent must be a real folder: links are never followed. */
function locate(tree: string, path: string): Located {
  const names = path.split('/');
  for (let length = 1; length < names.length; length += 1) {
    const parent = lstatSync(join(tree, ...names.slice(0, length)), { throwIfNoEntry: false });
    if (parent === undefined)
      throw new Misfit('the folder it lies in does not exist; make it first');
    if (parent.isSymbolicLink())
      throw new Misfit('the way to it goes through a symbolic link, which is not followed');
    if (!parent.isDirectory()) throw new Misfit('the way to it goes through a file');
  }
  const file = join(tree, path);
  return { file, stats: lstatSync(file, { throwIfNoEntry: false }) };
}

function demandFree(stats: Stats | undefined): void {
  if (stats !== undefined) throw new Misfit('something of that name exists; remove it first');
}

function demandThere(stats: Stats | undefined): Stats {
  if (stats === undefined) throw new Misfit('it does not exist');
  return stats;
}

/** Writes and flushes a complete new file. */
function writeNewFile(file: string, bytes: Uint8Array, mode: number): void {
  const descriptor = openSync(file, 'wx', 0o600);
  try {
    for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at);
    fchmodSync(descriptor, mode);
    stampTime(file);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** A file with a new mode gets a new inode, because other versions may share the old one. */
function changeMode(file: string, stats: Stats, mode: number, made: string): void {
  if (stats.isSymbolicLink()) throw new Misfit('a symbolic link has no permissions');
  if (stats.isDirectory()) {
    if ((mode & 0o700) !== 0o700)
      throw new Misfit(`mode ${formatMode(mode)} would keep the owner out of the folder`);
    chmodSync(file, mode);
  } else {
    copyFile(file, made, { mode, owner: stats });
    renameSync(made, file);
  }
}
