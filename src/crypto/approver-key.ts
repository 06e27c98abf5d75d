import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { errorsOf } from '../errors.ts';
import { RecentMap } from '../protocol/recent-map.ts';
import type { Digest } from '../protocol/record.ts';
import { decodeBase64url } from './base64url.ts';
import { digestText } from './digest.ts';

const PUBLIC_PREFIX = 'ed25519:';
const PRIVATE_PREFIX = 'ed25519-private:';
const KEY_BYTES = 32;
const PARSED_LIMIT = 1000;
const parsed = new RecentMap<string, PublicKey>(PARSED_LIMIT);

/**
 * Encodings of the small-order points, with the sign bit cleared. With one of these keys, anyone
 * can forge signatures that some OpenSSL versions accept, so they are rejected as approver keys.
 */
const SMALL_ORDER = new Set([
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0100000000000000000000000000000000000000000000000000000000000000',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
]);

/**
 * A checked approver public key: its one-line form, the digest that licenses refer to, and the key
 * itself.
 */
interface PublicKey {
  readonly text: string;
  readonly id: Digest;
  readonly key: KeyObject;
}

/**
 * Parses a public key: `ed25519:` and 32 bytes in base64url (the form we print), the same without
 * the prefix, or an SPKI PEM. Throws `ERR_EM_CONFIG_INVALID`, because public keys come from
 * configuration.
 */
export function parsePublicKey(input: string): PublicKey {
  const known = parsed.get(input);
  if (known !== undefined) return known;
  const point = input.includes('-----BEGIN')
    ? pointOfPem(input)
    : decodeBase64url(stripPrefix(input), KEY_BYTES);
  if (point === undefined) {
    throw invalidKey(
      `a public key is "${PUBLIC_PREFIX}" and 32 bytes in base64url, or an Ed25519 SPKI PEM`,
    );
  }
  if (isSmallOrder(point))
    throw invalidKey('this public key is a known weak point; generate a new key pair');
  const text = `${PUBLIC_PREFIX}${point.toString('base64url')}`;
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: point.toString('base64url') };
  const key: PublicKey = {
    text,
    id: digestText('effectmatch/approver-key/v1', text),
    key: createPublicKey({ key: jwk, format: 'jwk' }),
  };
  parsed.set(input, key);
  return key;
}

/**
 * The id of an approver's key in licenses and policies. All text forms of a key have the same id.
 */
export function keyId(publicKey: string): Digest {
  return parsePublicKey(publicKey).id;
}

/** The one-line form of a private key, for a file or a secret store. */
export function formatPrivateKey(key: KeyObject): string {
  return `${PRIVATE_PREFIX}${key.export({ format: 'jwk' }).d}`;
}

/**
 * Parses a private key in our one-line form or as PKCS #8 PEM. Error messages never quote the
 * input.
 */
export function parsePrivateKey(input: string): {
  readonly key: KeyObject;
  readonly publicKey: PublicKey;
} {
  const key = input.startsWith(PRIVATE_PREFIX)
    ? privateOfSeed(input.slice(PRIVATE_PREFIX.length))
    : privateOfPem(input);
  if (key?.asymmetricKeyType !== 'ed25519') {
    throw invalidKey(
      `a private key is "${PRIVATE_PREFIX}" and 32 bytes in base64url, or an Ed25519 PKCS #8 PEM`,
    );
  }
  const { x } = key.export({ format: 'jwk' });
  return { key, publicKey: parsePublicKey(`${PUBLIC_PREFIX}${x}`) };
}

function stripPrefix(text: string): string {
  return text.startsWith(PUBLIC_PREFIX) ? text.slice(PUBLIC_PREFIX.length) : text;
}

function isSmallOrder(point: Buffer): boolean {
  const masked = Buffer.from(point);
  masked[KEY_BYTES - 1] = (masked[KEY_BYTES - 1] ?? 0) & 0x7f;
  return SMALL_ORDER.has(masked.toString('hex'));
}

function pointOfPem(pem: string): Buffer | undefined {
  // Node would derive the public key from a private one. Reject a private key that was pasted into
  // a configuration.
  if (!pem.trimStart().startsWith('-----BEGIN PUBLIC KEY-----')) return undefined;
  try {
    const key = createPublicKey(pem);
    return key.asymmetricKeyType === 'ed25519'
      ? decodeBase64url(key.export({ format: 'jwk' }).x, KEY_BYTES)
      : undefined;
  } catch {
    return undefined;
  }
}

function privateOfSeed(text: string): KeyObject | undefined {
  const seed = decodeBase64url(text, KEY_BYTES);
  if (seed === undefined) return undefined;
  // The fixed PKCS #8 prefix of an Ed25519 seed (RFC 8410): Node does not accept a bare seed.
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed]);
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
}

function privateOfPem(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined;
  }
}

const invalidKey = errorsOf('ERR_EM_CONFIG_INVALID', 'not an approver key: ');
