import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { GuidedError } from './guided-error.ts';

/** The text of a file that was named on the command line; `next` says what to name instead when there is none. */
export function readTextFile(file: string, next: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    const missing = cause instanceof Error && 'code' in cause && cause.code === 'ENOENT';
    const why = missing ? 'does not exist' : `cannot be read: ${String(cause)}`;
    throw new GuidedError('ERR_EM_NOT_FOUND', `${resolve(file)} ${why}; nothing was done`, next, { cause });
  }
}
