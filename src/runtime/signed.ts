import type { Proof } from '../contract/proof.ts';
import type { SignedLicense } from '../protocol/license.ts';
import type { Attempt } from './attempt.ts';
import type { Refusal } from './authority.ts';
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
):
  | { readonly kind: 'signed'; readonly attempt: SignedAttempt }
  | { readonly kind: 'refused'; readonly refusal: Refusal } {
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
    return refuse('issuer-unknown', `"${issuer}" is not a designated issuer of this deployment`);
  }
  if (!deployment.verifyLicense(keys, signed)) {
    return refuse('signature-invalid', `the signature is not by a registered key of "${issuer}"`);
  }
  return undefined;
}

const refuse = (reason: string, detail: string): Refusal => ({ reason, detail });
