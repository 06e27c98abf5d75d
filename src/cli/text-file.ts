import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { GuidedError } from './guided-error.ts';

/**
 * The text of a file that was named on the command line; `next` says what to name instead when
 * there is none.
 */
export function readTextFile(file: string, next: string): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (cause) {
    const missing = cause instanceof Error && 'code' in cause && cause.code === 'ENOENT';
    const why = missing ? 'does not exist' : `cannot be read: ${String(cause)}`;
    throw new GuidedError('ERR_EM_NOT_FOUND', `${resolve(file)} ${why}; nothing was done`, next, {
      cause,
    });
  }
  if (!isUtf8(bytes)) {
    throw new GuidedError(
      'ERR_EM_USAGE',
      `${resolve(file)} is not UTF-8 text; nothing was done`,
      'save it as UTF-8',
    );
  }
  return bytes.toString('utf8');
}
