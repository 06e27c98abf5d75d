import { isUtf8 } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fchmodSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { hasCode } from '../errors.ts';
import { GuidedError } from './fault.ts';

/** Reads a text file named on the command line. `next` is the advice if that fails. */
export function readTextFile(file: string, next: string): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (cause) {
    const why = hasCode(cause, 'ENOENT') ? 'does not exist' : `cannot be read: ${String(cause)}`;
    const message = `${resolve(file)} ${why}; nothing was done`;
    throw new GuidedError('ERR_EM_NOT_FOUND', message, next, cause);
  }
  if (isUtf8(bytes)) return bytes.toString('utf8');
  const message = `${resolve(file)} is not UTF-8 text; nothing was done`;
  throw new GuidedError('ERR_EM_USAGE', message, 'save it as UTF-8');
}

/** Whether an existing file may be replaced. */
interface Overwriting {
  readonly force: boolean;
}

/**
 * Writes a file that only its owner can read. Goes through a temporary file, so that the file is
 * complete and flushed, or not there. An existing file is replaced only with `force`, because an
 * earlier export is evidence. Returns the number of lines.
 */
export async function writePrivateFile(
  file: string,
  lines: AsyncIterable<string> | Iterable<string>,
  { force }: Overwriting,
): Promise<number> {
  const draft = join(dirname(file), `.${basename(file)}.${randomBytes(8).toString('hex')}.tmp`);
  let count = 0;
  try {
    const descriptor = openSync(draft, 'wx', 0o600);
    try {
      // The umask may reduce the mode given to open, so set it explicitly.
      fchmodSync(descriptor, 0o600);
      for await (const line of lines) {
        writeFileSync(descriptor, `${line}\n`);
        count += 1;
      }
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    if (force) renameSync(draft, file);
    else linkSync(draft, file);
  } catch (cause) {
    throw explain(file, cause);
  } finally {
    rmSync(draft, { force: true });
  }
  return count;
}

/** Throws in advance if {@link writePrivateFile} would refuse to replace the file. */
export function assertFree(file: string, { force }: Overwriting): void {
  if (!force && existsSync(file)) throw taken(file);
}

/** Adds advice to file system errors. Errors from `lines` stay as they are. */
function explain(file: string, cause: unknown): unknown {
  if (!(cause instanceof Error && 'syscall' in cause)) return cause;
  if (hasCode(cause, 'EEXIST')) return taken(file, cause);
  const message = `nothing was written to ${file}: ${String(cause)}`;
  const next = 'name a file in a folder that can be written';
  return new GuidedError('ERR_EM_USAGE', message, next, cause);
}

function taken(file: string, cause?: unknown): GuidedError<'ERR_EM_USAGE'> {
  const next = 'name another file, or replace it with --force';
  return new GuidedError(
    'ERR_EM_USAGE',
    `nothing was written to ${file}: the file exists`,
    next,
    cause,
  );
}
