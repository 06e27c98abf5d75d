/**
 * One step into a document after another: object keys, and in patterns `*` for any key or place.
 */
export type Tokens = readonly string[];

/**
 * The tokens of a JSON pointer (RFC 6901); undefined for text that is none. The empty text is the
 * whole document.
 */
export function parsePointer(text: string): Tokens | undefined {
  if (text === '') return [];
  if (!text.startsWith('/') || /~(?![01])/.test(text)) return undefined;
  return text
    .slice(1)
    .split('/')
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** The JSON pointer of an object's field, given the object's own. */
export function extendPointer(pointer: string, token: string): string {
  return `${pointer}/${token.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** Whether the second place lies at or beneath the first. */
export function isBeneath(outer: Tokens, inner: Tokens): boolean {
  return outer.length <= inner.length && outer.every((token, index) => token === inner[index]);
}

/** What remains of the patterns that lead through this token. */
export function stepInto(patterns: readonly Tokens[], token: string): readonly Tokens[] {
  if (patterns.length === 0) return patterns;
  return patterns.flatMap(([head, ...tail]) => (head === '*' || head === token ? [tail] : []));
}
