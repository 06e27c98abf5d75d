import { randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fchmodSync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { GuidedError } from './guided-error.ts';

/**
 * Writes a file that only its owner can read, whole and flushed, or not at all: it is written aside
 * and then given its name. A file of that name is replaced only when that was asked for, because an
 * earlier export is evidence. Returns how many lines were written.
 */
export async function writePrivateFile(
  file: string,
  lines: AsyncIterable<string> | Iterable<string>,
  { force }: { readonly force: boolean },
): Promise<number> {
  const draft = join(dirname(file), `.${basename(file)}.${randomBytes(8).toString('hex')}.tmp`);
  const descriptor = attempt(file, () => openSync(draft, 'wx', 0o600));
  let count = 0;
  try {
    try {
      // The mode given to open is cut down by the umask; this one is exact.
      attempt(file, () => fchmodSync(descriptor, 0o600));
      for await (const line of lines) {
        attempt(file, () => writeAll(descriptor, Buffer.from(`${line}\n`)));
        count += 1;
      }
      attempt(file, () => fsyncSync(descriptor));
    } finally {
      closeSync(descriptor);
    }
    attempt(file, () => (force ? renameSync(draft, file) : linkSync(draft, file)));
  } finally {
    rmSync(draft, { force: true });
  }
  return count;
}

/** Says of a file before it is made what {@link writePrivateFile} would say then. */
export function assertFree(file: string, { force }: { readonly force: boolean }): void {
  if (!force && existsSync(file))
    throw notWritten(file, Object.assign(new Error(), { code: 'EEXIST' }));
}

function writeAll(descriptor: number, bytes: Buffer): void {
  for (let written = 0; written < bytes.length; ) written += writeSync(descriptor, bytes, written);
}

/**
 * Faults of the file system are the caller's to mend; whatever the lines throw passes through as it
 * is.
 */
function attempt<T>(file: string, step: () => T): T {
  try {
    return step();
  } catch (cause) {
    throw notWritten(file, cause);
  }
}

function notWritten(file: string, cause: unknown): GuidedError<'ERR_EM_USAGE'> {
  const taken = cause instanceof Error && 'code' in cause && cause.code === 'EEXIST';
  const why = taken ? 'the file exists' : String(cause);
  const next = taken
    ? 'name another file, or replace it with --force'
    : 'name a file in a folder that can be written';
  return new GuidedError('ERR_EM_USAGE', `nothing was written to ${file}: ${why}`, next, { cause });
}
