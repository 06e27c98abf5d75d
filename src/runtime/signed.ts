import type { Proof } from '../contract/proof.ts';
import type { SignedLicense } from '../protocol/license.ts';
import type { Attempt, Refusal, Refused } from './attempt.ts';
import type { Deployment } from './deployment.ts';

/** An attempt under a license that a designated issuer signed. Minted by {@link admitSigned}. */
export type SignedAttempt = Proof<'signed', Attempt>;

/**
 * Whether a designated issuer signed the license. Until that is known, nothing else is done with
 * it.
 */
export function admitSigned(
  deployment: Deployment,
  attempt: Attempt,
): { readonly kind: 'signed'; readonly attempt: SignedAttempt } | Refused {
  const refusal = checkSignature(deployment, attempt.signed);
  return refusal === undefined
    ? { kind: 'signed', attempt: attempt as SignedAttempt }
    : { kind: 'refused', refusal };
}

/** Why it does not count as signed, if so. */
export function checkSignature(deployment: Deployment, signed: SignedLicense): Refusal | undefined {
  const { issuer } = signed.license;
  const keys = deployment.issuerKeys.get(issuer);
  if (keys === undefined) {
    const detail = `"${issuer}" is not a designated issuer of this deployment`;
    return { reason: 'issuer-unknown', detail };
  }
  if (deployment.verifyLicense(keys, signed)) return undefined;
  const detail = `the signature is not by a registered key of "${issuer}"`;
  return { reason: 'signature-invalid', detail };
}
