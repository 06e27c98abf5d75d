import type { ClaimRecord } from '../protocol/binding.ts';
import type { CertificateRecord } from '../protocol/boundary.ts';
import type { PermitRecord } from '../protocol/permit.ts';
import type { Digest } from '../protocol/record.ts';
import type { Deadline } from './clock.ts';
import type { Sealed } from './seal.ts';

declare const proof: unique symbol;
/** Facts that only one step can establish. Order is a type: each step takes the proof of the step before. */
export type Proof<Step extends string, Facts> = Facts & { readonly [proof]: Step };

/** The occurrence is durably spent by this execution. Minted by `runtime/authority.ts`. */
export type Claim = Proof<'claim', { readonly sealed: Sealed<ClaimRecord>; readonly digest: Digest }>;

/**
 * Every outlet is observed or denied. Minted by `runtime/boundary.ts`. `credentials` is what the survey said about them:
 * an adapter that sends something for this attempt does so with no others.
 */
export type Certificate = Proof<
  'certificate',
  { readonly record: CertificateRecord; readonly digest: Digest; readonly credentials: string }
>;

/** What a permit says beside its record to whoever uses it. */
interface Usable {
  readonly record: PermitRecord;
  readonly digest: Digest;
  /** The credentials of the last survey that the gate saw: only with these may be sent. */
  readonly credentials: string;
  /** When the lease of the attempt runs out: others may have given it up from then on, so nothing may be sent. */
  readonly deadline: Deadline;
}

/**
 * The final gate was passed for one held candidate. Minted by `runtime/gate.ts`. `marker` is what the adapter
 * stores, unread, under the occurrence, in the same commit as the candidate.
 */
export type ConsumedPermit = Proof<'permit', Usable & { readonly marker: MarkerText }>;

/** The final gate was passed for one request, and its permit is durably consumed. Minted by `runtime/gate.ts`. */
export type RequestPermit = Proof<'request-permit', Usable>;

/** A sealed marker as the adapter keeps it: opaque text keyed by occurrence. */
export interface MarkerText {
  readonly occurrence: string;
  readonly disposition: 'committed' | 'void';
  readonly text: string;
  readonly sealKey: string;
  readonly sealMac: string;
}
