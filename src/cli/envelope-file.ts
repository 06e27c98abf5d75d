import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { MAX_ENVELOPE_BYTES } from '../crypto/dsse.ts';
import { EffectMatchError } from '../errors.ts';
import { GuidedError } from './guided-error.ts';

const CHUNK_BYTES = 64 * 1024;
/** An envelope with the attributes of an event around it. */
const MAX_LINE_BYTES = MAX_ENVELOPE_BYTES + 16 * 1024;

/** A document of a file, as text, and the line it stands in. */
export interface Found {
  readonly line: number;
  readonly text: string;
}

/**
 * The documents of a file, one per line as an export writes them, or one that is laid out over
 * several lines. A file may be as long as it likes: at most one document is held at a time.
 */
export function* readDocuments(file: string): Generator<Found> {
  let line = 0;
  for (const text of readLines(file)) {
    line += 1;
    if (line === 1 && text.trim() === '{') {
      yield { line, text: readWhole(file) };
      return;
    }
    if (text.trim() !== '') yield { line, text };
  }
}

/** Text of a small file, such as one of public keys. */
export function readWhole(file: string): string {
  const descriptor = open(file);
  try {
    const bytes = Buffer.alloc(Math.min(fstatSync(descriptor).size, MAX_LINE_BYTES) + 1);
    let filled = 0;
    for (let read = -1; read !== 0 && filled < bytes.length; filled += read) {
      read = readSync(descriptor, bytes, filled, bytes.length - filled, null);
    }
    if (filled > MAX_LINE_BYTES) throw tooLarge(file);
    return bytes.toString('utf8', 0, filled);
  } finally {
    closeSync(descriptor);
  }
}

function* readLines(file: string): Generator<string> {
  const descriptor = open(file);
  try {
    const chunk = Buffer.alloc(CHUNK_BYTES);
    let parts: Buffer[] = [];
    let held = 0;
    for (;;) {
      const read = readSync(descriptor, chunk, 0, CHUNK_BYTES, null);
      if (read === 0) break;
      let rest = Buffer.from(chunk.subarray(0, read));
      for (let end = rest.indexOf(10); end !== -1; end = rest.indexOf(10)) {
        yield Buffer.concat([...parts, rest.subarray(0, end)]).toString('utf8');
        rest = rest.subarray(end + 1);
        parts = [];
        held = 0;
      }
      parts.push(rest);
      held += rest.length;
      if (held > MAX_LINE_BYTES) throw tooLarge(file);
    }
    if (held > 0) yield Buffer.concat(parts).toString('utf8');
  } finally {
    closeSync(descriptor);
  }
}

function open(file: string): number {
  try {
    const descriptor = openSync(file, 'r');
    if (fstatSync(descriptor).isFile()) return descriptor;
    closeSync(descriptor);
  } catch (cause) {
    const words = cause instanceof Error ? cause.message : String(cause);
    throw new GuidedError(
      'ERR_EM_NOT_FOUND',
      `${file} cannot be read: ${words}`,
      'check the path',
      { cause },
    );
  }
  throw new GuidedError('ERR_EM_NOT_FOUND', `${file} is not a regular file`, 'check the path');
}

function tooLarge(file: string): EffectMatchError<'ERR_EM_RECORD_TOO_LARGE'> {
  return new EffectMatchError(
    'ERR_EM_RECORD_TOO_LARGE',
    `${file}: a document in it is larger than ${MAX_LINE_BYTES} bytes`,
  );
}
