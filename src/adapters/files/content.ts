import { isUtf8 } from 'node:buffer';
import { createHash, hash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { unavailable } from '../../backend/setup.ts';
import { readTag, type Value } from '../../protocol/value.ts';

/**
 * UTF-8 content up to this size is compared and shown as text. Other content is compared and shown
 * as digest and size.
 */
export const MAX_TEXT_BYTES = 4096;
const CHUNK_BYTES = 1024 * 1024;
const SHA256 = /^[0-9a-f]{64}$/;

/** Content as it is compared: readable text if it is small enough, otherwise digest and size. */
export function describeContent(bytes: Uint8Array): Value {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.length <= MAX_TEXT_BYTES && isUtf8(view)) return view.toString('utf8');
  return describeDigest(hash('sha256', view, 'hex'), view.length);
}

/** Content that is shown as its digest and size. */
export function describeDigest(sha256: string, size: number): Value {
  return { sha256, size };
}

/**
 * Converts the content that an approver stated to the compared form; undefined if it is not
 * content.
 */
export function normaliseContent(value: Value): Value | undefined {
  if (typeof value === 'string') return describeContent(Buffer.from(value));
  const tagged = readTag(value);
  if (tagged !== undefined)
    return tagged.tag === '$bytes' ? describeContent(Buffer.from(tagged.text, 'hex')) : undefined;
  if (typeof value !== 'object' || value === null || !('sha256' in value) || !('size' in value))
    return undefined;
  const { sha256, size } = value;
  if (Object.keys(value).length !== 2 || typeof sha256 !== 'string' || !SHA256.test(sha256))
    return undefined;
  return Number.isSafeInteger(size) && Number(size) >= 0
    ? describeDigest(sha256, Number(size))
    : undefined;
}

/** The digest of a regular file, read in chunks. Does not follow links or block on a pipe. */
export function hashFile(file: string): string {
  const digest = createHash('sha256');
  readPieces(file, (piece) => digest.update(piece));
  return digest.digest('hex');
}

/** Reads all bytes of a small regular file. */
export function readSmallFile(file: string): Uint8Array {
  const pieces: Buffer[] = [];
  readPieces(file, (piece) => pieces.push(Buffer.from(piece)));
  return Buffer.concat(pieces);
}

function readPieces(file: string, take: (piece: Buffer) => void): void {
  const descriptor = openSync(
    file,
    constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
  );
  try {
    const { size } = fstatSync(descriptor);
    if (!fstatSync(descriptor).isFile()) {
      throw unavailable('what was a regular file no longer is one');
    }
    const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, size + 1));
    for (;;) {
      const read = readSync(descriptor, buffer);
      if (read === 0) return;
      take(buffer.subarray(0, read));
    }
  } finally {
    closeSync(descriptor);
  }
}
