import { type KeyObject, sign, verify } from 'node:crypto';
import type { Digest } from '../protocol/record.ts';
import { decodeBase64url } from './base64url.ts';
import type { SignedContent } from './decision.ts';
import { digestText } from './digest.ts';
import { parseIssuerKey } from './issuer-key.ts';
import { verifyAssertion } from './passkey.ts';

const SIGNATURE_BYTES = 64;

/** Ed25519 over the content, in base64url. */
export function signContent(key: KeyObject, content: SignedContent): string {
  return sign(null, bytesOf(content), key).toString('base64url');
}

/**
 * Whether the key with this id is one of these public keys and signed the content: with Ed25519, or
 * with a passkey whose challenge is the content's digest.
 */
export function isSignedBy(
  publicKeys: readonly string[],
  id: Digest,
  content: SignedContent,
  signature: string,
): boolean {
  const key = publicKeys.map(parseIssuerKey).find((candidate) => candidate.id === id);
  if (key === undefined) return false;
  if ('origin' in key)
    return verifyAssertion(key, digestText(content.domain, content.text), signature);
  const bytes = decodeBase64url(signature, SIGNATURE_BYTES);
  return bytes !== undefined && verify(null, bytesOf(content), key.key, bytes);
}

function bytesOf({ domain, text }: SignedContent): Buffer {
  return Buffer.from(`${domain}\n${text}`);
}
