import type { KeyObject } from 'node:crypto';
import { EffectMatchError, invariant } from '../errors.ts';
import type { Digest } from '../protocol/record.ts';
import { parsePrivateKey, parsePublicKey } from './approver-key.ts';
import { digestText } from './digest.ts';
import type { Keyring } from './keyring.ts';

/** Record kinds contain no slash, so no seal ever uses the key for this purpose. */
const PURPOSE = 'receipt-key/v1';
const MAX_KEYS = 64;

/** A public key that verifies receipts. */
export interface ReceiptKey {
  /** One line, `ed25519:…`. */
  readonly publicKey: string;
  /** The key's id in signatures. */
  readonly keyid: Digest;
  readonly key: KeyObject;
}

/**
 * The private key that signs receipts: an Ed25519 key whose seed is derived from the current
 * generation's root secret. So there is no further key to back up, and rotating the keyring rotates
 * this key too.
 */
export function signingKey(keyring: Keyring): { readonly keyid: Digest; readonly key: KeyObject } {
  const { key, publicKey } = deriveKey(keyring, keyring.current);
  return { keyid: parseReceiptKey(publicKey).keyid, key };
}

/**
 * The public keys of all generations, newest first: together they verify every receipt, old or new.
 */
export function receiptKeys(
  keyring: Keyring,
): readonly (ReceiptKey & { readonly generation: string })[] {
  return keyring.ids.map((generation) => ({
    generation,
    ...parseReceiptKey(deriveKey(keyring, generation).publicKey),
  }));
}

/** Parses a public key: `ed25519:…`, or an SPKI PEM. Throws `ERR_EM_CONFIG_INVALID`. */
export function parseReceiptKey(text: string): ReceiptKey {
  try {
    const { text: publicKey, key } = parsePublicKey(text);
    return { publicKey, keyid: digestText('effectmatch/receipt-key/v1', publicKey), key };
  } catch (cause) {
    if (!(cause instanceof EffectMatchError)) throw cause;
    const why = cause.message.replace(/^not an approver key: /, '');
    throw new EffectMatchError('ERR_EM_CONFIG_INVALID', `not a public key of receipts: ${why}`, {
      cause,
    });
  }
}

/**
 * Parses a file of public keys: one PEM, or one key per line. Skips empty lines and lines that
 * start with #.
 */
export function parseReceiptKeys(text: string): readonly ReceiptKey[] {
  const lines = text.includes('-----BEGIN')
    ? [text]
    : text.split(/\r?\n/).map((line) => line.trim());
  const keys = lines.filter((line) => line !== '' && !line.startsWith('#'));
  if (keys.length === 0 || keys.length > MAX_KEYS) {
    throw new EffectMatchError(
      'ERR_EM_CONFIG_INVALID',
      `a file of public keys holds 1 to ${MAX_KEYS} of them`,
    );
  }
  return keys.map(parseReceiptKey);
}

function deriveKey(
  keyring: Keyring,
  generation: string,
): { readonly key: KeyObject; readonly publicKey: string } {
  const seed = keyring.derive(generation, PURPOSE)?.export();
  invariant(seed !== undefined, 'a keyring holds its own generations');
  const { key, publicKey } = parsePrivateKey(`ed25519-private:${seed.toString('base64url')}`);
  return { key, publicKey: publicKey.text };
}
