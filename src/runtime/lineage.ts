import { digestRecord, occurrenceId } from '../crypto/digest.ts';
import { licenseRecord, type SignedLicense } from '../protocol/license.ts';
import type { Lineage } from './continuation.ts';

/**
 * The occurrences that a license buys, in the order in which they are claimed, as `continuation`
 * and `terminal` ask for them. So whoever holds the license can ask what became of it without
 * having seen a verdict: the process that executed it may have died. It says nothing about whether
 * the license is valid or was ever used.
 */
export function lineagesOf({ license }: SignedLicense): readonly [Lineage, ...Lineage[]] {
  const { issuer, nonce, occurrences } = license;
  const lineage = digestRecord(licenseRecord, license);
  const nth = (index: number) => ({
    occurrence: occurrenceId({ issuer, nonce, license: lineage, index }),
    lineage,
  });
  return [nth(0), ...Array.from({ length: occurrences - 1 }, (_, index) => nth(index + 1))];
}
