import { instant } from '../contract/clock.ts';
import { EffectMatchError } from '../errors.ts';
import { type License, licenseRecord, type Proposal } from '../protocol/license.ts';
import type { Digest } from '../protocol/record.ts';
import { parseDuration } from './duration.ts';

/**
 * A license that is valid for longer than this is a standing permission, which is not what an
 * approval is.
 */
export const MAX_VALID_MS = 30 * 86_400_000;
const LATEST_MS = Date.UTC(9999, 0);
/**
 * The clocks of two machines differ. A license cannot be used before it exists, so backdating gives
 * nothing away.
 */
const CLOCK_SKEW_MS = 60_000;

/** For how long a license is good. It always ends: an approval is not a standing permission. */
export interface SignOptions {
  /** How long the license is valid: milliseconds or '30s', '10m', '1h', '2d'; at most 30 days. */
  readonly expiresIn: string | number;
  /** Milliseconds since the epoch; a minute ago unless told otherwise. */
  readonly notBefore?: number;
  /**
   * 16 to 64 characters of base64url. A nonce buys its occurrences once, whatever is signed with it
   * later.
   */
  readonly nonce?: string;
}

/** Who signs, when, and where a nonce comes from. */
export interface LicenseSigner {
  readonly issuer: string;
  /** Digest of the public key. */
  readonly key: Digest;
  readonly nowMs: number;
  readonly drawNonce: () => string;
}

/** The license that is signed: the draft, and what the approver decides. */
export function writeLicense(
  draft: Proposal['draft'],
  { issuer, key, nowMs, drawNonce }: LicenseSigner,
  options: SignOptions,
): License {
  const { expiresIn, notBefore, nonce = drawNonce() } = options ?? {};
  if (expiresIn === undefined) {
    throw new EffectMatchError(
      'ERR_EM_USAGE',
      "say how long the license is valid, for example { expiresIn: '10m' }",
    );
  }
  const from = notBefore === undefined ? nowMs - CLOCK_SKEW_MS : checkTime(notBefore);
  return licenseRecord.parse({
    ...draft,
    issuer,
    key,
    nonce,
    notBefore: instant(from),
    expiresAt: instant(Math.max(nowMs, from) + parseDuration(expiresIn, MAX_VALID_MS)),
  });
}

/**
 * Times that a record can carry end with the year 9999; the end of validity still has to fit behind
 * this one.
 */
function checkTime(ms: number): number {
  if (!Number.isSafeInteger(ms) || ms < 0 || ms > LATEST_MS) {
    throw new EffectMatchError(
      'ERR_EM_USAGE',
      'notBefore is a time in milliseconds since the epoch',
    );
  }
  return ms;
}
