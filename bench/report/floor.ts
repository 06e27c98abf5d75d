import type { WrittenCell } from '../results.ts';

/**
 * The same figure of a path that was written by hand with as little as possible: what protects in
 * this way cannot be faster. Undefined if the study has no such path.
 */
export function findFloor(cells: readonly WrittenCell[], figure: string): WrittenCell | undefined {
  const names = floorsOf(figure).filter((name) => name !== figure);
  return names.map((one) => cells.find(({ name }) => name === one)).find(Boolean);
}

/** What a floor needs to take the place of these paths. */
const OWED: Readonly<Record<string, string>> = {
  protected: 'floor with what protection needs',
  certified: 'floor with what certification needs',
  on: 'floor with what certification needs',
};

/**
 * The names of the figures that say how little a figure can be. The first one that was measured
 * applies: of some paths there is a floor with everything that is owed, and a barer one.
 */
function floorsOf(figure: string): readonly string[] {
  switch (figure) {
    case 'core beyond one durable write':
      return ['floor: signature, claim and terminal written by hand, beyond one durable write'];
    case 'protected over the floor of two durable writes':
      return ['floor with what protection needs, over the floor of two durable writes'];
    default: {
      const path = /: (protected|certified|on)(?=, | over | among )/;
      return [
        figure.replace(path, (_, name: string) => `: ${OWED[name]}`),
        figure.replace(path, ': floor'),
        figure.replace(/median of held/, 'the barest path with the same flushes,'),
      ];
    }
  }
}
