import type { VoidResult } from '../contract/adapter.ts';
import type { MarkerText } from '../contract/proof.ts';
import { EffectMatchError } from '../errors.ts';

/** Reads a marker from its table row; throws if it is neither committed nor void. */
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

/** A live transaction blocks the void marker. */
export const MARKER_HELD: VoidResult = {
  kind: 'busy',
  why: 'a live transaction holds the marker of this occurrence',
};

/**
 * The marker that a void marker conflicted with. If it was removed in between, the result is
 * `busy`.
 */
export function metMarker(found: MarkerText | undefined): VoidResult {
  if (found !== undefined) return { kind: 'conflict', marker: found };
  return { kind: 'busy', why: 'the marker is being changed' };
}
