import { generateKeyPairSync } from 'node:crypto';
import { type IdSource, systemClock, type WallClock } from '../contract/clock.ts';
import { EffectMatchError } from '../errors.ts';
import type { Proposal, SignedLicense } from '../protocol/license.ts';
import { isName, nameSchema } from '../protocol/record.ts';
import { choice, closed, copyOnce, text } from '../protocol/schema.ts';
import { formatPrivateKey, keyId, parsePrivateKey } from './approver-key.ts';
import { parseCountersignable } from './countersign.ts';
import { type SignOptions, writeLicense } from './license.ts';
import { parseProposal } from './proposal.ts';
import { randomIds } from './random-ids.ts';
import { createSecretFile, readSecretFile } from './secret-file.ts';
import { signLicense } from './signature.ts';

export { MAX_VALID_MS, type SignOptions } from './license.ts';
export { randomIds } from './random-ids.ts';

/** An approver's name and key pair, each on one line so that it can be pasted. */
export interface ApproverKey {
  readonly issuer: string;
  /** Goes into the deployment's configuration. */
  readonly publicKey: string;
  /** Only the approver may have this. */
  readonly privateKey: string;
}

const keyFileSchema = closed({
  version: choice(1),
  issuer: nameSchema,
  publicKey: text(),
  privateKey: text(),
});

/** Generates an Ed25519 key pair for an issuer. */
export function generateApprover(issuer: string): ApproverKey {
  checkIssuer(issuer);
  const { privateKey } = generateKeyPairSync('ed25519');
  const text = formatPrivateKey(privateKey);
  return { issuer, publicKey: parsePrivateKey(text).publicKey.text, privateKey: text };
}

/** Writes the key to a new file with mode 0600 and flushes it. Never overwrites a file. */
export function saveApproverKey(
  file: string,
  { issuer, publicKey, privateKey }: ApproverKey,
): void {
  const text = `${JSON.stringify({ version: 1, issuer, publicKey, privateKey }, null, 2)}\n`;
  parseKeyFile(file, text);
  if (!createSecretFile(file, text))
    throw invalidKeyFile(file, 'it already exists and is never overwritten');
}

/** Reads a key file under the same rules as a keyring, and checks that the two keys are a pair. */
export function loadApproverKey(file: string): ApproverKey {
  return parseKeyFile(file, readSecretFile(file));
}

/** A person or program that signs licenses with its private key. */
export interface Approver {
  readonly issuer: string;
  readonly publicKey: string;
  /**
   * Signs what the proposal shows. Renders the outcome again from the bytes that the license will
   * name. Throws `ERR_EM_MANIFEST_INVALID` if the result differs from the proposal's text, or if a
   * digest in the draft does not match the proposal. So a person who read the rendering has read
   * what they sign. For more than 200 changes the rendering is a summary that says so; the
   * signature covers all of them.
   */
  sign(proposal: Proposal, options: SignOptions): SignedLicense;
  /**
   * Adds a second signature to a license that another person signed. Renders the license again, as
   * `sign` does. The second signature covers the same license, so its expiry and number of uses do
   * not change.
   */
  countersign(signed: SignedLicense | unknown): SignedLicense;
}

/** An approver that holds its private key. It runs on the approver's side and needs no runtime. */
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
      const { draft, approved } = parseProposal(proposal);
      const signer = {
        issuer,
        key: publicKey.id,
        nowMs: clock.now(),
        drawNonce: () => ids.hex(16),
      };
      const license = writeLicense(draft, signer, options);
      return { license, approved, signature: signLicense(key, license) };
    },
    countersign(signed) {
      const { license, approved, signature } = parseCountersignable(signed);
      if (license.issuer === issuer || license.key === publicKey.id) {
        const message = `${license.issuer} signed it first; a second person has to sign it now`;
        throw new EffectMatchError('ERR_EM_USAGE', message);
      }
      const second = { issuer, key: publicKey.id, signature: signLicense(key, license) };
      return { license, approved, signature, second };
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
  const found = copyOnce(keyFileSchema, content, 1);
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
