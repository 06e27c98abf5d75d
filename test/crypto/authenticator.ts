// An authenticator in memory that signs whatever a test wants, also what a real one would not.
import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { writeAssertion, writePasskeyText } from '../../src/crypto/passkey-text.ts';

export const ORIGIN = 'https://approve.example.com';
/** User present, and user verified. */
export const UP = 0x01;
export const UV = 0x04;

/** What a page and an authenticator say; the rest is as it should be. */
export interface Said {
  readonly type?: unknown;
  readonly challenge?: string;
  readonly origin?: string;
  readonly crossOrigin?: unknown;
  readonly topOrigin?: string;
  readonly host?: string;
  readonly flags?: number;
}

const sha256 = (data: string | Buffer) => createHash('sha256').update(data).digest();

/** A passkey of this algorithm for a page. */
export function createAuthenticator(algorithm: 'es256' | 'eddsa' = 'es256', origin = ORIGIN) {
  const { privateKey, publicKey } =
    algorithm === 'es256'
      ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
      : generateKeyPairSync('ed25519');
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' });
  const decoded = [x, y].map((part) => Buffer.from(part, 'base64url'));
  const point = Buffer.concat(decoded).toString('base64url');
  const credential = randomBytes(16).toString('base64url');
  return {
    publicKey: writePasskeyText({ algorithm, point, credential, origin }),
    /** Signs a challenge in hex. */
    assert(challenge: string, said: Said = {}): string {
      const { host = new URL(origin).hostname, flags = UP | UV, ...client } = said;
      const data = Buffer.concat([sha256(host), Buffer.from([flags, 0, 0, 0, 1])]);
      const clientData = Buffer.from(
        JSON.stringify({
          type: 'webauthn.get',
          challenge: Buffer.from(challenge, 'hex').toString('base64url'),
          origin,
          crossOrigin: false,
          ...client,
        }),
      );
      const signed = Buffer.concat([data, sha256(clientData)]);
      const signature = sign(algorithm === 'es256' ? 'sha256' : null, signed, privateKey);
      return writeAssertion({
        authenticatorData: data.toString('base64url'),
        clientData: clientData.toString('base64url'),
        signature: signature.toString('base64url'),
      });
    },
  };
}
