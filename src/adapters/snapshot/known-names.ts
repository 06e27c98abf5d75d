/**
 * " (there are …)" for a name that nobody knows: the known ones, as far as they fit into a
 * sentence.
 */
export function listKnown(known: readonly string[]): string {
  if (known.length === 0) return ' (there are none)';
  const shown = known.slice(0, 8).map((name) => `"${name}"`);
  return ` (there ${known.length === 1 ? 'is' : 'are'} ${shown.join(', ')}${known.length > 8 ? ', …' : ''})`;
}
