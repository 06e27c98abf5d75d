import type { Ledgers } from '../contract/ledgers.ts';
import type { OccurrenceId } from '../protocol/record.ts';
import { GuidedError, usageError } from './guided-error.ts';

/** The beginning of an occurrence id as it was typed, with or without `occ_`. */
export function readPrefix(text: string, verb: string): string {
  const hex = text.startsWith('occ_') ? text.slice(4) : text;
  if (/^[0-9a-f]{1,40}$/.test(hex)) return `occ_${hex}`;
  throw usageError(
    `"${text}" is not an occurrence: it begins with occ_ and goes on in 0-9 and a-f`,
    verb,
  );
}

/** The one occurrence that begins so; none and several are refused, the several with a list. */
export async function findOccurrence(ledgers: Ledgers, prefix: string): Promise<OccurrenceId> {
  const candidates = await ledgers.search(prefix);
  const [only, second] = candidates;
  if (only === undefined) {
    const next = 'look for it with `effectmatch journal`; another store has other occurrences';
    throw new GuidedError('ERR_EM_NOT_FOUND', `no occurrence begins with ${prefix}`, next);
  }
  if (second === undefined) return only;
  const list = candidates.map((candidate) => `\n  ${candidate}`).join('');
  const many = candidates.length >= 10 ? 'at least 10' : candidates.length;
  throw new GuidedError(
    'ERR_EM_NOT_FOUND',
    `${many} occurrences begin with ${prefix}:${list}`,
    'write more of the id',
  );
}
