import type { MarkerText } from '../contract/proof.ts';
import type { Sealed } from '../contract/seal.ts';
import { digestRecord } from '../crypto/digest.ts';
import { EffectMatchError } from '../errors.ts';
import { type ClaimRecord, claimRecord } from '../protocol/binding.ts';
import { type CommittedMarker, type MarkerRecord, markerRecord } from '../protocol/marker.ts';
import { type AdmittedPromotable, type Deployment, nowInstant } from './deployment.ts';

/** What inserting a void marker decided about a claimed attempt. */
type Settlement =
  /** The attempt can never commit, even if its process wakes up later. */
  | { readonly kind: 'void' }
  /** The attempt committed: the marker is its own, and its seal and digests match the claim. */
  | { readonly kind: 'committed'; readonly marker: CommittedMarker }
  /**
   * Another execution's marker holds the occurrence, so this attempt never committed and never can.
   */
  | { readonly kind: 'elsewhere'; readonly why: string }
  /**
   * The marker does not verify or does not match the claim. Never treated as `committed`; a person
   * has to decide.
   */
  | { readonly kind: 'foreign'; readonly why: string }
  /** A live transaction blocks the marker. */
  | { readonly kind: 'busy'; readonly why: string };

/**
 * Decides a claimed attempt by inserting a void marker in a separate transaction. Reading is not
 * enough: a read can return nothing while the commit is still in flight, an insert cannot.
 */
export async function settle(
  deployment: Deployment,
  admitted: AdmittedPromotable,
  claim: Sealed<ClaimRecord>,
): Promise<Settlement> {
  const { occurrence, execution } = claim.record;
  const marker = {
    version: 1 as const,
    disposition: 'void' as const,
    occurrence,
    execution,
    voidedAt: nowInstant(deployment),
  };
  const result = await admitted.adapter.markers.void(
    markerText(deployment.sealer.seal(markerRecord, marker)),
  );
  if (result.kind === 'inserted') return { kind: 'void' };
  if (result.kind === 'busy') return result;

  const found = openMarker(deployment, result.marker);
  if (found.kind === 'invalid') return { kind: 'foreign', why: found.why };
  const { record } = found;
  if (record.occurrence !== occurrence)
    return { kind: 'foreign', why: 'the marker names another occurrence' };
  if (record.disposition === 'void') return { kind: 'void' };
  if (record.execution !== execution) {
    return { kind: 'elsewhere', why: `execution ${record.execution} committed this occurrence` };
  }
  if (
    record.claim !== digestRecord(claimRecord, claim.record) ||
    record.approved !== claim.record.approved
  ) {
    return {
      kind: 'foreign',
      why: 'the marker names this execution, but its digests disagree with the claim',
    };
  }
  return { kind: 'committed', marker: record };
}

/** A sealed marker in the form that adapters store. */
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

/** Opens a stored marker and checks its seal. */
export function openMarker(
  deployment: Deployment,
  stored: { readonly text: string; readonly sealKey: string; readonly sealMac: string },
):
  | { readonly kind: 'valid'; readonly record: MarkerRecord }
  | { readonly kind: 'invalid'; readonly why: string } {
  try {
    const seal = { key: stored.sealKey, mac: stored.sealMac };
    return {
      kind: 'valid',
      record: deployment.sealer.open(markerRecord, stored.text, seal).record,
    };
  } catch (error) {
    if (!(error instanceof EffectMatchError)) throw error;
    const shared = 'machines that share a backend share a keyring';
    return { kind: 'invalid', why: `the marker does not verify (${shared}): ${error.message}` };
  }
}
