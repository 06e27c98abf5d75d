import { EffectMatchError } from '../../errors.ts';
import { parsePointer, type Tokens } from './pointer.ts';

/** The column of a record's fields that were not declared, as one object. */
export const OTHER_FIELDS = '*';

/** Names that records and manifests can carry as columns without being read as something else. */
export function isColumn(name: unknown): boolean {
  if (typeof name !== 'string' || name === '' || name === '__proto__' || name === OTHER_FIELDS)
    return false;
  return name.length <= 256 && !name.startsWith('$') && name.isWellFormed();
}

/** Refuses names that are not among the known ones. */
export function demandKnown(
  names: readonly string[],
  known: readonly string[],
  where: string,
): void {
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw refused(`${where}: "${unknown}" is not possible here${listKnown(known)}`);
}

/** " (there are …)" after an unknown name: the known ones, as far as they fit into a sentence. */
export function listKnown(known: readonly string[]): string {
  if (known.length === 0) return ' (there are none)';
  const shown = known.slice(0, 8).map((name) => `"${name}"`);
  return ` (there ${known.length === 1 ? 'is' : 'are'} ${shown.join(', ')}${known.length > 8 ? ', …' : ''})`;
}

/** A JSON pointer that an application declared. */
export function readPointer(path: unknown, where: string): Tokens {
  const tokens = typeof path === 'string' ? parsePointer(path) : undefined;
  if (tokens === undefined)
    throw refused(`${where}: "${String(path)}" is not a JSON pointer, such as "/orders"`);
  return tokens;
}

/** A refusal to register, in words that say what to change. */
export function refused(what: string, cause?: unknown): EffectMatchError<'ERR_EM_ADAPTER_REFUSED'> {
  return new EffectMatchError('ERR_EM_ADAPTER_REFUSED', `snapshot: ${what}`, { cause });
}
