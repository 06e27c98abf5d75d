import { type KeyObject, sign, verify } from 'node:crypto';
import { EffectMatchError } from '../errors.ts';
import {
  type License,
  licenseRecord,
  type SecondSignature,
  type SignedLicense,
} from '../protocol/license.ts';
import { type Digest, digestSchema, nameSchema } from '../protocol/record.ts';
import { closed, copyOnce, text } from '../protocol/schema.ts';
import { decodeBase64url } from './base64url.ts';
import { contentOfLicense, type SignedContent } from './decision.ts';
import { digestText } from './digest.ts';
import { readFields, readOutcome } from './handover.ts';
import type { IssuerKey } from './issuer-key.ts';
import { isAssertion, verifyAssertion } from './passkey.ts';

const SIGNATURE_BYTES = 64;

/** A person's signature: Ed25519 over the content, in base64url. */
export function signContent(key: KeyObject, content: SignedContent): string {
  return sign(null, bytesOf(content), key).toString('base64url');
}

/**
 * Whether the key with this id is one of these public keys and signed the content: with Ed25519, or
 * with a passkey whose challenge is the content's digest.
 */
export function isSignedBy(
  publicKeys: readonly IssuerKey[],
  id: Digest,
  content: SignedContent,
  signature: string,
): boolean {
  const key = publicKeys.find((candidate) => candidate.id === id);
  if (key === undefined) return false;
  if ('origin' in key)
    return verifyAssertion(key, digestText(content.domain, content.text), signature);
  const bytes = decodeBase64url(signature, SIGNATURE_BYTES);
  return bytes !== undefined && verify(null, bytesOf(content), key.key, bytes);
}

function bytesOf({ domain, text }: SignedContent): Buffer {
  return Buffer.from(`${domain}\n${text}`);
}

/** Ed25519 over the license's domain label, a newline and its canonical text, in base64url. */
export function signLicense(key: KeyObject, license: License): string {
  return signContent(key, contentOfLicense(license));
}

/**
 * Whether the key named in the license is one of these public keys and signed it. A signature is
 * exactly 64 bytes in canonical base64url, or a passkey assertion. It covers only the license;
 * whether `approved` has the digest in the license is checked separately.
 */
export function verifyLicense(
  publicKeys: readonly IssuerKey[],
  { license, signature }: SignedLicense,
): boolean {
  return isSignedBy(publicKeys, license.key, contentOfLicense(license), signature);
}

/** Whether the key named in the second signature is one of these public keys and made it. */
export function verifySecond(
  publicKeys: readonly IssuerKey[],
  license: License,
  { key, signature }: SecondSignature,
): boolean {
  return isSignedBy(publicKeys, key, contentOfLicense(license), signature);
}

/**
 * Checks the form of a signed license, given as an object or as JSON text: exactly `license`,
 * `approved`, `signature` and optionally `second`, each within its form and size. Does not check
 * who signed it; `verifyLicense` does. Constraints are evaluated only after that, because it takes
 * time and anyone can submit a license.
 */
export function parseSignedLicense(input: unknown): SignedLicense {
  const fields = readFields<'license' | 'approved' | 'signature' | 'second'>(
    'signed license',
    input,
    ['license', 'approved', 'signature'],
    'second',
  );
  const signature = parseSignature(fields.signature);
  const outcome = readOutcome(input, fields.approved);
  const license = licenseRecord.parse(fields.license);
  if (fields.second === undefined) return { license, approved: outcome, signature };
  return { license, approved: outcome, signature, second: parseSecond(fields.second) };
}

const secondSchema = closed({ issuer: nameSchema, key: digestSchema, signature: text(1, 8192) });

function parseSecond(input: unknown): SecondSignature {
  const found = copyOnce(secondSchema, input, 1);
  if ('copy' in found) return { ...found.copy, signature: parseSignature(found.copy.signature) };
  const where = ['second', ...found.path].join('.');
  throw new EffectMatchError('ERR_EM_RECORD_INVALID', `signed license at ${where}: ${found.why}`);
}

function parseSignature(signature: unknown): string {
  const isWellFormed =
    decodeBase64url(signature, SIGNATURE_BYTES) !== undefined || isAssertion(signature);
  if (isWellFormed) return signature as string;
  throw new EffectMatchError(
    'ERR_EM_RECORD_INVALID',
    'signed license: the signature is neither 64 bytes in base64url nor a passkey assertion',
  );
}
