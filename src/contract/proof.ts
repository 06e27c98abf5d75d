import type { ClaimRecord } from '../protocol/binding.ts';
import type { CertificateRecord } from '../protocol/boundary.ts';
import type { PermitRecord } from '../protocol/permit.ts';
import type { Digest } from '../protocol/record.ts';
import type { Deadline } from './clock.ts';
import type { Sealed } from './seal.ts';

declare const proof: unique symbol;
/**
 * Facts that only one step can establish. Order is a type: each step takes the proof of the step
 * before.
 */
export type Proof<Step extends string, Facts> = Facts & { readonly [proof]: Step };

/** The occurrence is durably spent by this execution. Minted by `runtime/authority.ts`. */
export type Claim = Proof<
  'claim',
  { readonly sealed: Sealed<ClaimRecord>; readonly digest: Digest }
>;

/**
 * Every outlet is observed or denied. Minted by `runtime/boundary.ts`. `credentials` is what the
 * survey said about the credentials: an adapter sends nothing for this attempt with others.
 */
export type Certificate = Proof<
  'certificate',
  { readonly record: CertificateRecord; readonly digest: Digest; readonly credentials: string }
>;

/** What an adapter needs of a permit to use it. */
interface Usable {
  readonly record: PermitRecord;
  readonly digest: Digest;
  /** What the gate's survey said about the credentials: nothing may be sent with others. */
  readonly credentials: string;
  /**
   * When the attempt's lease runs out. Recovery or an operator may close the attempt after that, so
   * nothing may be sent.
   */
  readonly deadline: Deadline;
}

/**
 * The final gate was passed for one held candidate. Minted by `runtime/gate.ts`. `marker` is what
 * the adapter stores, unread, under the occurrence, in the same commit as the candidate.
 */
export type ConsumedPermit = Proof<'permit', Usable & { readonly marker: MarkerText }>;

/**
 * The final gate was passed for one request, and its permit is durably consumed. Minted by
 * `runtime/gate.ts`.
 */
export type RequestPermit = Proof<'request-permit', Usable>;

/** A sealed marker as the adapter keeps it: opaque text keyed by occurrence. */
export interface MarkerText {
  readonly occurrence: string;
  readonly disposition: 'committed' | 'void';
  readonly text: string;
  readonly sealKey: string;
  readonly sealMac: string;
}
