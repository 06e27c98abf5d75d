import { generateKeyPairSync } from 'node:crypto';
import { type IdSource, instant, systemClock, type WallClock } from '../contract/clock.ts';
import { EffectMatchError } from '../errors.ts';
import { licenseRecord, type Proposal, type SignedLicense } from '../protocol/license.ts';
import { isName, nameSchema } from '../protocol/record.ts';
import { choice, closed, readOnce, text } from '../protocol/schema.ts';
import { formatPrivateKey, keyId, parsePrivateKey } from './approver-key.ts';
import { parseDuration } from './duration.ts';
import { parseProposal } from './proposal.ts';
import { randomIds } from './random-ids.ts';
import { createSecretFile, readSecretFile } from './secret-file.ts';
import { signLicense } from './signature.ts';

export { randomIds } from './random-ids.ts';

/**
 * A license that is valid for longer than this is a standing permission, which is not what an
 * approval is.
 */
export const MAX_VALID_MS = 30 * 86_400_000;
const LATEST_MS = Date.UTC(9999, 0);
/**
 * The clocks of two machines differ. A license cannot be used before it exists, so backdating gives
 * nothing away.
 */
const CLOCK_SKEW_MS = 60_000;

/** An approver's identity and key pair, in one-line forms that can be pasted. */
export interface ApproverKey {
  readonly issuer: string;
  /** For the deployment's configuration. */
  readonly publicKey: string;
  /** For the approver alone. */
  readonly privateKey: string;
}

const keyFileSchema = closed({
  version: choice(1),
  issuer: nameSchema,
  publicKey: text(),
  privateKey: text(),
});

/** A fresh Ed25519 key pair for an issuer. */
export function generateApprover(issuer: string): ApproverKey {
  checkIssuer(issuer);
  const { privateKey } = generateKeyPairSync('ed25519');
  const text = formatPrivateKey(privateKey);
  return { issuer, publicKey: parsePrivateKey(text).publicKey.text, privateKey: text };
}

/** Writes the key to a new file with mode 0600, flushed. Never overwrites. */
export function saveApproverKey(
  file: string,
  { issuer, publicKey, privateKey }: ApproverKey,
): void {
  const text = `${JSON.stringify({ version: 1, issuer, publicKey, privateKey }, null, 2)}\n`;
  parseKeyFile(file, text);
  if (!createSecretFile(file, text))
    throw invalidKeyFile(file, 'it exists already and is never overwritten');
}

/**
 * Reads a key file under the same rules as a keyring, and checks that both halves belong together.
 */
export function loadApproverKey(file: string): ApproverKey {
  return parseKeyFile(file, readSecretFile(file));
}

/** For how long a license is good. It always ends: an approval is not a standing permission. */
export interface SignOptions {
  /** How long the license is valid: milliseconds or '30s', '10m', '1h', '2d'; at most 30 days. */
  readonly expiresIn: string | number;
  /** Milliseconds since the epoch; a minute ago unless told otherwise. */
  readonly notBefore?: number;
  /**
   * 16 to 64 characters of base64url. A nonce buys its occurrences once, whatever is signed with it
   * later.
   */
  readonly nonce?: string;
}

/** A person or program that signs licenses with its private key. */
export interface Approver {
  readonly issuer: string;
  readonly publicKey: string;
  /**
   * Signs what the proposal shows. The outcome is rendered again from the bytes that the license
   * will name; throws `ERR_EM_MANIFEST_INVALID` when that is not the text in the proposal, or when
   * a digest in the draft is not of what the proposal carries. So a person who read the rendering
   * has read what they sign; of an outcome of more than 200 changes the rendering is a summary that
   * says so, and the signature covers all of it.
   */
  sign(proposal: Proposal, options: SignOptions): SignedLicense;
}

/**
 * An approver that holds its private key. It runs where the runtime need not be: on the approving
 * person's side.
 */
export function approver(options: {
  readonly issuer: string;
  readonly privateKey: string;
  readonly clock?: WallClock;
  readonly ids?: IdSource;
}): Approver {
  if (typeof options?.privateKey !== 'string') {
    throw new EffectMatchError(
      'ERR_EM_USAGE',
      'an approver needs the key pair of generateApprover or loadApproverKey',
    );
  }
  const { issuer, clock = systemClock, ids = randomIds } = options;
  checkIssuer(issuer);
  const { key, publicKey } = parsePrivateKey(options.privateKey);
  return {
    issuer,
    publicKey: publicKey.text,
    sign(proposal, options) {
      const { expiresIn, notBefore, nonce } = options ?? {};
      if (expiresIn === undefined) {
        throw new EffectMatchError(
          'ERR_EM_USAGE',
          "say how long the license is valid, for example { expiresIn: '10m' }",
        );
      }
      const { draft, approved } = parseProposal(proposal);
      const now = clock.now();
      const from = notBefore === undefined ? now - CLOCK_SKEW_MS : checkTime(notBefore);
      const license = licenseRecord.parse({
        ...draft,
        issuer,
        key: publicKey.id,
        nonce: nonce ?? ids.hex(16),
        notBefore: instant(from),
        expiresAt: instant(Math.max(now, from) + parseDuration(expiresIn, MAX_VALID_MS)),
      });
      return { license, approved, signature: signLicense(key, license) };
    },
  };
}

function parseKeyFile(file: string, text: string): ApproverKey {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    throw invalidKeyFile(file, 'it is not JSON');
  }
  const found = readOnce(keyFileSchema, content, 1);
  if (!('copy' in found))
    throw invalidKeyFile(file, 'it needs exactly version, issuer, publicKey and privateKey');
  const { issuer, publicKey, privateKey } = found.copy;
  if (!belongTogether(publicKey, privateKey)) {
    throw invalidKeyFile(file, 'its two keys are not an Ed25519 key pair');
  }
  return { issuer, publicKey, privateKey };
}

function belongTogether(publicKey: string, privateKey: string): boolean {
  try {
    return keyId(publicKey) === parsePrivateKey(privateKey).publicKey.id;
  } catch (error) {
    if (error instanceof EffectMatchError) return false;
    throw error;
  }
}

/**
 * Times that a record can carry end with the year 9999; the end of validity still has to fit behind
 * this one.
 */
function checkTime(ms: number): number {
  if (!Number.isSafeInteger(ms) || ms < 0 || ms > LATEST_MS) {
    throw new EffectMatchError(
      'ERR_EM_USAGE',
      'notBefore is a time in milliseconds since the epoch',
    );
  }
  return ms;
}

function checkIssuer(issuer: string): void {
  if (!isName(issuer)) {
    throw new EffectMatchError(
      'ERR_EM_CONFIG_INVALID',
      'an issuer is named by 1 to 128 letters, digits and . _ : / @ -, starting with a letter or digit',
    );
  }
}

function invalidKeyFile(file: string, why: string): EffectMatchError<'ERR_EM_KEYRING_INVALID'> {
  return new EffectMatchError(
    'ERR_EM_KEYRING_INVALID',
    `${file} cannot be used as an approver key: ${why}`,
  );
}
