import { type KeyObject, sign, verify } from 'node:crypto';
import { EffectMatchError } from '../errors.ts';
import { type License, licenseRecord, type SignedLicense } from '../protocol/license.ts';
import { approvedRecord } from '../protocol/manifest.ts';
import { parsePublicKey } from './approver-key.ts';
import { decodeBase64url } from './base64url.ts';
import { readFields } from './handover.ts';
import { signedText } from './license.ts';

export { keyId, parsePublicKey } from './approver-key.ts';

const SIGNATURE_BYTES = 64;

/** Ed25519 over the license's domain label, a newline and its canonical text, in base64url. */
export function signLicense(key: KeyObject, license: License): string {
  return sign(null, signedBytes(license), key).toString('base64url');
}

/**
 * Whether one of these public keys, the one that the license itself names, signed this license. A
 * signature that is not exactly 64 bytes in canonical base64url is refused. It covers the
 * license alone: that `approved` is the outcome whose digest the license carries is a comparison of
 * its own.
 */
export function verifyLicense(publicKeys: readonly string[], signed: SignedLicense): boolean {
  const key = publicKeys.map(parsePublicKey).find(({ id }) => id === signed.license.key);
  const signature = decodeBase64url(signed.signature, SIGNATURE_BYTES);
  if (key === undefined || signature === undefined) return false;
  return verify(null, signedBytes(signed.license), key.key, signature);
}

/**
 * Checks the form of what was handed over, as an object or as JSON text: exactly `license`,
 * `approved` and `signature`, each in its own form and size. Says nothing about who signed it;
 * `verifyLicense` does. Whether its constraints can be evaluated is asked after that: finding it
 * out costs something, and anybody can hand something over.
 */
export function parseSignedLicense(input: unknown): SignedLicense {
  const { license, approved, signature } = readFields('signed license', input, [
    'license',
    'approved',
    'signature',
  ]);
  if (decodeBase64url(signature, SIGNATURE_BYTES) === undefined) {
    throw new EffectMatchError(
      'ERR_EM_RECORD_INVALID',
      'signed license: the signature is not 64 bytes in base64url',
    );
  }
  const outcome = approvedRecord.parse(approved);
  return {
    license: licenseRecord.parse(license),
    approved: outcome,
    signature: signature as string,
  };
}

function signedBytes(license: License): Buffer {
  return Buffer.from(signedText(license));
}
