import { createPublicKey, hash, type KeyObject, verify } from 'node:crypto';
import { errorsOf } from '../errors.ts';
import type { Digest } from '../protocol/record.ts';
import { parsePublicKey } from './approver-key.ts';
import { decodeBase64url } from './base64url.ts';
import { digestText } from './digest.ts';
import { type PasskeyText, readPasskeyText } from './passkey-text.ts';

/** The checked public half of a passkey. */
export interface PasskeyKey extends Pick<PasskeyText, 'algorithm' | 'origin' | 'host'> {
  readonly text: string;
  readonly id: Digest;
  readonly key: KeyObject;
}

const COORDINATE_BYTES = 32;
/** The relying party's hash, the flags and a counter; extensions may follow. */
const AUTHENTICATOR_MIN = 37;
const AUTHENTICATOR_MAX = 1024;
const CLIENT_MAX = 4096;
const SIGNATURE_MAX = 128;
const FLAGS_AT = 32;
/**
 * Flags: the user was present, and the authenticator verified who it was (WebAuthn, section 6.1).
 */
const PRESENT_AND_VERIFIED = 0x05;

/** Parses a passkey's public half. Throws `ERR_EM_CONFIG_INVALID`: it comes from configuration. */
export function parsePasskey(text: string): PasskeyKey {
  const parts = readPasskeyText(text);
  if (parts === undefined) {
    throw invalidPasskey(
      'a passkey is "passkey:es256:KEY:CREDENTIAL@https://HOST", as the console shows it',
    );
  }
  const { algorithm, point, origin, host } = parts;
  const key = algorithm === 'es256' ? p256Key(point) : parsePublicKey(point).key;
  if (key === undefined) throw invalidPasskey('its key is not a point of P-256');
  const id = digestText('effectmatch/approver-key/v1', text);
  return { text, id, key, algorithm, origin, host };
}

function p256Key(point: string): KeyObject | undefined {
  const bytes = decodeBase64url(point, 2 * COORDINATE_BYTES);
  if (bytes === undefined) return undefined;
  const x = bytes.subarray(0, COORDINATE_BYTES).toString('base64url');
  const y = bytes.subarray(COORDINATE_BYTES).toString('base64url');
  try {
    return createPublicKey({ key: { kty: 'EC', crv: 'P-256', x, y }, format: 'jwk' });
  } catch {
    return undefined;
  }
}

/** The parts of a passkey's signature, decoded. */
interface Assertion {
  readonly authenticatorData: Buffer;
  readonly clientData: Buffer;
  readonly signature: Buffer;
}

/** Whether a text has the form of a passkey's signature. Does not check who made it. */
export function isAssertion(text: unknown): boolean {
  return readAssertion(text) !== undefined;
}

function readAssertion(text: unknown): Assertion | undefined {
  if (typeof text !== 'string') return undefined;
  const [kind, ...parts] = text.split('.', 5);
  const [authenticatorData, clientData, signature] = parts.map(decodeAny);
  if (kind !== 'passkey' || parts.length !== 3) return undefined;
  if (!authenticatorData || !clientData || !signature) return undefined;
  const { length } = authenticatorData;
  if (length < AUTHENTICATOR_MIN || length > AUTHENTICATOR_MAX) return undefined;
  if (clientData.length > CLIENT_MAX || signature.length > SIGNATURE_MAX) return undefined;
  return { authenticatorData, clientData, signature };
}

/** Decodes strict base64url up to the length allowed here. */
function decodeAny(text: string): Buffer | undefined {
  if (text.length > 2 * CLIENT_MAX) return undefined;
  const bytes = Buffer.from(text, 'base64url');
  return bytes.length > 0 && bytes.toString('base64url') === text ? bytes : undefined;
}

/**
 * Whether this passkey signed this challenge, on a page of its origin, with the user present and
 * verified (WebAuthn, section 7.2). Ignores the authenticator's counter: the challenge already
 * distinguishes assertions.
 */
export function verifyAssertion(key: PasskeyKey, challenge: Digest, text: string): boolean {
  const assertion = readAssertion(text);
  if (assertion === undefined) return false;
  const { authenticatorData, clientData, signature } = assertion;
  if (!isFromPage(clientData, key, Buffer.from(challenge, 'hex').toString('base64url')))
    return false;
  const party = authenticatorData.subarray(0, FLAGS_AT);
  if (!party.equals(hash('sha256', key.host, 'buffer'))) return false;
  const flags = authenticatorData[FLAGS_AT] ?? 0;
  if ((flags & PRESENT_AND_VERIFIED) !== PRESENT_AND_VERIFIED) return false;
  const signed = Buffer.concat([authenticatorData, hash('sha256', clientData, 'buffer')]);
  // The registered key decides the algorithm, not the assertion.
  return verify(key.algorithm === 'es256' ? 'sha256' : null, signed, key.key, signature);
}

/** Whether the browser reports a top-level page of this origin and this challenge. */
function isFromPage(clientData: Buffer, { origin }: PasskeyKey, challenge: string): boolean {
  let said: Record<string, unknown>;
  try {
    said = Object(JSON.parse(clientData.toString('utf8')));
  } catch {
    return false;
  }
  const isTop = said.crossOrigin === undefined || said.crossOrigin === false;
  const isRight = said.type === 'webauthn.get' && said.challenge === challenge;
  return isRight && said.origin === origin && isTop && said.topOrigin === undefined;
}

const invalidPasskey = errorsOf('ERR_EM_CONFIG_INVALID', 'not an approver key: ');
