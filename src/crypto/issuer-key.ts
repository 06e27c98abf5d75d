import type { Digest } from '../protocol/record.ts';
import { parsePublicKey } from './approver-key.ts';
import { type PasskeyKey, parsePasskey } from './passkey.ts';
import { isPasskeyText } from './passkey-text.ts';

/** A key that an issuer may sign licenses with: an Ed25519 key, or a passkey. */
export type IssuerKey = ReturnType<typeof parsePublicKey> | PasskeyKey;

/** Parses an issuer's public key in any form that a configuration may use. */
export function parseIssuerKey(text: string): IssuerKey {
  return isPasskeyText(text) ? parsePasskey(text) : parsePublicKey(text);
}

/** The id of an issuer's key in licenses and policies. */
export function issuerKeyId(text: string): Digest {
  return parseIssuerKey(text).id;
}
