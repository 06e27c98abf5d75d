/** Node's Buffer, which is faster. Browsers have none, and the protocol runs there too. */
const native = globalThis.Buffer as typeof globalThis.Buffer | undefined;
const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** The length of a text in UTF-8 bytes. */
export function utf8Length(text: string): number {
  return native?.byteLength(text) ?? encoder.encode(text).length;
}

/**
 * Joins well-formed pieces that have this many bytes. Joining strings would hold the pieces and the
 * whole on the engine's heap at once. The bytes are outside of it, and are released at once.
 */
export function joinPieces(pieces: Iterable<string>, bytes: number): string {
  const joined = new Uint8Array(bytes);
  let end = 0;
  for (const piece of pieces) end += encoder.encodeInto(piece, joined.subarray(end)).written;
  const text = decoder.decode(joined);
  joined.buffer.transfer(0);
  return text;
}

/** Bytes as lower-case hexadecimal digits. */
export function hexOf(bytes: Uint8Array): string {
  if (native !== undefined)
    return native.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
