/** Node's Buffer, which is faster. Browsers have none, and the protocol runs there too. */
const native = globalThis.Buffer as typeof globalThis.Buffer | undefined;
const encoder = new TextEncoder();

/** The length of a text in UTF-8 bytes. */
export function utf8Length(text: string): number {
  return native?.byteLength(text) ?? encoder.encode(text).length;
}

/** Bytes as lower-case hexadecimal digits. */
export function hexOf(bytes: Uint8Array): string {
  if (native !== undefined)
    return native.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
