import type { Digest } from '../protocol/record.ts';
import { parsePublicKey } from './approver-key.ts';
import { type PasskeyKey, parsePasskey } from './passkey.ts';
import { isPasskeyText } from './passkey-text.ts';

/** A key that an issuer may sign licenses with: an Ed25519 key, or a passkey. */
export type IssuerKey = ReturnType<typeof parsePublicKey> | PasskeyKey;

/** Reads the public key of an issuer in any form that configurations may carry. */
export function parseIssuerKey(text: string): IssuerKey {
  return isPasskeyText(text) ? parsePasskey(text) : parsePublicKey(text);
}

/** What a license and a policy name the key of an issuer by. */
export function issuerKeyId(text: string): Digest {
  return parseIssuerKey(text).id;
}
