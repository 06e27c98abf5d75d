import {
  chmodSync,
  closeSync,
  fchmodSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  rmdirSync,
  type Stats,
  symlinkSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { unreachable } from '../../errors.ts';
import { type CheckedFilesAction, type CheckedOperation, formatMode } from './action.ts';
import { copyFile, stampTime } from './clone.ts';
import { keepOwner, removeTree, systemCode, systemWords } from './tree.ts';

/**
 * Where operations work: the candidate's tree, and a scratch folder where files are made before
 * they are moved in.
 */
export interface Workplace {
  readonly tree: string;
  readonly scratch: string;
}

const DEFAULT_FILE_MODE = 0o644;

/** A reason that the agent may read: the operation does not fit the folder as it is. */
class Misfit extends Error {}

/**
 * Runs the operations in order and stops at the first that fails, with what was wrong; undefined
 * where none did. No file that the candidate shares with another version is ever written: each
 * change makes a new inode.
 */
export function runOperations(
  workplace: Workplace,
  action: CheckedFilesAction,
  options: { readonly quotesValues: boolean; readonly first: number },
): string | undefined {
  for (const [index, operation] of action.operations.entries()) {
    try {
      runOperation(workplace, operation, options.first + index);
    } catch (error) {
      const where = `operation ${index + 1} (${operation.op}${options.quotesValues ? ` ${JSON.stringify(operation.path)}` : ''})`;
      if (error instanceof Misfit) return `${where}: ${error.message}`;
      if (systemCode(error) !== undefined) return `${where}: ${systemWords(error)}`;
      throw error;
    }
  }
  return undefined;
}

function runOperation(workplace: Workplace, operation: CheckedOperation, index: number): void {
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

/** Finds a path in the tree. Every folder on the way is a real one: a link is never followed. */
function locate(
  tree: string,
  path: string,
): { readonly file: string; readonly stats: Stats | undefined } {
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

/** Makes a file, whole and flushed. */
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

/** A file gets its new mode as a new inode, because the old one belongs to other versions too. */
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
