import type { MarkerText } from '../contract/proof.ts';
import type { Sealed } from '../contract/seal.ts';
import type { MarkerRecord } from '../protocol/marker.ts';

/** A sealed marker in the form in which adapters store it. */
export function markerText(sealed: Sealed<MarkerRecord>): MarkerText {
  const { record, text, seal } = sealed;
  return {
    occurrence: record.occurrence,
    disposition: record.disposition,
    text,
    sealKey: seal.key,
    sealMac: seal.mac,
  };
}
