import { canonicalBytes } from './canon-size.ts';
import { quote } from './render-text.ts';
import { choice, closed, form, type Infer, list, nullable, optional, text } from './schema.ts';

const positionSchema = form(/^-?\d{1,20}$/, 'a whole number as text');

/**
 * What an attempt leaves behind even if it was rolled back. Sequences do not roll back: this one
 * was at `from` when the attempt began (null before its first value) and at `to` when it was
 * observed or had failed. Others may have drawn from it meanwhile, so this is an upper bound.
 * Positions are left out if values are not stored.
 */
const residueSchema = closed({
  kind: choice('sequence'),
  name: text(1, 512),
  from: optional(nullable(positionSchema)),
  to: optional(positionSchema),
});
/** Something that a rollback does not undo. */
export type Residue = Infer<typeof residueSchema>;

/** The list of residue in a record. */
export const residueListSchema = list(residueSchema, 1, 1000);

/** One line for everything that a rollback left behind or that moved with a commit. */
export function renderResidue(
  residue: readonly Residue[],
  how: 'Left behind' | 'Moved' = 'Left behind',
): string[] {
  return residue.map(({ name, from, to }) => {
    const place = to === undefined ? '' : ` from ${from ?? 'its start'} to ${to}`;
    return `${how}: sequence ${quote(name)}${how === 'Moved' ? '' : ' moved'}${place}, by this attempt or by others meanwhile`;
  });
}

/** Joins several runs: from where the first found a sequence to where the last left it. */
export function joinResidue(
  ...runs: readonly (readonly Residue[] | undefined)[]
): readonly Residue[] {
  const joined = new Map<string, Residue>();
  for (const moved of runs.flatMap((run) => run ?? [])) {
    const before = joined.get(moved.name);
    joined.set(moved.name, before?.from === undefined ? moved : { ...moved, from: before.from });
  }
  return [...joined.values()];
}

/** How much of a record the list may take up, in bytes of canonical text. */
export const RESIDUE_BYTES_MAX = 256 * 1024;

/**
 * As many entries as fit, in the form in which they may be stored. If values may not be stored,
 * only the names of the sequences.
 */
export function storableResidue(
  residue: readonly Residue[],
  values: 'plain' | 'digest',
): readonly Residue[] {
  const kept: Residue[] = [];
  let bytes = 2;
  for (const moved of residue.slice(0, 1000)) {
    const { kind, name } = moved;
    const stored = values === 'plain' ? moved : { kind, name };
    bytes += canonicalBytes(stored) + 1;
    if (bytes > RESIDUE_BYTES_MAX) break;
    kept.push(stored);
  }
  return kept;
}
