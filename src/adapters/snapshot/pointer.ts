/** The steps into a document: object keys, and in patterns `*` for any key or place. */
export type Tokens = readonly string[];

/** The tokens of a JSON pointer (RFC 6901); undefined for any other text. '' is the whole document. */
export function parsePointer(text: string): Tokens | undefined {
  if (text === '') return [];
  if (!text.startsWith('/') || /~(?![01])/.test(text)) return undefined;
  const tokens = text.slice(1).split('/');
  return tokens.map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** The JSON pointer of an object's field, given the object's own. */
export function extendPointer(pointer: string, token: string): string {
  return `${pointer}/${token.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** Whether the second place lies at or beneath the first. */
export function isBeneath(outer: Tokens, inner: Tokens): boolean {
  return outer.length <= inner.length && outer.every((token, index) => token === inner[index]);
}

/** The first two places of which one lies at or beneath the other. */
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

/** What remains of the patterns that lead through this token. */
export function stepInto(patterns: readonly Tokens[], token: string): readonly Tokens[] {
  if (patterns.length === 0) return patterns;
  return patterns.flatMap(([head, ...tail]) => (head === '*' || head === token ? [tail] : []));
}
