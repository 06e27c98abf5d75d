import type { KeyObject } from 'node:crypto';
import { EffectMatchError, invariant } from '../errors.ts';
import type { Digest } from '../protocol/record.ts';
import { parsePrivateKey, parsePublicKey } from './approver-key.ts';
import { digestText } from './digest.ts';
import type { Keyring } from './keyring.ts';

/** No record kind contains a slash, so no seal ever uses the key of this purpose. */
const PURPOSE = 'receipt-key/v1';
const MAX_KEYS = 64;

/** A public key that receipts are verified with. */
export interface ReceiptKey {
  /** One line, `ed25519:…`. */
  readonly publicKey: string;
  /** What signatures name the key by. */
  readonly keyid: Digest;
  readonly key: KeyObject;
}

/**
 * The private half that signs receipts: an Ed25519 key whose seed is derived from the current
 * generation's root secret. So there is nothing more to keep or to back up, and rotating the
 * keyring rotates it too.
 */
export function signingKey(keyring: Keyring): { readonly keyid: Digest; readonly key: KeyObject } {
  const { key, publicKey } = deriveKey(keyring, keyring.current);
  return { keyid: parseReceiptKey(publicKey).keyid, key };
}

/**
 * The public halves of all generations, newest first: a holder can verify every receipt,
 * old or new.
 */
export function receiptKeys(
  keyring: Keyring,
): readonly (ReceiptKey & { readonly generation: string })[] {
  return keyring.ids.map((generation) => ({
    generation,
    ...parseReceiptKey(deriveKey(keyring, generation).publicKey),
  }));
}

/**
 * Reads a public key as people hand it over: `ed25519:…`, or an SPKI PEM. Throws
 * `ERR_EM_CONFIG_INVALID`.
 */
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
 * Reads a file of public keys: one PEM, or one key per line; empty lines and lines that begin with
 * # are skipped.
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
