import { instant } from '../contract/clock.ts';
import { EffectMatchError } from '../errors.ts';
import { type License, licenseRecord, type Proposal } from '../protocol/license.ts';
import type { Digest } from '../protocol/record.ts';
import { parseDuration } from './duration.ts';

/** An approval is not a standing permission, so no license is valid for longer than this. */
export const MAX_VALID_MS = 30 * 86_400_000;
const LATEST_MS = Date.UTC(9999, 0);
/**
 * Clocks of different machines differ. A license cannot be used before it exists, so backdating it
 * is safe.
 */
const CLOCK_SKEW_MS = 60_000;

/** The validity of a license. It always expires: an approval is not a standing permission. */
export interface SignOptions {
  /** How long the license is valid: milliseconds or '30s', '10m', '1h', '2d'; at most 30 days. */
  readonly expiresIn: string | number;
  /** Milliseconds since the epoch. The default is one minute ago. */
  readonly notBefore?: number;
  /**
   * 16 to 64 characters of base64url. A nonce grants its occurrences once, even if another license
   * is signed with it later.
   */
  readonly nonce?: string;
}

/** Who signs, when, and how to draw a nonce. */
interface LicenseSigner {
  readonly issuer: string;
  /** Digest of the public key. */
  readonly key: Digest;
  readonly nowMs: number;
  readonly drawNonce: () => string;
}

/** Builds the license to sign from the draft and the approver's decisions. */
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

/** Records can carry times up to the year 9999, and the expiry has to fit after this one. */
function checkTime(ms: number): number {
  if (!Number.isSafeInteger(ms) || ms < 0 || ms > LATEST_MS) {
    throw new EffectMatchError(
      'ERR_EM_USAGE',
      'notBefore is a time in milliseconds since the epoch',
    );
  }
  return ms;
}
