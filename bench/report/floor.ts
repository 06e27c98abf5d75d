import type { WrittenCell } from '../results.ts';

/**
 * The same figure of a path that was written by hand with as little as possible: what protects in
 * this way cannot be faster. Undefined if the study has no such path.
 */
export function findFloor(cells: readonly WrittenCell[], figure: string): WrittenCell | undefined {
  const named = floorOf(figure);
  return cells.find(({ name }) => name === named && name !== figure);
}

/** The name of the figure that says how little a figure can be. */
function floorOf(figure: string): string {
  switch (figure) {
    case 'core beyond one durable write':
      return 'floor: signature, claim and terminal written by hand, beyond one durable write';
    case 'protected over the floor of two durable writes':
      return 'floor with what protection needs, over the floor of two durable writes';
    default:
      return figure
        .replace(/: (protected|certified)(?=, | over direct)/, ': floor')
        .replace(/median of held/, 'the barest path with the same flushes,');
  }
}
