import type { ClaimRecord } from '../protocol/binding.ts';
import type { CertificateRecord } from '../protocol/boundary.ts';
import type { PermitRecord } from '../protocol/permit.ts';
import type { Digest } from '../protocol/record.ts';
import type { Deadline } from './clock.ts';
import type { Sealed } from './seal.ts';

declare const proof: unique symbol;
/**
 * Facts that only one step can establish. Types enforce the order: each step takes the proof of the
 * step before.
 */
export type Proof<Step extends string, Facts> = Facts & { readonly [proof]: Step };

/** This execution has durably spent the occurrence. Minted by `runtime/authority.ts`. */
export type Claim = Proof<
  'claim',
  { readonly sealed: Sealed<ClaimRecord>; readonly digest: Digest }
>;

/**
 * Every outlet is observed or denied. Minted by `runtime/boundary.ts`. `credentials` is the
 * survey's fingerprint of the credentials: an adapter sends nothing for this attempt with others.
 */
export type Certificate = Proof<
  'certificate',
  { readonly record: CertificateRecord; readonly digest: Digest; readonly credentials: string }
>;

/** What an adapter needs from a permit. */
interface Usable {
  readonly record: PermitRecord;
  readonly digest: Digest;
  /** The fingerprint of the credentials in the gate's survey. Nothing may be sent with others. */
  readonly credentials: string;
  /**
   * When the attempt's lease expires. Nothing may be sent after that, because recovery or an
   * operator may close the attempt.
   */
  readonly deadline: Deadline;
}

/**
 * The final gate was passed for one held candidate. Minted by `runtime/gate.ts`. The adapter stores
 * `marker`, unread, under the occurrence, in the same commit as the candidate.
 */
export type ConsumedPermit = Proof<'permit', Usable & { readonly marker: MarkerText }>;

/**
 * The final gate was passed for one request, and its permit is durably consumed. Minted by
 * `runtime/gate.ts`.
 */
export type RequestPermit = Proof<'request-permit', Usable>;

/** A sealed marker as the adapter stores it: opaque text keyed by occurrence. */
export interface MarkerText {
  readonly occurrence: string;
  readonly disposition: 'committed' | 'void';
  readonly text: string;
  readonly sealKey: string;
  readonly sealMac: string;
}
