/** The path into a document: object keys, or in patterns `*` for any key or index. */
export type Tokens = readonly string[];

/** Parses a JSON pointer (RFC 6901); undefined if it is not one. '' is the whole document. */
export function parsePointer(text: string): Tokens | undefined {
  if (text === '') return [];
  if (!text.startsWith('/') || /~(?![01])/.test(text)) return undefined;
  const tokens = text.slice(1).split('/');
  return tokens.map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** The JSON pointer of a field, from the pointer of its object. */
export function extendPointer(pointer: string, token: string): string {
  return `${pointer}/${token.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** Whether the second path is equal to the first or below it. */
export function isBeneath(outer: Tokens, inner: Tokens): boolean {
  return outer.length <= inner.length && outer.every((token, index) => token === inner[index]);
}

/** The first two places of which one contains the other or equals it. */
export function findOverlap<Place extends { readonly tokens: Tokens }>(
  places: readonly Place[],
): readonly [Place, Place] | undefined {
  for (const [index, one] of places.entries()) {
    for (const other of places.slice(index + 1)) {
      if (isBeneath(one.tokens, other.tokens) || isBeneath(other.tokens, one.tokens))
        return [one, other];
    }
  }
  return undefined;
}

/** The rest of each pattern that matches this token. */
export function stepInto(patterns: readonly Tokens[], token: string): readonly Tokens[] {
  if (patterns.length === 0) return patterns;
  return patterns.flatMap(([head, ...tail]) => (head === '*' || head === token ? [tail] : []));
}
