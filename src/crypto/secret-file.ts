import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { EffectMatchError, hasCode } from '../errors.ts';

const MAX_BYTES = 64 * 1024;

/**
 * Reads a file of secrets. Throws unless it is a regular file, not a symbolic link, that group and
 * others cannot access. Checks the opened file, not its name, so the file checked is the file read.
 */
export function readSecretFile(file: string): string {
  const descriptor = openSecret(file);
  try {
    const facts = fstatSync(descriptor);
    if (!facts.isFile()) throw invalidFile(file, 'it is not a regular file');
    if (process.platform !== 'win32' && (facts.mode & 0o077) !== 0) {
      throw new EffectMatchError(
        'ERR_EM_KEYRING_PERMISSIONS',
        `${file} holds secrets and can be used by others than its owner; run: chmod 600 ${quoteForShell(file)}`,
      );
    }
    if (facts.size > MAX_BYTES) throw invalidFile(file, `it is larger than ${MAX_BYTES} bytes`);
    return readFileSync(descriptor, 'utf8');
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Creates a file of secrets with mode 0600, complete and flushed, or not at all. Writes the text
 * under another name and then links it, which fails if the name is taken. Never overwrites a file;
 * returns false if the name is taken.
 */
export function createSecretFile(file: string, text: string): boolean {
  const draft = join(dirname(file), `.${basename(file)}.${randomBytes(8).toString('hex')}.tmp`);
  try {
    writeFlushed(draft, text);
    linkSync(draft, file);
    flushFolder(file);
    return true;
  } catch (cause) {
    if (hasCode(cause, 'EEXIST')) return false;
    throw unwritable(file, cause);
  } finally {
    rmSync(draft, { force: true });
  }
}

/**
 * Replaces the text of a file of secrets by what `revise` returns, in one flushed rename. The draft
 * has a fixed name and serves as the lock: a second revision at the same time is refused, so
 * neither can undo the other.
 */
export function reviseSecretFile(file: string, revise: (text: string) => string): void {
  const draft = `${file}.next`;
  let descriptor: number;
  try {
    descriptor = openSync(draft, 'wx', 0o600);
  } catch (cause) {
    if (!hasCode(cause, 'EEXIST')) throw unwritable(file, cause);
    throw new EffectMatchError(
      'ERR_EM_KEYRING_INVALID',
      `${draft} exists: another change is under way or was interrupted; if none is running, delete it and try again`,
    );
  }
  try {
    writeAll(descriptor, revise(readSecretFile(file)));
    renameSync(draft, file);
  } catch (cause) {
    rmSync(draft, { force: true });
    throw cause instanceof EffectMatchError ? cause : unwritable(file, cause);
  }
  flushFolder(file);
}

function openSecret(file: string): number {
  try {
    // Without NONBLOCK, opening a pipe at this path would wait for a writer.
    return openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (cause) {
    if (hasCode(cause, 'ENOENT')) {
      throw new EffectMatchError('ERR_EM_NOT_FOUND', `${file} does not exist`, { cause });
    }
    if (hasCode(cause, 'ELOOP'))
      throw invalidFile(file, 'it is a symbolic link; name the file itself');
    if (hasCode(cause, 'EACCES')) {
      throw new EffectMatchError(
        'ERR_EM_KEYRING_PERMISSIONS',
        `${file} may not be read by this user`,
        { cause },
      );
    }
    throw invalidFile(file, 'it cannot be opened', cause);
  }
}

function writeFlushed(file: string, text: string): void {
  writeAll(openSync(file, 'wx', 0o600), text);
}

function writeAll(descriptor: number, text: string): void {
  try {
    // The umask reduces the mode given to open; fchmod sets it exactly.
    fchmodSync(descriptor, 0o600);
    writeFileSync(descriptor, text);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** A new name is durable only after its folder is flushed. */
function flushFolder(file: string): void {
  if (process.platform === 'win32') return;
  const folder = openSync(dirname(file), 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

function invalidFile(
  file: string,
  why: string,
  cause?: unknown,
): EffectMatchError<'ERR_EM_KEYRING_INVALID'> {
  return new EffectMatchError(
    'ERR_EM_KEYRING_INVALID',
    `${file} cannot be used as a file of secrets: ${why}`,
    {
      cause,
    },
  );
}

function unwritable(file: string, cause: unknown): EffectMatchError<'ERR_EM_KEYRING_PERMISSIONS'> {
  return new EffectMatchError(
    'ERR_EM_KEYRING_PERMISSIONS',
    `${file} cannot be written; the folder must exist, be writable by this user, and support hard links`,
    { cause },
  );
}

function quoteForShell(file: string): string {
  return /^[\w./-]+$/.test(file) ? file : `'${file.replaceAll("'", `'\\''`)}'`;
}
