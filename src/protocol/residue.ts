import { canonicalBytes } from './canon-size.ts';
import { quote } from './render-text.ts';
import { choice, closed, form, type Infer, list, nullable, optional, text } from './schema.ts';

const positionSchema = form(/^-?\d{1,20}$/, 'a whole number as text');

/**
 * What an attempt leaves even where it was rolled back. A sequence does not roll back: it stood at
 * `from` when the attempt began (null before its first value) and at `to` when it was observed or
 * had failed. Others may have drawn from it meanwhile, so it bounds what the attempt moved.
 * Positions are left out where values are not stored.
 */
const residueSchema = closed({
  kind: choice('sequence'),
  name: text(1, 512),
  from: optional(nullable(positionSchema)),
  to: optional(positionSchema),
});
/** One thing that no rollback takes back. */
export type Residue = Infer<typeof residueSchema>;

/** The list as records keep it, beside what they claim. */
export const residueListSchema = list(residueSchema, 1, 1000);

/** One line for each thing that was left behind by a rollback, or moved with a commit. */
export function renderResidue(
  residue: readonly Residue[],
  how: 'Left behind' | 'Moved' = 'Left behind',
): string[] {
  return residue.map(({ name, from, to }) => {
    const place = to === undefined ? '' : ` from ${from ?? 'its start'} to ${to}`;
    return `${how}: sequence ${quote(name)}${how === 'Moved' ? '' : ' moved'}${place}, by this attempt or by others meanwhile`;
  });
}

/** From where the first run found a sequence to where the last one left it. */
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

/** What the list may take of a record, in bytes of canonical text. */
export const RESIDUE_BYTES_MAX = 256 * 1024;

/**
 * As it may be stored, as many as fit; where values may not be: which sequences, and not where they
 * stand.
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
