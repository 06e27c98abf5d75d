/**
 * Decodes strict base64url of a known length: no padding, no other alphabet, no stray bits. So each
 * value has exactly one text.
 */
export function decodeBase64url(text: unknown, bytes: number): Buffer | undefined {
  if (typeof text !== 'string' || text.length !== Math.ceil((bytes * 4) / 3)) return undefined;
  const decoded = Buffer.from(text, 'base64url');
  return decoded.length === bytes && decoded.toString('base64url') === text ? decoded : undefined;
}
