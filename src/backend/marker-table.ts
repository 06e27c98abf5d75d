import type { VoidResult } from '../contract/adapter.ts';
import type { MarkerText } from '../contract/proof.ts';
import { EffectMatchError } from '../errors.ts';

/** A marker as a table stores it; refuses one that is neither of the two kinds. */
export function readStoredMarker(row: readonly unknown[] | undefined): MarkerText | undefined {
  if (row === undefined) return undefined;
  const [occurrence, disposition, text, sealKey, sealMac] = row.map(String);
  if (disposition === 'committed' || disposition === 'void')
    return { occurrence, disposition, text, sealKey, sealMac } as MarkerText;
  throw new EffectMatchError(
    'ERR_EM_MARKER_CONFLICT',
    `the marker of ${occurrence} is neither committed nor void`,
  );
}

/** A live transaction is in the way of a void marker. */
export const MARKER_HELD: VoidResult = {
  kind: 'busy',
  why: 'a live transaction holds the marker of this occurrence',
};

/** What a void marker met; undefined if that was removed in between, so nothing can be said now. */
export function metMarker(found: MarkerText | undefined): VoidResult {
  if (found !== undefined) return { kind: 'conflict', marker: found };
  return { kind: 'busy', why: 'the marker is being changed' };
}
